"""Review of a de-identified benchmark: the files shown to a person, and the signature."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

SCHEMA_VERSION = 1


class ExcludeReason(StrEnum):
    """Reason for which a reviewer excludes a case."""

    FACE_LEFT = "face_left"
    TEXT_IN_PICTURE = "text_in_picture"
    NAME_IN_TEXT = "name_in_text"
    ANSWER_IN_TEXT = "answer_in_text"
    WRONG_SIDE = "wrong_side"
    WRONG_PLACE = "wrong_place"
    POOR_PICTURES = "poor_pictures"
    WRONG_PATIENT = "wrong_patient"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class ReviewedFiles:
    """Files shown on the review sheets (`data/reviews/<benchmark>/review.json`), to be signed by a person.

    Attributes
    ----------
    benchmark, profile : str
        Benchmark and de-identification profile.
    digest : str
        Digest of `cases` and the profile; its first 12 digits are typed to sign.
    cases : dict of str to str
        Digest of everything shown and covered, by case (or picture).
    """

    benchmark: str
    profile: str
    digest: str
    cases: dict[str, str] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, kw_only=True)
class SignedReview:
    """A signed review (`data/reviews/<benchmark>.json`).

    Attributes
    ----------
    benchmark, profile : str
        Benchmark and de-identification profile.
    digest : str
        Digest of the files shown.
    reviewer : str
        Name of the reviewer.
    signed_on : str
        Date, YYYY-MM-DD.
    accepted : dict of str to str
        Digest of the files seen, by case (or picture). The signature is void for a case with a changed file.
    excluded : dict of str to ExcludeReason
        Reasons by excluded case; no audit covers it.
    """

    benchmark: str
    profile: str
    digest: str
    reviewer: str
    signed_on: str
    accepted: dict[str, str] = field(default_factory=dict)
    excluded: dict[str, ExcludeReason] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, kw_only=True)
class IdentityLeak:
    """An identifying value that is left in a file of a cleaned case, by place and never by value.

    Attributes
    ----------
    file : str
        Path relative to the case; its number and suffix if the path itself may name the patient.
    place : str
        Element, key or line.
    digest : str
        SHA-256 of the file.
    count : int
        Number of values in this place.
    reason, reviewer, accepted_on : str
        Why a person accepted it, who and when; empty if nobody did.
    """

    file: str
    place: str
    digest: str
    count: int
    reason: str = ""
    reviewer: str = ""
    accepted_on: str = ""


@dataclass(frozen=True, kw_only=True)
class AcceptedIdentityLeak:
    """One identifying value that a person accepted in one file; void once the file has another digest."""

    case_id: str
    file: str
    place: str
    digest: str
    reason: str
    reviewer: str
    accepted_on: str


@dataclass(frozen=True, kw_only=True)
class AcceptedIdentityLeaks:
    """`config/benchmarks/<benchmark>.identity-leaks.json`, written by `nmb deid accept-leaks`."""

    benchmark: str
    accepted: tuple[AcceptedIdentityLeak, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OwnRule:
    """An own rule for one element of headers, as in the YAML file of the benchmark: what was done with it, why, and who decided it."""

    element: str
    action: str
    reason: str = ""
    reviewer: str = ""
