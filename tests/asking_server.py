"""A model on this machine that asks before it answers, or never stops asking."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from loopback import answer_to
from models_fixtures import Server, reply
from neuralmedbench.models.builtin import format as forms
from neuralmedbench.models.protocol import Message

MAX_QUESTIONS = 3
"""What the benchmark allows."""
QUESTIONS = ("What do the pictures of the head show?", "Is there a fever?", "What does the liver biopsy say?")
ENDLESS = "sees double"
"""Words of the case about which it asks for ever."""
ANSWER = "Normal pressure hydrocephalus"


class Asker(Server):
    """Asks two questions and names a diagnosis; about one case it asks whatever it is told."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        await asyncio.sleep(0)
        return web.json_response(reply(said(body)))

    @staticmethod
    def is_endless(body: dict[str, Any]) -> bool:
        """Whether a request is of the case about which it asks for ever, in a conversation in which it may ask."""
        first = _texts(body["messages"], "user")[0]
        return "You may ask up to" in first and ENDLESS in first

    @staticmethod
    def answers_in(messages: list[dict[str, Any]]) -> int:
        """Count its own answers in a conversation."""
        return len(_texts(messages, "assistant"))

    @staticmethod
    def last(messages: list[dict[str, Any]]) -> str:
        """Give the last thing that it was told."""
        return _texts(messages, "user")[-1]


def said(body: dict[str, Any]) -> str:
    """Give its answer to a request."""
    messages = body["messages"]
    asked = Asker.answers_in(messages)
    if "You may ask up to" in _texts(messages, "user")[0]:
        if Asker.is_endless(body) or asked < 2:
            return f"QUESTION: {QUESTIONS[(asked + Asker.is_endless(body)) % len(QUESTIONS)]}"
        return forms.differential([ANSWER, "Meningioma"], "Wide ventricles.", "It fits.", 0.8)
    wanted = forms.wanted([Message(role=message["role"], text=_text(message["content"])) for message in messages])
    if wanted is forms.Form.CHOICE:
        return forms.short("A", 0.5)
    if wanted is forms.Form.ANSWER:
        return forms.short("Bright putamina fit the lactate peak.", 0.5)
    return answer_to(body, str(asked))


def _texts(messages: list[dict[str, Any]], role: str) -> list[str]:
    return [_text(message["content"]) for message in messages if message["role"] == role]


def _text(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
