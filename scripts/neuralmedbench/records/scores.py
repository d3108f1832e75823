"""What an answer is worth: predictions, grades, scores."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SCHEMA_VERSION = 4


class ParseStatus(StrEnum):
    """How an answer was read."""

    STRICT = "strict"
    REPAIRED = "repaired"
    FAILED = "failed"
    ABSENT = "absent"


class GradeState(StrEnum):
    """What became of a grade; only `ok` has a value."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


SIMULATED_ROUND = "simulated"
"""Round of the demo that a program rates: never made by `make rating-round`, never of anybody's own benchmark."""


class RatingPart(StrEnum):
    """Why a rater saw a text: it was drawn, was drawn and is shown to the same rater again, or is a control that nobody's model wrote."""

    SAMPLE = "sample"
    AGAIN = "again"
    CONTROL_RIGHT = "control_right"
    CONTROL_WRONG = "control_wrong"


@dataclass(frozen=True)
class Evidence:
    """What an answer says for and against one of its candidates; empty where it says nothing. It never names a candidate."""

    speaks_for: str = ""
    against: str = ""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What an answer says, read without gold.

    Attributes
    ----------
    differential : tuple of str
        Diagnoses in order, at most 5.
    findings, rationale : str
        The answer's own words, empty when it has none.
    choice : str
        Letter of the chosen option.
    fields : dict of str to str or None
        Fields of a structured answer, an absent field is an abstention; or lesion, location and side of a lesion answer; or location and
        side as a checklist states them.
    confidence : float or None
        Stated confidence in rank 1, 0 to 1.
    abstained : bool
        Whether it declined to name a diagnosis; also true of an unreadable answer that is empty or refuses.
    seen, missing : str
        Of a checklist: what it says that it was shown (modality; sequences; planes), and what it would need to be surer.
    evidence : tuple of Evidence
        Of a checklist: one for each entry of `differential`.
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


@dataclass(frozen=True, kw_only=True)
class Grade:
    """A grader's word on one criterion of one response.

    Attributes
    ----------
    text_sha256 : str
        Digest of the graded text: a grade of another text is stale.
    criterion : str
        `main_condition`, `core_diagnosis`; a criterion of the item's rubric; `reasoning.efficiency`, `reasoning.factuality`,
        `reasoning.completeness`; or `error.<code>` of `records.taxonomy`.
    value : float or None
        0 to 1; of an error 0 when it is absent, 1 when it is there, 2 when it is significant. None unless the state is ok.
    weight : float
        Points of the criterion.
    served_model, fingerprint, called_on : str
        Of the call of a grader that asks a model: what the provider said, and the day; the same for all criteria of a text.
    destination : str
        Host that was asked; empty when none was.
    attempts, characters_sent : int
        Calls made, retries counted, and the length of the words that were sent; 0 when nothing was.
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


@dataclass(frozen=True, kw_only=True)
class SimilarityRow:
    """Semantic similarity of one response's extracted answer to the reference: descriptive, never a verdict.

    `expanded` where one of the two was an abbreviation that the vocabulary wrote out before they were compared.
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
    """One response, read and scored; the row from which every table is made.

    Attributes
    ----------
    state, parse_status : str
        Of the response and of its reading.
    missing : bool
        No answer because of us: not in the numerator, counted as missing.
    scored : bool
        False when there is no gold for the item.
    differential : tuple of str
        The parsed ranked differential; of a lesion item the lesion, of a structured item the class.
    relation : str
        How rank 1 relates to the reference: `exact`, `synonym`, `child`, `parent`, `sibling`, `unrelated`; empty without a rank 1,
        and for lesion and structured items.
    passed : bool or None
        The pass rule of the item's runner (design, section 9); None when missing, not scored, or no grader gave a value.
    right_family : bool or None
        Rank 1 names a wider term of the reference.
    reference_rank : int or None
        Rank (from 1) at which the reference stands in the differential; None when it is not there.
    in_candidates : bool or None
        The reference stands among the first five candidates.
    main_condition, core_diagnosis : float or None
        The grader's word (that of the first grader in the run list that gave one), 0 to 1; 0 for a refused or truncated answer.
    rubric : float or None
        Points earned over points to be had, 0 to 1, by the first grader in the run list that judged the item's whole rubric; None when
        none did. 0 for a refused or truncated answer to an item with a rubric.
    confidence, abstained : float or None, bool
        As in :class:`Prediction`.
    fields : dict of str to str or None
        Structured items: the answered fields after spelling (an absent field is an abstention); lesion items: `lesion`,
        `location` and `side` as answered; other open items: `location` and `side` where a checklist states them.
    fields_right : dict of str to bool or None
        Structured items: for each field with ground truth whether it is right.
    fields_abstained : tuple of str
        Structured items: fields with ground truth that a readable answer left null.
    turn_passes : tuple of bool
        Dialogues of fixed rounds: pass of each turn's leader against the final reference.
    turn_leaders : tuple of str
        Dialogues of fixed rounds: rank 1 of each turn; empty where a turn names nothing.
    text : str
        The scored text.
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
    confidence: float | None = None
    abstained: bool = False
    fields: dict[str, str] | None = None
    fields_right: dict[str, bool] | None = None
    fields_abstained: tuple[str, ...] = ()
    turn_passes: tuple[bool, ...] = ()
    turn_leaders: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Rating:
    """One clinician's value on one axis of one response.

    Attributes
    ----------
    rater_id : str
        Pseudonym.
    axis : str
        Axis of the rating form, for example `dx_correct`; or `error.<code>` for an error that the rater marked.
    value : float or None
        None when the rater could not judge; of an error 2 when it is significant, else 1.
    seconds : float or None
        Time that the rater spent on the response.
    stale : bool
        The rated text is not the text that stands in the responses now.
    simulated : bool
        Made by a program to exercise the form; never headlined.
    part : RatingPart
        `sample` alone is about a model: the others tell how far a rater can be relied on. A control has no model and no revision.
    probability : float or None
        With which the response was drawn into its round, 0 to 1, for inverse-probability weights; None when it was not drawn.
    informed : bool
        The rater had seen the reference of the case before giving this value.
    adjudicated : bool
        A further rater's last word where the raters of the round disagree: it stands for their mean, and never enters agreement.
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
