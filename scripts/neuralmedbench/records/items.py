"""What is asked (items), what is right (gold) and what an arm may show (disclosures)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

SCHEMA_VERSION = 3

NO_LESION = "no lesion"
"""The answer to an item on a lesion where there is none."""


class Kind(StrEnum):
    """What a benchmark is made of; only scans have per-case jobs."""

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
"""Families whose open answers rank diagnoses."""


class Level(StrEnum):
    """Level of Neural-MedBench."""

    DIRECT = "direct"
    COMPLEX = "complex"
    DIALOGUE = "dialogue"
    NONE = "none"


class Arm(StrEnum):
    """What is left out, exchanged or shown beside an item; beside these `first_<x>_percent` (`FIRST_PART`)."""

    FULL = "full"
    NO_IMAGE = "no_image"
    NO_TEXT = "no_text"
    SHUFFLED_IMAGE = "shuffled_image"
    FINDINGS_DISCLOSED = "findings_disclosed"
    DIAGNOSIS_WITHHELD = "diagnosis_withheld"
    EVIDENCE_SUPPLIED = "evidence_supplied"


FIRST_PART = re.compile(r"first_([1-9]\d?)_percent")
"""Name of an arm that tells the first part of a case's text, in per cent of its words."""


class Strategy(StrEnum):
    """How an answer is asked for.

    `cot` asks for steps before the answer; `self_consistency` asks the same and lets the samples vote; `few_shot` shows answered examples.
    Under `ask` the model asks in a dialogue, in the place of rounds that reveal what they reveal (`direct`): another protocol, never pooled.
    """

    DIRECT = "direct"
    COT = "cot"
    FEW_SHOT = "few_shot"
    SELF_CONSISTENCY = "self_consistency"
    ASK = "ask"


OPTION = "option"
"""Role of a picture that is an option of a choice: its `label` is the text of that option."""


class Runner(StrEnum):
    """How an item is run and scored."""

    CHOICE = "choice"
    OPEN = "open"
    DIALOGUE = "dialogue"
    STRUCTURED = "structured"


@dataclass(frozen=True, kw_only=True)
class ItemImage:
    """A picture of an item, in the order in which it is shown; units as in `records.case.Slice`.

    `tiles_mm` holds the positions of a montage's slices and is empty for a single one; `window` is the name of a CT window other than
    the one for the brain; `label` is the name by which the question speaks of the picture (`Figure B`), shown under every label policy. Of a picture that is an option
    (`OPTION`) it is the option's text; such pictures stand behind the others, in the order of their letters.
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
    """One turn of a dialogue under the protocol `rounds`: what is revealed, and what is asked.

    Attributes
    ----------
    reveal : str
        Text that is shown in this turn (part of the history, findings of the examination...).
    question : str
        What is asked.
    image_ids : tuple of str
        Pictures that are shown in this turn.
    """

    reveal: str
    question: str
    image_ids: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Item:
    """One question to a model. It never holds anything from which the answer could be read.

    Attributes
    ----------
    item_id : str
        `<benchmark>/<case_id>/<family>`, or `<benchmark>/<image_id>` for single pictures.
    patient_id : str
        The cluster of every statistic.
    turns : tuple of Turn
        Only for the runner `dialogue`.
    options : tuple of str
        Only for the runner `choice`.
    label_policy : str
        `none` or `full`: whether pictures are labelled with sequence, plane and position.
    lesion_shown : bool or None
        Whether a slice through the lesion is among the pictures; None when there is no lesion or it is not known.
    notes, record : str
        Context: de-identified notes, and the record as lines of text; empty in a dialogue, whose turns reveal them.
    given : str
        A diagnosis that the question takes for granted (the task is to find the evidence for it); the arm `diagnosis_withheld` leaves it out.
    tags : tuple of str
        What a table may group by: the data set, terms that the vocabulary does not know.
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


@dataclass(frozen=True, kw_only=True)
class Lesion:
    """Where the main lesion lies.

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
    """

    location: str
    side: str
    behaviour: dict[str, str]
    size_mm: float | None = None
    position_mm: tuple[float, float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class ShownLesion:
    """What one picture shows of the known lesion; a row only where its position is known. It is gold: no prompt may read it.

    Attributes
    ----------
    case_id, image_id : str
        The picture.
    shown : bool
        Whether a slice of it goes through the lesion, on a sequence that shows it.
    width_px : float or None
        Its largest width there in pixels of the picture as it is sent; None when it is not shown or its size is not known.
    """

    case_id: str
    image_id: str
    shown: bool
    width_px: float | None


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """One criterion of a rubric: a statement about the answer and the points it earns (negative points punish)."""

    criterion: str
    text: str
    points: float


FIELD_KEYS = {"diagnosis_class": "class"}
"""Keys of an answer that are no names in Python."""


@dataclass(frozen=True, kw_only=True)
class GoldFields:
    """The fields of a NeuroVLM-Bench answer; None means that the data set has no ground truth for it."""

    modality: str | None = None
    sequence: str | None = None
    plane: str | None = None
    diagnosis_class: str | None = None
    subtype: str | None = None


def gold_fields(fields: GoldFields) -> dict[str, str]:
    """Labels by their key in an answer; those without ground truth are left out."""
    return {FIELD_KEYS.get(name, name): label for name, label in vars(fields).items() if label is not None}


@dataclass(frozen=True, kw_only=True)
class Gold:
    """What is right. Read by score, tables, the rating round and the leak test; never by prompts or infer.

    Attributes
    ----------
    answer, aliases, icd10 : str, tuple of str, str
        The diagnosis, by its preferred name where the vocabulary knows it; other names that are as right; its code.
    choice : str
        Letter of the right option (runner `choice`); `answer` is then its text.
    fields : GoldFields or None
        Structured items only.
    differentials : tuple of str
        What else has to be considered, ranked.
    findings, findings_complete : tuple of str, bool
        What is seen, in words that do not name the diagnosis; and whether nothing else is to be seen.
    rationale, must_not : tuple of str
        Statements that speak for the answer, and statements that would be wrong or dangerous.
    rubric : tuple of Criterion
        Built from all of this.
    turn_leaders : tuple of str
        Dialogues: the diagnosis that should lead after each turn.
    established : str
        How the answer is known.
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


@dataclass(frozen=True, kw_only=True)
class Disclosure:
    """What an arm may show beyond the item: written by the only stage that reads gold, read by prompts."""

    item_id: str
    arm: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Exemplar:
    """An example for few-shot prompts: an item that is never asked, with its answer in the form that is asked for."""

    item: Item
    answer: str
