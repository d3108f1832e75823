"""Items (the questions), gold (the reference answers) and disclosures (what an arm may show beyond the item)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol, TypeVar

from neuralmedbench.records.case import SliceRow

SCHEMA_VERSION = 8

T = TypeVar("T")

NO_LESION = "no lesion"
"""Answer to a lesion item of a case without a lesion."""


class Kind(StrEnum):
    """Data of a benchmark; only scans have per-case jobs."""

    SCANS = "scans"
    PICTURES = "pictures"
    TEXT = "text"


class Axis(StrEnum):
    """Side of the Two-Axis Framework."""

    DEPTH = "depth"
    BREADTH = "breadth"
    CONTROL = "control"


class Family(StrEnum):
    """Task family."""

    DIFFERENTIAL_DIAGNOSIS = "differential_diagnosis"
    LESION_RECOGNITION = "lesion_recognition"
    RATIONALE_GENERATION = "rationale_generation"
    CLASSIFICATION = "classification"
    QUESTION_ANSWERING = "question_answering"


DIAGNOSES = frozenset({Family.DIFFERENTIAL_DIAGNOSIS, Family.RATIONALE_GENERATION, Family.CLASSIFICATION})
"""Families with a ranked differential as open answer."""


class Level(StrEnum):
    """Level of Neural-MedBench."""

    DIRECT = "direct"
    COMPLEX = "complex"
    DIALOGUE = "dialogue"
    NONE = "none"


class Arm(StrEnum):
    """What a request leaves out, exchanges or adds to its item.

    Besides these there are `first_<x>_percent` (`FIRST_PART`) and the arms with a file (`config.arms`).
    """

    FULL = "full"
    NO_IMAGE = "no_image"
    NO_TEXT = "no_text"
    SHUFFLED_IMAGE = "shuffled_image"
    FINDINGS_DISCLOSED = "findings_disclosed"
    FINDINGS_OF_ANOTHER = "findings_of_another"
    FINDINGS_ONLY = "findings_only"
    FINDINGS_AND_HISTORY = "findings_and_history"
    DIAGNOSIS_WITHHELD = "diagnosis_withheld"
    EVIDENCE_SUPPLIED = "evidence_supplied"


DISCLOSES_FINDINGS = frozenset(
    {Arm.FINDINGS_DISCLOSED, Arm.FINDINGS_OF_ANOTHER, Arm.FINDINGS_ONLY, Arm.FINDINGS_AND_HISTORY, Arm.EVIDENCE_SUPPLIED}
)


def discloses_findings(arm: str) -> bool:
    """Return True for an arm that shows statements of a reference, which an answer could copy.

    Of the arms with a file it is those whose name has the value `findings` of a parameter: `evidence-findings`.
    """
    return arm in DISCLOSES_FINDINGS or "findings" in arm.split("-")[1:]


FIRST_PART = re.compile(r"first_([1-9]\d?)_percent")
"""Name of an arm that shows the first part of a case's text, in per cent of its words."""


class Strategy(StrEnum):
    """Prompting strategy.

    `cot` requests steps before the answer; `self_consistency` does the same and lets the samples vote; `few_shot` shows answered examples.
    Under `ask` the model asks questions in a dialogue, instead of fixed rounds (`direct`): another protocol, never pooled with the first.
    Under `workup` it gets the history and asks for one examination a turn, with four candidates and their probabilities.
    Under `viewer` it looks through the scans: it asks for slices, one action a turn.
    """

    DIRECT = "direct"
    COT = "cot"
    FEW_SHOT = "few_shot"
    SELF_CONSISTENCY = "self_consistency"
    ASK = "ask"
    WORKUP = "workup"
    VIEWER = "viewer"


class _Asked(Protocol):
    @property
    def arm(self) -> str | None: ...

    @property
    def strategy(self) -> str | None: ...


def is_headline(row: _Asked) -> bool:
    """Return True for a request, an answer or a number of the whole question without a strategy: what the first numbers of a report count."""
    return (row.arm, row.strategy) == (Arm.FULL, Strategy.DIRECT)


NAMED_WINDOWS = ("blood", "bone", "soft-tissue", "wide")
"""CT windows that a label names; the brain window is the default and is not named."""

OPTION = "option"
"""Role of a picture that is an answer option: its `label` is the text of that option."""

PRIOR_SCAN, CURRENT_SCAN, PART = NEEDED = ("prior", "current", "part")
"""Roles of pictures that a question needs together, so that no picture budget leaves one out: of an earlier and of the present examination,
and one of several that the question counts."""


class Runner(StrEnum):
    """How an item is run and scored."""

    CHOICE = "choice"
    OPEN = "open"
    DIALOGUE = "dialogue"
    STRUCTURED = "structured"


@dataclass(frozen=True, kw_only=True)
class ItemImage:
    """A picture of an item, in display order; units as in `records.case.Slice`.

    `tiles_mm` has the positions of a montage's slices and is empty for a single slice. `window` is the name of a CT window other than that
    of the brain. `label` is the picture's name in the question (`Figure B`), shown under every label policy; for an answer option (`OPTION`)
    it is the option's text. Pictures of options come last, in the order of their letters.
    """

    image_id: str
    path: str
    sha256: str
    volume_sha256: str
    sequence: str
    plane: str
    role: str
    position_mm: float | None
    mm_per_px: float | None
    oracle: bool
    tiles_mm: tuple[float, ...] = ()
    window: str = ""
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One turn of a dialogue under the protocol `rounds`, or one question of a structured item whose values are asked for one after another.

    Attributes
    ----------
    reveal : str
        Text revealed in this turn (part of the history, findings of the examination...).
    question : str
        The question.
    image_ids : tuple of str
        Pictures shown in this turn.
    asks : tuple of str
        Structured items: the fields of the item's answer schema that this turn asks for.
    stage : str
        Structured items: the stage of a ladder to which the turn belongs; empty: it is asked beside the ladder.
    retry : bool
        True if the stage belongs to the guided retry that follows the ladder.
    """

    reveal: str
    question: str
    image_ids: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    stage: str = ""
    retry: bool = False


@dataclass(frozen=True, kw_only=True)
class Item:
    """One question to a model, without anything that reveals the answer.

    Attributes
    ----------
    item_id : str
        `<benchmark>/<case_id>/<family>`, or `<benchmark>/<image_id>` for single pictures.
    patient_id : str
        The cluster of all statistics.
    turns : tuple of Turn
        For the runner `dialogue`, and for structured items that are asked in stages.
    options : tuple of str
        Only for the runner `choice`.
    rivals : tuple of str
        Names of diagnoses, the reference among them, of an open item or a dialogue that some arm asks as a choice; empty: none does.
    label_policy : str
        `full` to label pictures with sequence, plane and position, or `none`.
    lesion_shown : bool or None
        True if a slice through the lesion is among the pictures; None if there is no lesion or it is unknown.
    notes, record : str
        Context: de-identified notes, and the record as lines of text; empty in a dialogue, whose turns reveal them.
    given : str
        A diagnosis stated in the question (the task is to find the evidence for it); the arm `diagnosis_withheld` leaves it out.
    tags : tuple of str
        Groups for tables: the data set, terms that are not in the vocabulary.
    answer_schema : str
        JSON schema of the answer (runner `structured`), or empty.
    """

    item_id: str
    case_id: str
    patient_id: str
    benchmark: str
    axis: Axis
    family: Family
    level: Level
    runner: Runner
    question: str
    turns: tuple[Turn, ...] = ()
    options: tuple[str, ...] = ()
    images: tuple[ItemImage, ...] = ()
    label_policy: str = "full"
    lesion_shown: bool | None = None
    notes: str = ""
    record: str = ""
    given: str = ""
    language: str = "en"
    date: str = ""
    pair_id: str = ""
    tags: tuple[str, ...] = ()
    answer_schema: str = ""
    rivals: tuple[str, ...] = ()

    @property
    def has_free_answer(self) -> bool:
        """True if it is answered in free text that need not name a diagnosis."""
        return self.runner is Runner.OPEN and self.family is Family.QUESTION_ANSWERING


def evidence_images(item: Item) -> tuple[ItemImage, ...]:
    """Return the pictures that show the case; pictures that are answer options are not evidence and stay under every arm."""
    return tuple(image for image in item.images if image.role != OPTION)


def with_only(item: Item, names: Collection[str]) -> Item:
    """Keep only the pictures with these ids, in their turns of a dialogue; options stay."""
    images = tuple(image for image in item.images if image.role == OPTION or image.image_id in names)
    left = {image.image_id for image in images}
    turns = tuple(replace(turn, image_ids=tuple(name for name in turn.image_ids if name in left)) for turn in item.turns)
    return replace(item, images=images, turns=turns)


def slice_image(row: SliceRow) -> ItemImage:
    """Return a picture that was cut from a scan as a picture of an item."""
    return ItemImage(
        image_id=row.image_id,
        path=row.path,
        sha256=row.sha256,
        volume_sha256=row.volume_sha256,
        sequence=row.sequence,
        plane=row.plane,
        role="slice" if len(row.tiles) == 1 else "montage",
        position_mm=row.position_mm,
        mm_per_px=row.mm_per_px,
        oracle=row.oracle,
        tiles_mm=tuple(tile.position_mm for tile in row.tiles) if len(row.tiles) > 1 else (),
        window=row.window_name if row.window_name in NAMED_WINDOWS else "",
    )


def slice_of(image: ItemImage) -> tuple[str, str, str, float | None, tuple[float, ...]]:
    """Return what the CT windows of one slice, or of one montage, share: scan, sequence, plane and positions."""
    return image.volume_sha256, image.sequence, image.plane, image.position_mm, image.tiles_mm


def evenly_spaced(places: Sequence[T], most: int) -> list[T]:
    """Choose at most `most` of some places, evenly spaced from the first to the last; a single one is the middle one."""
    if len(places) <= most:
        return list(places)
    if most < 2:
        return [places[len(places) // 2]] * most
    gap = (len(places) - 1) / (most - 1)
    return [places[round(number * gap)] for number in range(most)]


SIDE_WORDS = {"left": "on the left", "right": "on the right", "bilateral": "on both sides", "midline": "in the midline"}
"""Sides of a lesion, in the words of a sentence."""


@dataclass(frozen=True, kw_only=True)
class Lesion:
    """The main lesion.

    Attributes
    ----------
    location : str
        Anatomical term of the vocabulary.
    side : str
        `left`, `right`, `bilateral`, `midline` or empty.
    behaviour : dict of str to str
        Signal by sequence: `hyperintense`, `hypointense`, `isointense`, `enhancing`, `restricted`...
    size_mm : float or None
        Largest diameter.
    position_mm : tuple of float or None
        Centre in the space of the reference sequence as de-identified, (x, y, z), LPS+, mm.
    extent_mm : tuple of float or None
        Widths along x, y and z.
    """

    location: str
    side: str
    behaviour: dict[str, str]
    size_mm: float | None = None
    position_mm: tuple[float, float, float] | None = None
    extent_mm: tuple[float, float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class LesionOnSlice:
    """The known lesion on one slice of a picture; boxes (x1, y1, x2, y2) are fractions of the picture's width and height.

    Attributes
    ----------
    position_mm : float
        Position of the slice, as in `records.case.Tile`.
    frame : tuple of float
        The part of the picture that the slice takes up.
    shown : bool
        True if the slice crosses the lesion, on a sequence that shows it.
    box : tuple of float or None
        The lesion; None if it is not shown, or its extent or the geometry of the picture is unknown.
    """

    position_mm: float
    frame: tuple[float, float, float, float]
    shown: bool
    box: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class ShownLesion:
    """Visibility of the known lesion in one picture, if its position is known. Part of gold: no prompt may read it.

    Attributes
    ----------
    case_id, image_id : str
        The picture.
    shown : bool
        True if a slice of it crosses the lesion, on a sequence that shows it.
    width_px : float or None
        Largest width of the lesion in pixels of the sent picture; None if it is not shown or its size is unknown.
    size_px : tuple of int or None
        Width and height of the picture.
    slices : tuple of LesionOnSlice
        Its slices in the order of the picture; empty if the geometry of the picture is unknown.
    """

    case_id: str
    image_id: str
    shown: bool
    width_px: float | None
    size_px: tuple[int, int] | None = None
    slices: tuple[LesionOnSlice, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """One criterion of a rubric: a statement about the answer and its points (negative ones are a penalty).

    `cap`: an answer that meets it is harmful and gets no points at all.
    """

    criterion: str
    text: str
    points: float
    cap: bool = False


FIELD_KEYS = {"diagnosis_class": "class"}
"""Keys of an answer that are reserved words in Python, by field."""


@dataclass(frozen=True, kw_only=True)
class GoldFields:
    """Reference values of the fields of a NeuroVLM-Bench answer; None if the data set has no ground truth."""

    modality: str | None = None
    sequence: str | None = None
    plane: str | None = None
    diagnosis_class: str | None = None
    subtype: str | None = None


def gold_fields(fields: GoldFields) -> dict[str, str]:
    """Return the labels by their key in an answer, without those that have no ground truth."""
    return {FIELD_KEYS.get(name, name): label for name, label in vars(fields).items() if label is not None}


@dataclass(frozen=True, kw_only=True)
class ReferenceValue:
    """Reference of one field of a structured answer, and the rule of its data set by which it is compared (`records.value_rules`).

    Attributes
    ----------
    field, rule : str
        Key in the answer, and name of the rule.
    value : str
        The reference; lists (boxes, keywords) are JSON.
    low, high : float or None
        Limits between which a number is right, both included.
    at_least : float or None
        Share of agreement from which a value is right; None: that of the rule.
    decides : bool
        False for a value that is scored by itself, and without which an answer may pass.
    """

    field: str
    rule: str
    value: str
    low: float | None = None
    high: float | None = None
    at_least: float | None = None
    decides: bool = True


@dataclass(frozen=True, kw_only=True)
class Gold:
    """Reference answer of an item. Read by score, tables, the rating round and the leak test; never by prompts or infer.

    Attributes
    ----------
    answer, aliases, icd10 : str, tuple of str, str
        The diagnosis, under its preferred name if it is in the vocabulary; equivalent names; its code.
    choice : str
        Letter of the right option (runner `choice`); `answer` is then its text.
    fields : GoldFields or None
        Structured items of NeuroVLM-Bench's form only.
    values : tuple of ReferenceValue
        Structured items whose answer is a number, a date, an index, a box...; one per field.
    differentials : tuple of str
        Other diagnoses to consider, ranked.
    findings, findings_complete : tuple of str, bool
        Visible findings, in words that do not name the diagnosis; True if the list is complete.
    rationale, must_not : tuple of str
        Statements that support the answer, and statements that would be wrong or dangerous; those that cap the score come last.
    rubric : tuple of Criterion
        Built from all of these.
    turn_leaders : tuple of str
        Dialogues: the diagnosis that should be at rank 1 after each turn.
    established : str
        How the diagnosis was established.
    essential : tuple of str
        Examinations that the case's author calls essential, in the order in which they should be asked for, in the words of a request.
    """

    item_id: str
    answer: str
    aliases: tuple[str, ...] = ()
    icd10: str = ""
    choice: str = ""
    fields: GoldFields | None = None
    differentials: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    findings_complete: bool = False
    lesion: Lesion | None = None
    rationale: tuple[str, ...] = ()
    rubric: tuple[Criterion, ...] = ()
    must_not: tuple[str, ...] = ()
    turn_leaders: tuple[str, ...] = ()
    established: str = ""
    values: tuple[ReferenceValue, ...] = ()
    essential: tuple[str, ...] = ()


ESSENTIAL_SEPARATOR = " | "
"""Between the essential examinations of a case, in the answers table and where an arm shows them in order."""


@dataclass(frozen=True, kw_only=True)
class Disclosure:
    """What an arm shows that was chosen with the answer: written by the only stage before scoring that reads gold, read by prompts.

    Attributes
    ----------
    item_id, arm : str
        The item, and the arm that shows it.
    text : str
        Text shown beyond the item; empty if the arm exchanges pictures.
    images : tuple of str
        Pictures shown instead of those of the item, in order; empty if the arm shows a text.
    images_of : str
        The item whose pictures they are: that of another patient, or the item itself.
    """

    item_id: str
    arm: str
    text: str
    images: tuple[str, ...] = ()
    images_of: str = ""


@dataclass(frozen=True, kw_only=True)
class Exemplar:
    """An example for few-shot prompts: an item outside the benchmark's questions, with its answer in the requested form."""

    item: Item
    answer: str
