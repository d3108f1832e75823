"""Strategy `ask` of dialogues: the model is told the complaint alone and has to ask for everything else."""

from __future__ import annotations

import re
from collections.abc import Sequence

from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.labels import labelled
from neuralmedbench.records.items import Arm, Item, Runner
from neuralmedbench.records.requests import Fact, Inquiry, RequestTurn

ARMS = (Arm.FULL, Arm.NO_IMAGE, Arm.SHUFFLED_IMAGE)
"""Arms that make sense where nothing is shown unasked."""
SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=\S)|\n+")
ASKED_BY = "imaging image images picture pictures scan scans mri mr ct radiology neuroimaging tomography brain head"
"""Words by which pictures are asked for."""


def is_asked(item: Item, arm: str) -> bool:
    """Whether an item has something that can be asked for under an arm: a dialogue that tells more than one sentence."""
    return item.runner is Runner.DIALOGUE and arm in ARMS and len(sentences(item)) > 1


def inquiry_of(item: Item, most: int, templates: Templates, *, sections: Sequence[str] = ()) -> tuple[RequestTurn, Inquiry]:
    """Turn a dialogue of fixed rounds into one in which the model asks."""
    first, *others = sentences(item)
    facts = [Fact(text=sentence) for sentence in others]
    if item.images:
        facts.append(Fact(text=templates.render("ask_pictures"), asked_by=ASKED_BY, images=labelled(item, item.images)))
    inquiry = Inquiry(
        facts=tuple(facts),
        max_questions=most,
        unknown=templates.render("ask_unknown"),
        left=templates.render("ask_left"),
        closing=templates.render("ask_closing", sections=sections),
    )
    return RequestTurn(text=templates.render("ask", complaint=first, questions=most, sections=sections)), inquiry


def sentences(item: Item) -> list[str]:
    """Sentences and lines that the rounds of a dialogue reveal, in their order."""
    return [part.strip() for turn in item.turns for part in SENTENCE.split(turn.reveal) if part.strip(" -*\t")]
