"""Render items as the words and pictures that a model is sent."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.arms import View, views, within_words
from neuralmedbench.prompts.examples import example_pictures, example_text, examples_for, lettered
from neuralmedbench.prompts.labels import labelled
from neuralmedbench.records.checklist import SECTIONS
from neuralmedbench.records.items import Arm, Disclosure, Exemplar, Family, Item, ItemImage, Runner, Strategy, Turn
from neuralmedbench.records.requests import Fact, Inquiry, Request, RequestImage, RequestTurn

STEPWISE = (Strategy.COT, Strategy.SELF_CONSISTENCY)
"""Strategies that ask for steps before the answer."""


@dataclass(frozen=True)
class CaseMaterial:
    """What may be shown beside items: what arms disclose, and examples for few-shot prompts."""

    disclosures: Sequence[Disclosure] = ()
    exemplars: Sequence[Exemplar] = ()


def assemble(items: Sequence[Item], shown: CaseMaterial, config: BenchmarkConfig, templates: Templates) -> list[Request]:
    """Render every item in every arm and strategy of a benchmark.

    Parameters
    ----------
    items : sequence of Item
        What is asked.
    shown : Shown
        What arms and strategies may show beside it.
    config : BenchmarkConfig
        Arms, strategies and number of samples.
    templates : Templates
        The prompt templates.

    Returns
    -------
    list of Request
        Sorted by item, arm and strategy. Under `few_shot` an item stands only when there are examples that it may be shown, and a dialogue
        never does.

    Raises
    ------
    ConfigError
        If a template is wrong, an arm that the yaml names changes nothing of any item, or examples shall be shown and there are none.
    """
    cut = {item.item_id: within_words(item, config.max_case_words) for item in items}
    kept = [item for item, _ in cut.values()]
    seen = {arm: views(kept, arm, shown.disclosures) for arm in config.arms}
    if "arms" in config.model_fields_set and (idle := [arm for arm in config.arms if not seen[arm]]):
        message = f"arm {idle[0]}: no item has what it leaves out, cuts or shows, so it would ask nothing; take it out of `arms`"
        raise ConfigError(message)
    prompt = Prompt(config, templates, shown.exemplars)
    requests = [
        replace(request, words_cut=cut[request.item_id][1])
        for strategy in config.strategies
        for arm in config.arms
        for view in seen[arm]
        if (request := _request(view, arm, strategy, prompt))
    ]
    if unasked := set(config.strategies) - {request.strategy for request in requests}:
        lacking = "example that could be shown" if min(unasked) == Strategy.FEW_SHOT else "item that is asked in this way"
        message = f"strategy {min(unasked)}: there is no {lacking}; take it out of `strategies`"
        raise ConfigError(message)
    return sorted(requests, key=lambda request: (request.item_id, request.arm, request.strategy))


@dataclass(frozen=True)
class Prompt:
    """By what requests are rendered."""

    config: BenchmarkConfig
    templates: Templates
    exemplars: Sequence[Exemplar]


def _request(view: View, arm: str, strategy: Strategy, prompt: Prompt) -> Request | None:
    """Render one item as one arm shows it; None when the strategy has nothing to show."""
    item, templates = view.item, prompt.templates
    stepwise = strategy in STEPWISE
    examples: list[Exemplar] = []
    if strategy is Strategy.FEW_SHOT:
        examples = examples_for(item, prompt.exemplars, prompt.config)
        if not examples:
            return None
    inquiry: Inquiry | None = None
    if strategy is Strategy.ASK and not is_asked(item, arm):
        return None
    sections = checklist_sections(item) if prompt.config.answer_form == "checklist" else ()
    schema = checklist_schema(sections) if sections else item.answer_schema
    schema = stepwise_schema(schema) if stepwise and schema else schema
    # only of slices that were cut from scans here is it known on which side the patient's left is
    system = templates.render("system", oriented=any(image.position_mm is not None for image in item.images))
    turns = (
        dialogue_turns(view, templates, stepwise=stepwise, sections=sections)
        if item.runner is Runner.DIALOGUE
        else (
            single_turn(replace(view, item=replace(item, answer_schema=schema)), templates, examples, stepwise=stepwise, sections=sections),
        )
    )
    if strategy is Strategy.ASK:
        first, inquiry = inquiry_of(item, prompt.config.max_questions, templates, sections=sections)
        turns = (first,)
    return Request(
        item_id=item.item_id,
        case_id=item.case_id,
        patient_id=item.patient_id,
        benchmark=item.benchmark,
        arm=arm,
        strategy=strategy,
        request_id=request_digest(system, turns, schema, inquiry),
        runner=item.runner,
        system=system,
        turns=turns,
        answer_schema=schema,
        samples=prompt.config.samples,
        inquiry=inquiry,
    )


def request_digest(system: str, turns: tuple[RequestTurn, ...], answer_schema: str, inquiry: Inquiry | None = None) -> str:
    """SHA-256 over everything that is or can be sent, pictures by their digest; equal words and pictures have equal digests."""
    said = [{"text": turn.text, "images": _digests(turn.images)} for turn in turns]
    value: dict[str, object] = {"system": system, "turns": said, "answer_schema": answer_schema}
    if inquiry is not None:
        value["inquiry"] = [
            [[fact.text, fact.asked_by, _digests(fact.images)] for fact in inquiry.facts],
            [inquiry.max_questions, inquiry.unknown, inquiry.left, inquiry.closing],
        ]
    return sha256_of_value(value)


def _digests(images: Sequence[RequestImage]) -> list[list[str]]:
    return [[image.label, image.sha256] for image in images]


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


ASK_ARMS = (Arm.FULL, Arm.NO_IMAGE, Arm.SHUFFLED_IMAGE)
"""Arms that make sense where nothing is shown unasked."""

SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=\S)|\n+")

ASKED_BY = "imaging image images picture pictures scan scans mri mr ct radiology neuroimaging tomography brain head"
"""Words by which pictures are asked for."""


def is_asked(item: Item, arm: str) -> bool:
    """Whether an item has something that can be asked for under an arm: a dialogue that tells more than one sentence."""
    return item.runner is Runner.DIALOGUE and arm in ASK_ARMS and len(sentences(item)) > 1


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


MAX_CANDIDATES = 5

WORDS: dict[str, object] = {"type": "string"}

CANDIDATE: dict[str, object] = {
    "type": "object",
    "properties": {"name": WORDS, "for": WORDS, "against": WORDS},
    "required": ["name", "for", "against"],
    "additionalProperties": False,
}
"""A hypothesis with what speaks for it and against it."""

SECTION_RULES: dict[str, dict[str, object]] = {
    "LESION": CANDIDATE,
    "SIDE": {"enum": ["left", "right", "bilateral", "midline", "none"]},
    "DIFFERENTIAL": {"type": "array", "items": CANDIDATE, "minItems": 1, "maxItems": MAX_CANDIDATES},
    "CONFIDENCE": {"type": "number", "minimum": 0, "maximum": 1},
}
"""Sections of a checklist that are more than words."""


def checklist_schema(sections: Sequence[str]) -> str:
    """Give the JSON schema of a checklist: a key for each of its sections, in their order, by its name in small letters."""
    properties = {name.lower(): SECTION_RULES.get(name, WORDS) for name in sections}
    return json.dumps({"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False})


def stepwise_schema(schema: str) -> str:
    """Give a JSON schema whose first key holds the steps that lead to the answer."""
    value = json.loads(schema)
    properties = {"reasoning": {"type": "string"}, **value["properties"]}
    return json.dumps({**value, "properties": properties, "required": list(properties)})


def fields_in_words(schema: str) -> dict[str, str]:
    """Say in words what each field of a JSON schema may hold."""
    return {name: _allowed(rule) for name, rule in json.loads(schema)["properties"].items()}


def _allowed(schema: dict[str, object]) -> str:
    """Say in words what a field of an answer may hold."""
    labels = schema.get("enum")
    if isinstance(labels, list):
        return " | ".join("null" if label is None else json.dumps(label) for label in labels)
    return "your steps, in a few sentences" if schema.get("type") == "string" else "a number from 0 to 1 | null"
