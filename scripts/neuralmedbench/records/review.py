"""What a person is shown of a benchmark before its data may be used, and what they signed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

SCHEMA_VERSION = 1


class ExcludeReason(StrEnum):
    """Why a reviewer takes a case out."""

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
    """What the sheets show (`data/reviews/<benchmark>/review.json`): what a person signs.

    Attributes
    ----------
    benchmark, profile : str
        Whose, under which profile.
    digest : str
        Digest over `cases` and the profile; its first 12 digits are typed to sign.
    cases : dict of str to str
        By case (or, of pictures, by picture): the digest of everything of it that is shown and covered.
    """

    benchmark: str
    profile: str
    digest: str
    cases: dict[str, str] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, kw_only=True)
class SignedReview:
    """What a person signed (`data/reviews/<benchmark>.json`).

    Attributes
    ----------
    benchmark, profile : str
        Whose, under which profile.
    digest : str
        That of what was shown.
    reviewer : str
        Who signed.
    signed_on : str
        Day, YYYY-MM-DD.
    accepted : dict of str to str
        By case (or picture): the digest of what was seen of it. A change of any covered file of it makes the signature void.
    excluded : dict of str to ExcludeReason
        By case: why the reviewer took it out; nothing covers it.
    """

    benchmark: str
    profile: str
    digest: str
    reviewer: str
    signed_on: str
    accepted: dict[str, str] = field(default_factory=dict)
    excluded: dict[str, ExcludeReason] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION
