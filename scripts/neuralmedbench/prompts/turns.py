"""The messages of one item: one, or those of a dialogue with fixed rounds."""

from __future__ import annotations

from collections.abc import Sequence

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.arms import View
from neuralmedbench.prompts.examples import example_pictures, example_text, lettered
from neuralmedbench.prompts.labels import labelled
from neuralmedbench.prompts.schemas import fields_in_words
from neuralmedbench.records.checklist import SECTIONS
from neuralmedbench.records.items import Exemplar, Family, Item, ItemImage, Runner, Turn
from neuralmedbench.records.requests import RequestTurn

TEMPLATE_OF_FAMILY = {
    Family.DIFFERENTIAL_DIAGNOSIS: "open_differential",
    Family.LESION_RECOGNITION: "lesion",
    Family.RATIONALE_GENERATION: "rationale",
    Family.QUESTION_ANSWERING: "open_answer",
}
"""Templates of the runner `open`."""


def checklist_sections(item: Item) -> tuple[str, ...]:
    """Give the sections of the checklist of an item; none for items of choice, structured ones and long free answers.

    The final answer of a dialogue is a differential whatever its family.
    """
    if item.runner is Runner.DIALOGUE:
        return SECTIONS[Family.DIFFERENTIAL_DIAGNOSIS]
    return SECTIONS.get(item.family, ()) if item.runner is Runner.OPEN else ()


def single_turn(
    view: View, templates: Templates, examples: Sequence[Exemplar], *, stepwise: bool, sections: Sequence[str] = ()
) -> RequestTurn:
    """Render the only message of an item."""
    item = view.item
    shown = {"notes": item.notes, "record": item.record, "given": item.given, "disclosed": view.disclosed, "pictures": bool(item.images)}
    asked = {"question": item.question, "stepwise": stepwise}
    if item.runner is Runner.STRUCTURED:
        text = templates.render("structured", **shown, **asked, fields=fields_in_words(item.answer_schema))
    elif item.runner is Runner.CHOICE:
        text = templates.render("choice", **shown, **asked, options=lettered(item))
    else:
        text = templates.render(_template_of(item), **shown, **asked, sections=sections)
    images = labelled(item, item.images)
    if not examples:
        return RequestTurn(text=text, images=images)
    before = f"{example_text(item, examples, templates)}\n\n"
    return RequestTurn(text=before + text, images=(*example_pictures(item, examples), *images), example_characters=len(before))


def _template_of(item: Item) -> str:
    if item.runner is not Runner.OPEN or item.family not in TEMPLATE_OF_FAMILY:
        message = f"{item.item_id}: there is no prompt template for runner {item.runner} and family {item.family}"
        raise ConfigError(message)
    return TEMPLATE_OF_FAMILY[item.family]


def dialogue_turns(view: View, templates: Templates, *, stepwise: bool, sections: Sequence[str] = ()) -> tuple[RequestTurn, ...]:
    """Render the rounds of a dialogue, with the parameters of `single_turn`; all rounds but the last are answered in the short form."""
    turns: list[RequestTurn] = []
    shown = 0
    for number, turn in enumerate(view.item.turns, start=1):
        last = number == len(view.item.turns)
        images = labelled(view.item, _images_of(view.item, turn), before=shown)
        shown += len(images)
        text = templates.render(
            "dialogue",
            turn=number,
            turns=len(view.item.turns),
            reveal=turn.reveal,
            question=turn.question,
            pictures=bool(images),
            disclosed=view.disclosed if last else "",
            stepwise=stepwise,
            sections=sections if last else (),
        )
        turns.append(RequestTurn(text=text, images=images))
    return tuple(turns)


def _images_of(item: Item, turn: Turn) -> tuple[ItemImage, ...]:
    return tuple(image for image in item.images if image.image_id in turn.image_ids)
