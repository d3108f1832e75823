"""A message whose question follows its pictures: the wire, the chat template, keys, digests and estimates."""

from __future__ import annotations

import asyncio

import pytest

from fixtures.models import PNG, Server, model_config, running_server
from neuralmedbench.models.api.backend import ApiBackend
from neuralmedbench.models.call_keys import call_key
from neuralmedbench.models.conversation import PromptMessage, next_messages
from neuralmedbench.models.ledger import text_digests
from neuralmedbench.models.protocol import Call, Message, MessageImage
from neuralmedbench.models.token_estimates import Estimator
from neuralmedbench.prompts.assemble import request_digest
from neuralmedbench.records.requests import Request, RequestImage, RequestTurn

PICTURES = (MessageImage("SLICE 1", PNG, "a" * 64), MessageImage("SLICE 2", PNG, "b" * 64))
IMAGES = tuple(RequestImage(path=f"{name}.png", sha256=name * 64, label=f"SLICE {name}") for name in "ab")

TEXTS = ("item_id", "case_id", "patient_id", "benchmark", "arm", "strategy", "request_id", "runner", "system", "answer_schema")
"""Fields of a request that matter to none of these tests."""


def sent(message):
    """Return the content of a message as a server gets it."""

    async def making():
        backend = ApiBackend(model_config(api_base=server.address))
        try:
            await backend.answer(Call((message,), (0,), None))
        finally:
            await backend.close()

    with running_server(Server()) as server:
        asyncio.run(making())
    content = server.bodies[0]["messages"][0]["content"]
    return content if isinstance(content, str) else [part.get("text", part["type"]) for part in content]


@pytest.mark.parametrize(
    ("message", "content"),
    [
        (Message("user", "Look.", PICTURES), ["Look.", "SLICE 1", "image_url", "SLICE 2", "image_url"]),
        (Message("user", "Case.", PICTURES, "What?"), ["Case.", "SLICE 1", "image_url", "SLICE 2", "image_url", "What?"]),
        (Message("user", "Case.", PICTURES, "What?", True), ["Case.", "image_url", "SLICE 1", "image_url", "SLICE 2", "What?"]),
        (Message("user", "", PICTURES[:1], "What?"), ["SLICE 1", "image_url", "What?"]),
        (Message("user", "Case.", (), "What?"), "Case.\n\nWhat?"),
    ],
)
def test_a_server_gets_text_labels_and_pictures_in_the_order_of_the_message(message, content):
    assert sent(message) == content


def test_every_change_of_the_order_is_another_call_and_another_request():
    messages = [PromptMessage("user", "Case.", IMAGES, after, place) for after in ("", "What?") for place in (False, True)]
    keys = {call_key(model_config(), [message], 0) for message in messages}
    turns = [RequestTurn(text=one.text, images=IMAGES, after=one.after, labels_after=one.labels_after) for one in messages]
    digests = {request_digest("", (turn,), "") for turn in turns}
    assert len(keys) == len(digests) == len(messages)


def test_the_text_after_the_pictures_is_sent_counted_and_kept_like_the_text_before_them():
    turn = RequestTurn(text="Case.", images=IMAGES, after="What is it?", labels_after=True)
    request = Request(**dict.fromkeys(TEXTS, ""), turns=(turn,), samples=1)
    (message,) = next_messages(request, [], None)
    assert (message.words, message.labels_after) == ("Case.\n\nWhat is it?", True)
    whole = PromptMessage("user", "Case.\n\nWhat is it?", IMAGES)
    assert text_digests([message]) == text_digests([whole])
    estimate = Estimator(model_config())
    assert estimate.prompt_at_most([message]) == estimate.prompt_at_most([whole])
    assert estimate.prompt_probably([message]) == estimate.prompt_probably([whole])
