"""Render items as requests: the exact text and pictures that a model is sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from neuralmedbench.config.arms import ArmVariant
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.answer_schemas import checklist_schema, fields_in_words, rounds, stage_turns, stepwise_schema
from neuralmedbench.prompts.arms import View, variant_views, views, with_added_text, within_words
from neuralmedbench.prompts.conversations import (
    ASK_ORDERS,
    ask_applies,
    has_viewer,
    has_work_up,
    inquiry_of,
    viewer_of,
    with_informant,
    work_up_of,
)
from neuralmedbench.prompts.parts import labelled_images, render_message
from neuralmedbench.records.arm_changes import CHOICE, AlteredPicture
from neuralmedbench.records.case import SliceRow
from neuralmedbench.records.checklist import SECTIONS, with_places
from neuralmedbench.records.items import (
    OPTION,
    Arm,
    Disclosure,
    Exemplar,
    Family,
    Item,
    ItemImage,
    Runner,
    Strategy,
    Turn,
    evidence_images,
)
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.requests import EARLIER, Inquiry, Request, RequestImage, RequestTurn, order_of_parts
from neuralmedbench.records.views import Viewer, ViewScan, viewer_digest

STEPWISE = (Strategy.COT, Strategy.SELF_CONSISTENCY)
"""Strategies that ask for steps before the answer."""


LACKING = {
    "mirrored": "no item has axial or coronal slices that were cut here (the orientation of other pictures is unknown)",
    "another": "no item has a patient with a disease of another family in the vocabulary and pictures of the same sequence and plane",
    "without_lesion": "no item has the known lesion on some, but not all, of its pictures",
    "at_lesion": "no item has a lesion of known place that a slice there shows",
    "suggestion": "no item has a plausible wrong answer",
    "shuffle": "no item has options that say the same in another order",
    "none_of_the_above": "no item has options of which the right one can be taken away",
}
"""Why an arm changes no item, by its change."""


@dataclass(frozen=True)
class CaseMaterial:
    """Material besides the items: what arms disclose, few-shot examples, arms with a file, their altered pictures, scans to look through, oracle slices."""

    disclosures: Sequence[Disclosure] = ()
    exemplars: Sequence[Exemplar] = ()
    arms: Mapping[str, ArmVariant] = field(default_factory=dict)
    altered: Sequence[AlteredPicture] = ()
    views: Sequence[ViewScan] = ()
    oracle: Sequence[SliceRow] = ()


def assemble(items: Sequence[Item], material: CaseMaterial, config: BenchmarkConfig, templates: Templates) -> list[Request]:
    """Render every item in every arm and strategy of a benchmark.

    Parameters
    ----------
    items : sequence of Item
        The items.
    material : CaseMaterial
        Texts that arms disclose, few-shot examples, the arms that have a file, and their altered pictures.
    config : BenchmarkConfig
        Arms, strategies and number of samples.
    templates : Templates
        The prompt templates.

    Returns
    -------
    list of Request
        Sorted by item, arm and strategy. `few_shot` covers only items with suitable examples, and no dialogues.

    Raises
    ------
    ConfigError
        If a template is invalid, an arm in the yaml changes no item, or a strategy in the yaml applies to no item.
    """
    # 1. cut every case to the text budget, 2. show it as each arm does, 3. ask it by each strategy
    cut = {item.item_id: within_words(item, config.max_case_words) for item in items}
    shortened = [item for item, _ in cut.values()]
    by_arm = {
        arm: variant_views(shortened, material.arms[arm], material.altered, material.disclosures, material.oracle)
        if arm in material.arms
        else views(shortened, arm, material.disclosures)
        for arm in config.arms
    }
    # too few different diagnoses for rivals is no mistake in the yaml: `build_items` says so, and the arm asks nothing
    needed = [arm for arm in config.arms if not CHOICE.fullmatch(arm)]
    if "arms" in config.model_fields_set and (idle := [arm for arm in needed if not by_arm[arm]]):
        config_of = material.arms[idle[0]].config if idle[0] in material.arms else None
        changes = (config_of.pictures, config_of.adds, config_of.options) if config_of else ()
        lacking = next((LACKING[change] for change in changes if change in LACKING), "no item has what it leaves out, cuts or shows")
        message = f"arm {idle[0]}: {lacking}, so it would ask nothing; take it out of `arms`"
        raise ConfigError(message)
    scans: dict[str, list[ViewScan]] = defaultdict(list)
    for scan in material.views:
        scans[scan.case_id].append(scan)
    prompts = {
        arm: PromptSettings(
            config,
            _templates_of(material.arms.get(arm), templates),
            material.exemplars,
            _order_of(material.arms.get(arm)),
            scans,
        )
        for arm in config.arms
    }
    requests = [
        replace(request, words_cut=cut[request.item_id][1])
        for strategy in config.strategies
        for arm in config.arms
        for view in by_arm[arm]
        if (request := _request(with_added_text(view, material.arms.get(arm), prompts[arm].templates), arm, strategy, prompts[arm]))
    ]
    requests = _with_earlier_turns(requests, {arm for arm, variant in material.arms.items() if variant.config.adds == "own_answer"})
    if unasked := set(config.strategies) - {request.strategy for request in requests}:
        lacking = "example that could be shown" if min(unasked) == Strategy.FEW_SHOT else "item that is asked in this way"
        message = f"strategy {min(unasked)}: there is no {lacking}; take it out of `strategies`"
        raise ConfigError(message)
    asked_arms = {request.arm for request in requests}
    if of_work_ups := [arm for arm in config.arms if _order_of(material.arms.get(arm)) and arm not in asked_arms]:
        message = f"arm {of_work_ups[0]}: {_where_asked(_order_of(material.arms[of_work_ups[0]]))}, or take it out of `arms`"
        raise ConfigError(message)
    return sorted(requests, key=lambda request: (request.item_id, request.arm, request.strategy))


def _where_asked(order: str) -> str:
    """Say which strategies ask in an order of evidence."""
    if order in ASK_ORDERS:
        return "it is one of work-ups and of questions with options whose facts are asked for; add `workup` or `ask`, with such items, to `strategies`"
    return "it is one of work-ups; add `workup`, with cases that have a history and more to ask for, to `strategies`"


def _templates_of(arm: ArmVariant | None, templates: Templates) -> Templates:
    """Return the templates in the words of an arm."""
    return templates if arm is None or arm.config.wording == "keep" else templates.paraphrase(arm.values["paraphrase"])


def _with_earlier_turns(requests: Sequence[Request], arms: Collection[str]) -> list[Request]:
    """Give the requests of some arms the messages of the arm full, whose answer they show."""
    full = {(request.item_id, request.strategy): request for request in requests if request.arm == Arm.FULL}
    found = []
    for request in requests:
        if request.arm not in arms:
            found.append(request)
            continue
        if sum(turn.words.count(EARLIER) for turn in request.turns) != 1:
            message = f"{request.item_id}: its text holds {EARLIER}, where the arm {request.arm} shows an earlier answer; take it out"
            raise ConfigError(message)
        earlier = full[request.item_id, request.strategy]
        digest = sha256_of_value({"request": request.request_id, "earlier": earlier.request_id})
        found.append(replace(request, earlier=earlier.turns, request_id=digest))
    return found


@dataclass(frozen=True)
class PromptSettings:
    """Settings, templates and examples by which requests are rendered, the order of evidence of an arm, and the scans of cases."""

    config: BenchmarkConfig
    templates: Templates
    exemplars: Sequence[Exemplar]
    order: str = ""
    scans: Mapping[str, Sequence[ViewScan]] = field(default_factory=dict)


def _order_of(arm: ArmVariant | None) -> str:
    """Return the order of evidence of an arm; empty: that of the strategy."""
    return arm.values["order"] if arm is not None and arm.config.evidence == "ordered" else ""


def _request(view: View, arm: str, strategy: Strategy, settings: PromptSettings) -> Request | None:
    """Render one item under one arm; None if the strategy does not apply to it."""
    # a layout may name the unit and order of coordinates that its models were trained with
    stated = view.layout.config.coordinates if view.layout else None
    unit, order = stated or (settings.config.coordinates, "xy")
    item, templates = view.item, settings.templates.sharing(coordinates=unit, order=order)
    stepwise = strategy in STEPWISE
    examples: list[Exemplar] = []
    if strategy is Strategy.FEW_SHOT:
        examples = _examples_for(item, settings.exemplars, settings.config)
        if not examples:
            return None
    inquiry: Inquiry | None = None
    viewer: Viewer | None = None
    scans = settings.scans.get(item.case_id, ())
    if strategy is Strategy.VIEWER and not (arm == Arm.FULL and has_viewer(item, scans)):
        return None
    if strategy is Strategy.ASK and not ask_applies(item, arm, settings.order):
        return None
    if (settings.order and strategy not in (Strategy.WORKUP, Strategy.ASK)) or (
        strategy is Strategy.WORKUP
        and not ((settings.order or arm in settings.config.workup_arms) and _is_worked_up(item, settings.config))
    ):
        return None
    sections = _checklist_sections(item, settings.config.answer_form)
    schema = checklist_schema(sections) if sections else item.answer_schema
    schema = stepwise_schema(schema) if stepwise and schema else schema
    # orientation is known only for slices that this pipeline cut: they have a position
    oriented = any(image.position_mm is not None for image in item.images)
    system = templates.render("system", persona=settings.config.persona, oriented=oriented)
    if item.runner is Runner.DIALOGUE:
        turns = _dialogue_turns(view, templates, stepwise=stepwise, sections=sections)
    elif item.turns:
        turns, schema = stage_turns(view, templates, stepwise=stepwise), ""
    else:
        # the schema with its reasoning key goes into the prompt of a structured item too
        asked = replace(view, item=replace(item, answer_schema=schema))
        turns = (single_turn(asked, templates, examples, stepwise=stepwise, sections=sections),)
    if strategy is Strategy.ASK:
        first, inquiry = inquiry_of(item, settings.config.max_questions, templates, order=settings.order, sections=sections)
        inquiry = with_informant(inquiry, templates) if settings.config.informant else inquiry
        turns = (first,)
    if strategy is Strategy.WORKUP:
        most = settings.config.max_examinations
        first, inquiry = work_up_of(item, settings.order or "asked", most, templates, disclosed=view.disclosed, sections=sections)
        turns = (first,)
    if strategy is Strategy.VIEWER and settings.config.viewer is not None:
        sections = _checklist_sections(
            item, "short" if settings.config.answer_form == "short" else "checklist"
        )  # views have no picture number
        first, viewer = viewer_of(item, scans, settings.config.viewer, templates, sections=sections)
        turns = (first,)
    return Request(
        item_id=item.item_id,
        case_id=item.case_id,
        patient_id=item.patient_id,
        benchmark=item.benchmark,
        arm=arm,
        strategy=strategy,
        request_id=request_digest(system, turns, schema, inquiry, viewer),
        runner=item.runner,
        system=system,
        turns=turns,
        answer_schema=schema,
        samples=settings.config.samples,
        inquiry=inquiry,
        viewer=viewer,
        layout=view.layout.name if view.layout else "",
    )


def _is_worked_up(item: Item, config: BenchmarkConfig) -> bool:
    return has_work_up(item) and (not config.workup_cases or item.case_id in config.workup_cases)


def _examples_for(item: Item, exemplars: Sequence[Exemplar], config: BenchmarkConfig) -> list[Exemplar]:
    """Choose examples for an item: same runner and family, another patient, and no shared picture; none for an item with turns."""
    of_item = {image.sha256 for image in item.images}
    # some published splits have slices of one patient, or copies of one picture, in both parts
    fitting = [
        exemplar
        for exemplar in exemplars
        if not (item.turns or exemplar.item.turns)
        and (exemplar.item.runner, exemplar.item.family) == (item.runner, item.family)
        and exemplar.item.patient_id != item.patient_id
        and of_item.isdisjoint(image.sha256 for image in exemplar.item.images)
    ]
    return [replace(exemplar, item=within_words(exemplar.item, config.max_case_words)[0]) for exemplar in fitting[: config.few_shot]]


def example_text(item: Item, examples: Sequence[Exemplar], templates: Templates) -> str:
    """Render the text of the examples, each with its answer; they have case text and pictures only if the item does."""
    has_text = bool(item.notes or item.record)
    rendered = [
        {
            "question": example.item.question,
            "notes": example.item.notes if has_text else "",
            "record": example.item.record if has_text else "",
            "options": _lettered_options(example.item),
            "pictures": bool(_example_images(item, example.item)),
            "answer": example.answer,
        }
        for example in examples
    ]
    return templates.render("few_shot", examples=rendered)


def _example_pictures(view: View, examples: Sequence[Exemplar]) -> tuple[RequestImage, ...]:
    """Return the pictures of the examples, labelled like the item's and numbered by example; none if the item shows none."""
    return tuple(
        replace(image, label=f"Example {number}, {image.label}", example=True)
        for number, example in enumerate(examples, start=1)
        for image in labelled_images(
            replace(example.item, label_policy=view.item.label_policy), _example_images(view.item, example.item), name=view.label_name
        )
    )


def _example_images(item: Item, example: Item) -> tuple[ItemImage, ...]:
    """Return the pictures of an example: its options, and the others if the item shows such pictures."""
    return tuple(image for image in example.images if image.role == OPTION or evidence_images(item))


def _lettered_options(item: Item) -> list[tuple[str, str]]:
    """Pair the options of a choice item with their letters."""
    return list(zip(LETTERS, item.options, strict=False))


def request_digest(
    system: str, turns: tuple[RequestTurn, ...], answer_schema: str, inquiry: Inquiry | None = None, viewer: Viewer | None = None
) -> str:
    """Return the SHA-256 of everything that is or can be sent, with pictures by their digest."""
    rounds = [{"text": turn.text, "images": _digests(turn.images)} | order_of_parts(turn) for turn in turns]
    value: dict[str, object] = {"system": system, "turns": rounds, "answer_schema": answer_schema}
    if inquiry is not None:  # facts that the model may ask for can be sent too
        value["inquiry"] = [
            [[fact.text, fact.asked_by, _digests(fact.images)] for fact in inquiry.facts],
            [inquiry.max_questions, inquiry.unknown, inquiry.left, inquiry.closing],
        ]
    if inquiry is not None and inquiry.informant:
        value["informant"] = [inquiry.informant, inquiry.correction]
    if inquiry is not None and inquiry.is_work_up:
        value["work_up"] = [
            [[fact.name, fact.kind, fact.sequence, fact.plane] for fact in inquiry.facts],
            [inquiry.unclear, inquiry.again, inquiry.fixed],
        ]
    if viewer is not None:
        value["viewer"] = viewer_digest(viewer)
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


def _checklist_sections(item: Item, form: str) -> tuple[str, ...]:
    """Return the checklist sections of an item; none in the `short` form, for choice and structured items and for long free answers.

    The final answer of a dialogue is a differential, whatever its family. The form `evidence` asks for places where pictures are shown.
    """
    family = Family.DIFFERENTIAL_DIAGNOSIS if item.runner is Runner.DIALOGUE else item.family
    asked = SECTIONS.get(family, ()) if item.runner in (Runner.OPEN, Runner.DIALOGUE) and form != "short" else ()
    return with_places(asked) if form == "evidence" and evidence_images(item) else asked


def single_turn(
    view: View, templates: Templates, examples: Sequence[Exemplar], *, stepwise: bool, sections: Sequence[str] = ()
) -> RequestTurn:
    """Render the single message of an item, after its few-shot examples."""
    item = view.item
    case = {"notes": item.notes, "record": item.record, "given": item.given, "disclosed": view.disclosed, "pictures": bool(item.images)}
    task = {"question": templates.question(item.question), "stepwise": stepwise}
    form: dict[str, object]
    if item.runner is Runner.STRUCTURED:
        name, form = "structured", {"fields": fields_in_words(item.answer_schema)}
    elif item.runner is Runner.CHOICE:
        name, form = "choice", {"options": _lettered_options(item)}
    else:
        name, form = _template_of(item), {"sections": sections}
    images = labelled_images(item, item.images, name=view.label_name)
    turn = render_message(templates, name, "case", images, view.layout, **case, **task, **form)
    if not examples:
        return turn
    before = f"{example_text(item, examples, templates)}\n\n"
    return replace(turn, text=before + turn.text, images=(*_example_pictures(view, examples), *turn.images), example_characters=len(before))


def _template_of(item: Item) -> str:
    if item.runner is not Runner.OPEN or item.family not in TEMPLATE_OF_FAMILY:
        message = f"{item.item_id}: there is no prompt template for runner {item.runner} and family {item.family}"
        raise ConfigError(message)
    return TEMPLATE_OF_FAMILY[item.family]


def _dialogue_turns(view: View, templates: Templates, *, stepwise: bool, sections: Sequence[str] = ()) -> tuple[RequestTurn, ...]:
    """Render the rounds of a dialogue, with the parameters of `single_turn`; only the last round asks for all sections."""

    def values(_: Turn, last: bool) -> dict[str, object]:
        # findings are disclosed with the last round only
        return {"disclosed": view.disclosed if last else "", "stepwise": stepwise, "sections": sections if last else ()}

    images = view.item.images
    return rounds(view, templates, "dialogue", lambda turn: [image for image in images if image.image_id in turn.image_ids], values)
