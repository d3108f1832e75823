"""Content of the report's case browser: one row per item, with all responses to it."""

from __future__ import annotations

from dataclasses import dataclass

from neuralmedbench.records.scores import Evidence

SCHEMA_VERSION = 5


@dataclass(frozen=True, kw_only=True)
class BundleImage:
    """A picture of an item: path, digest, and the label shown before it."""

    path: str
    sha256: str
    label: str


@dataclass(frozen=True, kw_only=True)
class BundleGrade:
    """A grader's value and explanation for one criterion of one response; the value is None if the grader gave none."""

    grader: str
    criterion: str
    value: float | None
    explanation: str


@dataclass(frozen=True, kw_only=True)
class BundleCandidate:
    """A diagnosis with the probability that the model stated, and whether it is the reference."""

    name: str
    probability: float
    right: bool


@dataclass(frozen=True, kw_only=True)
class BundleTurn:
    """One turn of a dialogue before the last answer: the model's answer, and the next message to it (`told`).

    Attributes
    ----------
    request, outcome, given : str
        In a work-up: what the model asked for, what came of it (`given`, `absent`, `unclear`, `again`), and the name of the examination.
    images : tuple of str
        Digests of the pictures that followed.
    candidates : tuple of BundleCandidate
        In a work-up: the diagnoses that it stated, in its order.
    """

    answer: str
    told: str
    request: str = ""
    outcome: str = ""
    given: str = ""
    images: tuple[str, ...] = ()
    candidates: tuple[BundleCandidate, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BundleResponse:
    """One response with its score and its grades, as in `records.scores`.

    Attributes
    ----------
    turns : tuple of BundleTurn
        The dialogue before the last answer; empty for a single answer.
    text : str
        The last answer; empty if there is none.
    candidates : tuple of BundleCandidate
        In a work-up: the diagnoses of the last answer with their probabilities.
    differential : tuple of str
        As scored; for a response without a score (a voting sample), as parsed.
    place : str
        Location and side in an answer to a lesion item, which is scored by them and not by the name.
    counted : bool
        True if it has a score. Under `self_consistency` one sample of an item is scored for all.
    seen, evidence, missing : str, tuple of Evidence, str
        As in its `Prediction`; empty unless the answer is a checklist.
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
    candidates: tuple[BundleCandidate, ...] = ()
    place: str = ""
    counted: bool = True


@dataclass(frozen=True, kw_only=True)
class CaseBundle:
    """One item, its reference answer, and all responses to it.

    Attributes
    ----------
    context : str
        De-identified notes and record, as in the item.
    options : tuple of str
        In the order of their letters.
    facts : tuple of str
        Date and tags.
    answer, findings, established : str, tuple of str, str
        The reference answer, its findings, and how it was established; empty without gold.
    place : str
        Location and side of the main lesion; empty if there is none or it is unknown.
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
