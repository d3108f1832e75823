"""What the case browser of the report shows: one row an item, with everything that was answered to it."""

from __future__ import annotations

from dataclasses import dataclass

from neuralmedbench.records.scores import Evidence

SCHEMA_VERSION = 4


@dataclass(frozen=True, kw_only=True)
class BundleImage:
    """A picture of an item: where it lies, its digest, and the words shown before it."""

    path: str
    sha256: str
    label: str


@dataclass(frozen=True, kw_only=True)
class BundleGrade:
    """A grader's word on one criterion of one response; the value is None when the grader gave none."""

    grader: str
    criterion: str
    value: float | None
    explanation: str


@dataclass(frozen=True, kw_only=True)
class BundleTurn:
    """One of the first turns of a dialogue: what the model said, and what it was told then."""

    answer: str
    told: str


@dataclass(frozen=True, kw_only=True)
class BundleResponse:
    """One response with its score and its grades, as in `records.scores`.

    Attributes
    ----------
    turns : tuple of BundleTurn
        The dialogue before the last answer; empty where there is one answer alone.
    text : str
        The last answer; empty when it did not come.
    differential : tuple of str
        As it was scored; of a response without a score of its own (a sample that voted) as it is read.
    place : str
        Location and side of an answer to a lesion item: they decide there, and not the name.
    counted : bool
        Whether it has a score. Under `self_consistency` one sample of an item stands for all.
    seen, evidence, missing : str, tuple of Evidence, str
        Those of its `Prediction`: empty unless it is a checklist.
    """

    model: str
    arm: str
    repeat: int
    state: str
    text: str
    differential: tuple[str, ...]
    passed: bool | None
    relation: str
    grades: tuple[BundleGrade, ...]
    seen: str = ""
    evidence: tuple[Evidence, ...] = ()
    missing: str = ""
    strategy: str = "direct"
    turns: tuple[BundleTurn, ...] = ()
    place: str = ""
    counted: bool = True


@dataclass(frozen=True, kw_only=True)
class CaseBundle:
    """One item, what is right, and all responses to it.

    Attributes
    ----------
    context : str
        De-identified notes and record, as the item holds them.
    options : tuple of str
        As they are offered, in the order of their letters.
    facts : tuple of str
        Date and tags.
    answer, findings, established : str, tuple of str, str
        The reference answer, its findings, and how it was established; empty when there is no gold.
    place : str
        Location and side of the main lesion; empty when there is none or it is not known.
    responses : tuple of BundleResponse
        Sorted by model, arm, strategy and repeat.
    """

    item_id: str
    case_id: str
    patient_id: str
    benchmark: str
    family: str
    level: str
    runner: str
    question: str
    context: str
    images: tuple[BundleImage, ...]
    answer: str
    findings: tuple[str, ...]
    established: str
    responses: tuple[BundleResponse, ...]
    options: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    place: str = ""
