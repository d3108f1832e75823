"""Taxonomy of errors in answers, for LLM graders and for clinicians' forms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

VERSION = "1.0"
"""Increase it when a code is added, removed or changes its meaning: labels of different versions are not comparable."""

ERROR_AXIS = "error."
"""Prefix of a code in the criterion of a grade and the axis of a rating."""


class ErrorGroup(StrEnum):
    """Step of a reader's work in which the error occurs."""

    PERCEPTUAL = "perceptual"
    REASONING = "reasoning"
    KNOWLEDGE = "knowledge"
    GROUNDING = "grounding"
    COMMUNICATION = "communication"


class PaperClass(StrEnum):
    """Error classes of Neural-MedBench; the assignment of errors to them is ours, by their names."""

    PERCEPTUAL_FAILURE = "perceptual_failure"
    REASONING_FAILURE = "reasoning_failure"
    KNOWLEDGE_GAP = "knowledge_gap"
    GROUNDING_ERROR = "grounding_error"
    VISUAL_HALLUCINATION = "visual_hallucination"


class Condition(StrEnum):
    """What must be known of an item before an error can be counted."""

    LESION_SHOWN = "lesion_shown"
    FINDINGS_COMPLETE = "findings_complete"


@dataclass(frozen=True)
class ErrorCode:
    """One error.

    Attributes
    ----------
    code : str
        Its name in grades, ratings and tables.
    group : ErrorGroup
        Its group.
    label : str
        Its meaning, in words for raters and prompts.
    paper_class : PaperClass or None
        Class in the paper, or None.
    condition : Condition or None
        A missed lesion counts only if the lesion was shown, a hallucinated finding only if the list of findings is complete.
    omission : bool
        True for an omission: there are no words of the answer to quote.
    """

    code: str
    group: ErrorGroup
    label: str
    paper_class: PaperClass | None = None
    condition: Condition | None = None
    omission: bool = False


_PERCEPTUAL, _REASONING = ErrorGroup.PERCEPTUAL, ErrorGroup.REASONING
_UNSEEN, _UNREASONED = PaperClass.PERCEPTUAL_FAILURE, PaperClass.REASONING_FAILURE

TAXONOMY = (
    ErrorCode(
        "hallucinated_finding",
        _PERCEPTUAL,
        "a finding is stated that is not there",
        PaperClass.VISUAL_HALLUCINATION,
        Condition.FINDINGS_COMPLETE,
    ),
    ErrorCode("missed_lesion", _PERCEPTUAL, "a lesion that is there is not seen", _UNSEEN, Condition.LESION_SHOWN, omission=True),
    ErrorCode("wrong_side", _PERCEPTUAL, "the side is wrong", _UNSEEN),
    ErrorCode("wrong_region", _PERCEPTUAL, "the region or the vascular territory is wrong", _UNSEEN),
    ErrorCode("wrong_sequence", _PERCEPTUAL, "the modality, the sequence or the plane is wrong", _UNSEEN),
    ErrorCode("wrong_severity", _PERCEPTUAL, "size, number, age or severity of a finding is wrong", _UNSEEN),
    ErrorCode("artefact_as_lesion", _PERCEPTUAL, "an artefact or normal anatomy is read as a lesion", _UNSEEN),
    ErrorCode("wrong_inference", _REASONING, "the conclusion does not follow from the findings that are stated", _UNREASONED),
    ErrorCode("missing_differential", _REASONING, "a diagnosis that had to be considered is not", _UNREASONED, omission=True),
    ErrorCode("ignored_evidence", _REASONING, "evidence of the case that speaks for or against is left out", _UNREASONED, omission=True),
    ErrorCode("premature_closure", _REASONING, "one diagnosis is settled on before the others were weighed", _UNREASONED),
    ErrorCode("over_confidence", _REASONING, "more certainty is stated than the evidence carries", _UNREASONED),
    ErrorCode("knowledge_gap", ErrorGroup.KNOWLEDGE, "a statement of medical knowledge is wrong", PaperClass.KNOWLEDGE_GAP),
    ErrorCode(
        "grounding_error",
        ErrorGroup.GROUNDING,
        "a true finding is tied to the wrong picture, place, source or patient",
        PaperClass.GROUNDING_ERROR,
    ),
    ErrorCode("self_contradiction", ErrorGroup.COMMUNICATION, "the answer contradicts itself"),
    ErrorCode(
        "unclear_answer", ErrorGroup.COMMUNICATION, "the answer cannot be understood, or leaves out what was asked for", omission=True
    ),
)
"""All errors, in the order in which forms, prompts and tables list them."""

ERRORS = {error.code: error for error in TAXONOMY}


def error_of(criterion: str) -> ErrorCode | None:
    """Return the error of a grade's criterion or a rating's axis; None for another criterion or axis.

    Examples
    --------
    >>> error_of("error.wrong_side").group
    <ErrorGroup.PERCEPTUAL: 'perceptual'>
    >>> error_of("dx_correct") is None
    True
    """
    return ERRORS.get(criterion.removeprefix(ERROR_AXIS)) if criterion.startswith(ERROR_AXIS) else None


def counts_under(error: ErrorCode, *, lesion_shown: bool | None, findings_complete: bool) -> bool:
    """Return whether an error may be counted on an item.

    Parameters
    ----------
    error : ErrorCode
        The error.
    lesion_shown : bool or None
        As in `records.items.Item`: None if there is no lesion, or it is unknown.
    findings_complete : bool
        As in `records.items.Gold`.

    Returns
    -------
    bool
        True if its condition is met, or it has none.
    """
    if error.condition is Condition.LESION_SHOWN:
        return lesion_shown is True
    return error.condition is None or findings_complete


def unknown_errors(codes: Iterable[str]) -> list[str]:
    """Return the codes that are not in the taxonomy, sorted."""
    return sorted(set(codes) - set(ERRORS))
