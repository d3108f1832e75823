"""A model on this machine that answers every request after its content, and counts what it delivered."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import re
import time
from collections import defaultdict
from contextlib import suppress
from typing import Any, NamedTuple

from aiohttp import web

from models_fixtures import Server, reply
from neuralmedbench.models.builtin import format as forms
from neuralmedbench.models.protocol import Message
from neuralmedbench.records.case import Plane
from neuralmedbench.records.case import Sequence as Kind

DIAGNOSES = (
    "Glioblastoma",
    "Acute ischemic stroke",
    "Multiple sclerosis",
    "Meningioma",
    "Normal brain",
    "Brain abscess",
    "Alzheimer disease",
)
PLACES = ("left temporal lobe", "right frontal lobe", "left insula", "pons")
SIDES = ("left", "right", "bilateral", "midline")


class Delivery(NamedTuple):
    """An answer that was handed over whole; both times are those of `time.monotonic`.

    A client that was killed before it read the answer is often not noticed: the system takes the bytes all the same.
    """

    asked: float
    done: float


class Loopback(Server):
    """Answers that follow from the request alone, as a model does that is asked with a seed.

    Parameters
    ----------
    seed : int
        Seed of the delays.
    longest_s : float
        Longest delay.

    Attributes
    ----------
    delivered : dict of str to list of Delivery
        By the digest of a request's body (two samples differ in their seed), in order of time.
    """

    def __init__(self, seed: int = 0, longest_s: float = 0.5) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self._longest_s = longest_s
        self.delivered: dict[str, list[Delivery]] = defaultdict(list)

    def forget(self) -> None:
        """Begin to count anew."""
        self.delivered.clear()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body, asked = await request.json(), time.monotonic()
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        await asyncio.sleep(self._random.uniform(0.05, self._longest_s))
        response = web.json_response(reply(answer_to(body, digest)))
        with suppress(ConnectionError):  # the client was killed
            await response.prepare(request)
            await response.write_eof()
            self.delivered[digest].append(Delivery(asked, time.monotonic()))
        return response


def answer_to(body: dict[str, Any], digest: str) -> str:
    """Answer in the form that is asked for, with a content that the digest of the request decides."""
    choice = random.Random(digest)
    messages = [Message(role=message["role"], text=_text(message["content"])) for message in body["messages"]]
    if "<candidate" in messages[-1].text:
        graded = grade_of(messages[0].text, messages[-1].text, choice)
        whole = {"explanation": f"see {digest[:8]}"} if graded.keys() & {"main_condition", "steps"} else {}
        return json.dumps(graded | whole)
    form, confidence = forms.wanted(messages), round(choice.random(), 3)
    findings = f"Findings of {digest[:8]}."
    place, side = choice.choice(PLACES), choice.choice(SIDES)
    review = forms.Review(
        seen="MRI; FLAIR; axial", location=place, side=side, findings=findings, missing="nothing", rationale=f"Because of {digest[8:16]}."
    )
    if form is forms.Form.CHECKLIST:
        named = [forms.Candidate(name, f"sign of {name.lower()}", "age") for name in choice.sample(DIAGNOSES, 4)]
        return forms.checklist(named, review, confidence)
    if form is forms.Form.LESION_CHECKLIST:
        return forms.lesion_checklist(forms.Candidate("infarct", "bright", "no sudden onset"), review, confidence)
    if form is forms.Form.LESION:
        return forms.lesion("infarct", place, side, findings, confidence)
    if form is forms.Form.FIELDS:
        return forms.fields(
            modality=choice.choice(("MRI", "CT")),
            kind=choice.choice((Kind.FLAIR, Kind.T1W, Kind.DWI)),
            plane=choice.choice(tuple(Plane)),
            diagnosis_class=choice.choice(("normal", "tumor", "stroke")),
            subtype=None,
            confidence=confidence,
        )
    return forms.differential(choice.sample(DIAGNOSES, 4), findings, f"Because of {digest[8:16]}.", confidence)


def grade_of(system: str, asked: str, choice: random.Random) -> dict[str, Any]:
    """Grade as the prompt of one of the tasks asks; what it quotes are the first words of the candidate."""
    asked, _, candidate = asked.partition("<candidate")
    words = re.match(r"[-\w]*>\s*(\S+(?: \S+)?)", candidate)
    quote = words[1] if words else ""
    if '{"steps"' in system:
        kinds = ("reasoning", "reasoning", "citation")
        steps = [{"quote": quote, "kind": kind, "evidence": choice.choice(("supported", "contradicted"))} for kind in kinds]
        known = re.findall(r"^(\d+)\. ", asked.partition("Arguments of the reference:")[2], re.MULTILINE)
        return {"steps": steps, "covered": [int(number) for number in known if choice.random() < 0.5]}
    if '{"errors"' in system:
        codes = choice.sample(re.findall(r"^- (\w+): ", asked.partition("\nErrors:")[2], re.MULTILINE), 2)
        return {"errors": [{"code": code, "significant": place, "quote": quote, "explanation": "e"} for place, code in enumerate(codes)]}
    if '{"met"' in system:
        names = re.findall(r"^- (\w+): ", asked.partition("\nCriteria:")[2], re.MULTILINE)
        return {name: {"met": choice.randint(0, 1), "explanation": "e"} for name in names}
    main = choice.randint(0, 1)
    return {"main_condition": main, "core_diagnosis": main * choice.randint(0, 1)}


def _text(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
