"""Predictions (parsed answers), grades, similarities, scores and ratings, and the key that links them to their response."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from neuralmedbench.records.responses import Response, SentCall

SCHEMA_VERSION = 9
Key = tuple[str, str, str, str, str, int]


class ParseStatus(StrEnum):
    """How an answer was parsed.

    `contradicted`: a choice whose letter is followed by the words of another option; the letter counts, as in the scorers of most data sets.
    """

    STRICT = "strict"
    REPAIRED = "repaired"
    CONTRADICTED = "contradicted"
    FAILED = "failed"
    ABSENT = "absent"


class GradeState(StrEnum):
    """Outcome of grading; only `ok` has a value.

    `not_graded`: the grader cannot read the language of the answer, does not know the reference, or its own replies could not be read however
    often it was asked.
    """

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"
    NOT_GRADED = "not_graded"


SIMULATED_ROUND = "simulated"
"""Rating round of the demo with simulated raters; `make rating-round` never makes it, and a user's benchmark never has it."""


class RatingPart(StrEnum):
    """Why a rater saw a text: sampled, sampled and repeated for the same rater, or a control that no model wrote."""

    SAMPLE = "sample"
    AGAIN = "again"
    CONTROL_RIGHT = "control_right"
    CONTROL_WRONG = "control_wrong"


@dataclass(frozen=True)
class Evidence:
    """Statements of an answer for and against one of its candidates, or empty. The candidate is never named."""

    speaks_for: str = ""
    against: str = ""


@dataclass(frozen=True)
class StatedPlace:
    """Where an answer says that the main abnormality is seen: its sections PICTURE and BOX.

    Attributes
    ----------
    picture : int or None
        Number of the picture, from 1.
    position_mm : float or None
        Position of the slice, if the answer states one.
    box : tuple of float
        A box (x1, y1, x2, y2) or a point (x, y) on that picture, in the unit that was asked for; empty if none is stated.
    unread : str
        Why one of them could not be read, without words of the answer; empty if it was, or is not stated.
    """

    picture: int | None = None
    position_mm: float | None = None
    box: tuple[float, ...] = ()
    unread: str = ""


LONGEST_DIFFERENTIAL = 5
"""Diagnoses that an answer may rank; further ones are not read."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A parsed answer, read without gold.

    Attributes
    ----------
    differential : tuple of str
        Ranked diagnoses, at most `LONGEST_DIFFERENTIAL`.
    findings, rationale : str
        In the words of the answer, or empty.
    choice : str
        Letter of the chosen option.
    fields : dict of str to str or None
        Fields of a structured answer (an absent field is an abstention); or lesion, location and side of a lesion answer; or location and
        side in a checklist.
    confidence : float or None
        Stated confidence in rank 1, 0 to 1.
    abstained : bool
        True if it declined to name a diagnosis; also for an unreadable answer that is empty or a refusal.
    seen, missing : str
        In a checklist: images as the model describes them (modality; sequences; planes), and what it would need to be more certain.
    evidence : tuple of Evidence
        In a checklist: one per entry of `differential`.
    place : StatedPlace or None
        In a checklist with the sections PICTURE and BOX.
    """

    parse_status: ParseStatus
    differential: tuple[str, ...] = ()
    findings: str = ""
    rationale: str = ""
    choice: str = ""
    fields: dict[str, str] | None = None
    confidence: float | None = None
    abstained: bool = False
    seen: str = ""
    evidence: tuple[Evidence, ...] = ()
    missing: str = ""
    place: StatedPlace | None = None


MAIN_CONDITION, CORE_DIAGNOSIS = "main_condition", "core_diagnosis"
"""Criteria of every open answer that is graded: whether it names the disease in general, and the diagnosis itself."""


@dataclass(frozen=True, kw_only=True)
class Grade:
    """A grader's value for one criterion of one response.

    Attributes
    ----------
    text_sha256 : str
        Digest of the graded text: a grade of another text is stale.
    criterion : str
        `main_condition`, `core_diagnosis`; a criterion of the item's rubric; `reasoning.efficiency`, `reasoning.factuality`,
        `reasoning.completeness`; or `error.<code>` of `records.taxonomy`.
    value : float or None
        0 to 1; for an error 0 (absent), 1 (present) or 2 (significant). None unless the state is ok.
    weight : float
        Points of the criterion.
    served_model, fingerprint, called_on : str
        Call of an LLM grader, as reported by the provider, and its date; the same for all criteria of a text.
    destination : str
        Host of the call; empty without one.
    attempts, characters_sent : int
        Number of calls, including retries, and length of the text sent; 0 if nothing was.
    calls : tuple of SentCall
        The call, as in a response; the same for all criteria of a text.
    """

    item_id: str
    benchmark: str
    arm: str
    strategy: str
    model: str
    revision: str
    repeat: int
    text_sha256: str
    grader: str
    criterion: str
    value: float | None
    weight: float
    explanation: str
    state: GradeState
    served_model: str = ""
    fingerprint: str = ""
    called_on: str = ""
    destination: str = ""
    attempts: int = 0
    characters_sent: int = 0
    calls: tuple[SentCall, ...] = ()


PLANTED = "planted"
"""In place of a model's name: answers with planted errors, which test the graders. No model may have this name."""


@dataclass(frozen=True, kw_only=True)
class PlantedAnswer:
    """An answer with a planted error, or an answer that such answers are made of; `scoring.planted` writes them.

    Attributes
    ----------
    edit : str
        The edit, or `right` or `wrong` for an answer without one.
    base : str
        The answer that was edited, `right` or `wrong`; empty for these themselves.
    number : int
        Place among the patients of its edit, from 0: a grader that costs money judges the first few.
    text : str
        The answer in the form that its question asks for.
    expected : dict of str to bool
        Whether it meets each criterion; criteria that the edit leaves open are not in it.
    """

    item_id: str
    patient_id: str
    benchmark: str
    edit: str
    base: str
    number: int
    text: str
    expected: dict[str, bool]


@dataclass(frozen=True, kw_only=True)
class SimilarityRow:
    """Semantic similarity of one response's extracted answer to the reference: descriptive, never a verdict.

    `expanded` is True if one of the two was an abbreviation, expanded by the vocabulary before the comparison.
    """

    item_id: str
    benchmark: str
    arm: str
    strategy: str
    model: str
    revision: str
    repeat: int
    text_sha256: str
    cosine: float | None
    bertscore_f1: float | None
    expanded: bool = False


@dataclass(frozen=True, kw_only=True)
class Score:
    """One scored response; all tables are made from these rows.

    Attributes
    ----------
    state, parse_status : str
        States of the response and of parsing.
    missing : bool
        No answer for reasons other than the model's behaviour: not in the numerator, counted as missing.
    scored : bool
        False if the item has no gold.
    differential : tuple of str
        The parsed ranked differential; for a lesion item the lesion, for a structured item the class.
    relation : str
        Relation of rank 1 to the reference: `exact`, `synonym`, `child`, `parent`, `sibling`, `unrelated`; empty without a rank 1,
        and for lesion and structured items.
    passed : bool or None
        By the pass rule of the item's runner; None if missing, not scored, or without a grader's value.
    right_family : bool or None
        True if rank 1 is a wider term of the reference.
    reference_rank : int or None
        Rank (from 1) of the reference in the differential; None if it is not in it.
    in_candidates : bool or None
        True if the reference is among the first five candidates; None, as `relation` and `right_family` are empty, if the vocabulary does not
        have the reference.
    main_condition, core_diagnosis : float or None
        Value of the first grader in the run list that gave one, 0 to 1; 0 for a refused or truncated answer.
    rubric : float or None
        Fraction of the points, 0 to 1, by the first language model or jury in the run list that graded the item's whole rubric; None
        without one. 0 for a refused or truncated answer to an item with a rubric, and for an answer that meets a capping criterion.
    rubric_uncapped : float or None
        The same, but capping criteria only cost their points. None in files of earlier schema versions.
    keyword_coverage : float or None
        As `rubric`, by the first grader that compares words.
    confidence, abstained : float or None, bool
        As in :class:`Prediction`.
    fields : dict of str to str or None
        Structured items: the answered fields after normalisation of spelling (an absent field is an abstention, an empty one could not be
        read); lesion items: `lesion`,
        `location` and `side` as answered; other open items: `location` and `side` of a checklist.
    fields_right : dict of str to bool or None
        Structured items: correctness of each field with ground truth.
    fields_share : dict of str to float or None
        Structured items with values: agreement of each field whose rule has degrees (boxes: intersection over union), 0 to 1.
    fields_abstained : tuple of str
        Structured items: fields with ground truth that a readable answer left null.
    turn_passes : tuple of bool
        Dialogues of fixed rounds: pass of each turn's rank 1 against the final reference.
    turn_leaders : tuple of str
        Dialogues of fixed rounds: rank 1 of each turn; empty if a turn names no diagnosis.
    evidence : dict of str to bool or None
        Open items under the arm full: whether what the answer states of the lesion is that of the reference: `side`, `region`, `slice`
        (the named picture shows it), `point` (inside its box), `box_0.3` and `box_0.5` (overlap at least that). What was not asked for or the
        reference does not know is absent. None for other items and arms.
    box_overlap : float or None
        Intersection over union of the stated box with that of the lesion, 0 to 1; None where the reference knows no box.
    evidence_unread : str
        Why the stated picture, box or point could not be used, in a few words without any of the answer's own; empty if it could.
    text : str
        The scored text.
    other_language : str
        Language of the answer (ISO 639-1) if the vocabulary has no names in it and did not find rank 1: then `relation` is empty,
        `right_family` None, `in_candidates` None unless a later candidate is the reference, and `passed` None unless another grader gave a
        value. Empty otherwise.
    """

    item_id: str
    case_id: str
    patient_id: str
    benchmark: str
    axis: str
    family: str
    level: str
    runner: str
    arm: str
    strategy: str
    model: str
    revision: str
    repeat: int
    text_sha256: str
    state: str
    parse_status: str
    missing: bool
    scored: bool
    lesion_shown: bool | None
    differential: tuple[str, ...] = ()
    relation: str = ""
    passed: bool | None = None
    right_family: bool | None = None
    reference_rank: int | None = None
    in_candidates: bool | None = None
    main_condition: float | None = None
    core_diagnosis: float | None = None
    rubric: float | None = None
    rubric_uncapped: float | None = None
    keyword_coverage: float | None = None
    confidence: float | None = None
    abstained: bool = False
    fields: dict[str, str] | None = None
    fields_right: dict[str, bool] | None = None
    fields_share: dict[str, float] | None = None
    fields_abstained: tuple[str, ...] = ()
    turn_passes: tuple[bool, ...] = ()
    turn_leaders: tuple[str, ...] = ()
    text: str = ""
    other_language: str = ""
    evidence: dict[str, bool] | None = None
    box_overlap: float | None = None
    evidence_unread: str = ""


@dataclass(frozen=True, kw_only=True)
class Rating:
    """A clinician's value on one axis for one response.

    Attributes
    ----------
    rater_id : str
        Pseudonym.
    axis : str
        Axis of the rating form, for example `dx_correct`; or `error.<code>` for an error marked by the rater.
    value : float or None
        None if the rater could not judge; for an error 1, or 2 if it is significant.
    seconds : float or None
        Time that the rater spent on the response.
    stale : bool
        True if the rated text is not the current text of the response.
    simulated : bool
        True for a simulated rater, which exercises the form; never headlined.
    part : RatingPart
        Only `sample` is about a model: the others measure the reliability of raters. A control has no model and no revision.
    probability : float or None
        Probability with which the response was sampled, 0 to 1, for inverse-probability weights; None if it was not sampled.
    informed : bool
        True if the rater had seen the reference of the case before.
    adjudicated : bool
        True for the decision of a further rater where the raters of the round disagree: it replaces their mean, and never enters agreement.
    """

    round_id: str
    rater_id: str
    item_id: str
    arm: str
    strategy: str
    model: str
    revision: str
    repeat: int
    text_sha256: str
    axis: str
    value: float | None
    seconds: float | None
    stale: bool
    simulated: bool
    part: RatingPart = RatingPart.SAMPLE
    probability: float | None = None
    informed: bool = False
    adjudicated: bool = False


def response_key(row: Response | Grade | Rating | Score | SimilarityRow) -> Key:
    """Return (item_id, arm, strategy, model, revision, repeat)."""
    return row.item_id, row.arm, row.strategy, row.model, row.revision, row.repeat


def text_digest(text: str) -> str:
    """Return the hex SHA-256 of an answer's text: a grade, similarity or rating with another digest is stale."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
