"""Answer key of de-identification: what has to be removed from a simulated patient and what has to be kept. Only phantoms have one."""

from __future__ import annotations

from dataclasses import dataclass, field

LABEL = "phantom: every identity in this file is invented"


@dataclass(frozen=True, kw_only=True)
class TagRule:
    """Required action on one header element in every file of a series.

    Attributes
    ----------
    path : str
        Tags and item numbers from the outermost inwards, for example `00400275/0/00321060`.
    action : str
        One of the ten actions of MIDI-B: `tag_retained`, `text_notnull`, `text_retained`, `text_removed`, `date_shifted`, `uid_changed`,
        `uid_consistent`, `patid_consistent`, `pixels_hidden`, `pixels_retained`.
    category : str
        Source of the rule: `HIPAA`, `DICOM` (PS3.15 Annex E) or `research`.
    text : tuple of str
        Strings to remove or to keep; if empty, the value in the raw file.
    """

    path: str
    action: str
    category: str
    text: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PixelBox:
    """Text burned into every picture of a series.

    Attributes
    ----------
    top, left, bottom, right : int
        Rows and columns of the picture; `bottom` and `right` are exclusive.
    text : tuple of str
        The text.
    """

    top: int
    left: int
    bottom: int
    right: int
    text: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SeriesKey:
    """The rules of one raw series.

    Attributes
    ----------
    series_uid : str
        SeriesInstanceUID of the raw files.
    kept : bool
        True for a scan that has to be kept; screenshots and localizers may be dropped.
    files : int
        Number of raw files.
    rules : tuple of TagRule
        Header elements, each for every file.
    boxes : tuple of PixelBox
        Burned-in text; all other pixels must not change.
    """

    series_uid: str
    kept: bool
    files: int
    rules: tuple[TagRule, ...]
    boxes: tuple[PixelBox, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NoteSpan:
    """A part of a note to remove: offsets of its characters, Safe Harbor kind, and words that must not remain."""

    start: int
    end: int
    kind: str
    parts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class NoteKey:
    """Parts to remove from one note, and phrases to keep (eponyms, scores, values)."""

    spans: tuple[NoteSpan, ...]
    stay: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AnswerKey:
    """Everything planted in one simulated patient; stored in the private zone beside the raw files.

    Attributes
    ----------
    case_id : str
        Pseudonym of the case.
    series : tuple of SeriesKey
        Raw series.
    notes : tuple of NoteKey
        Notes in order of time.
    record_go, record_stay : tuple of str
        Strings that no cell of the record may contain, and cells `variable=value` to keep.
    strings : tuple of str
        Planted strings that are long enough to be searched in every shareable file.
    label : str
        Statement that all identities are invented.
    """

    case_id: str
    series: tuple[SeriesKey, ...]
    notes: tuple[NoteKey, ...] = ()
    record_go: tuple[str, ...] = ()
    record_stay: tuple[str, ...] = ()
    strings: tuple[str, ...] = field(default=())
    label: str = LABEL


@dataclass(frozen=True, kw_only=True)
class ScoreRow:
    """How often an action was required, and how often it was done correctly.

    Attributes
    ----------
    place : str
        `header` (DICOM after cleaning), `note`, `record`, or `files` (all shareable files).
    action : str
        One of the ten actions, or `words_removed`: the share of removed words in notes that had to be removed.
    category : str
        `HIPAA`, `DICOM` or `research`; for notes the Safe Harbor kind.
    required, right : int
        Number of checks, and of passed checks.
    patients, patients_right : int
        Simulated patients with such a check, and those who passed all of them.
    """

    place: str
    action: str
    category: str
    required: int
    right: int
    patients: int
    patients_right: int


@dataclass(frozen=True, kw_only=True)
class CaseScore:
    """Score of one simulated patient (`score.json`): counts, and failed checks by tag or kind; never a value."""

    case_id: str
    rows: tuple[ScoreRow, ...]
    wrong: dict[str, int] = field(default_factory=dict)
    schema_version: int = 1
