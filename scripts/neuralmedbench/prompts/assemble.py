"""From items to the very words and pictures that a model is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.arms import View, views
from neuralmedbench.prompts.asking import inquiry_of, is_asked
from neuralmedbench.prompts.examples import examples_for
from neuralmedbench.prompts.schemas import checklist_schema, stepwise_schema
from neuralmedbench.prompts.texts import within_words
from neuralmedbench.prompts.turns import checklist_sections, dialogue_turns, single_turn
from neuralmedbench.records.items import Disclosure, Exemplar, Item, Runner, Strategy
from neuralmedbench.records.requests import Inquiry, Request, RequestImage, RequestTurn

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
