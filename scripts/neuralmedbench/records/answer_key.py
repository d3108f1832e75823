"""What a simulated patient was given to hide and to keep: the answer key of de-identification. Only phantoms have one."""

from __future__ import annotations

from dataclasses import dataclass, field

LABEL = "phantom: every identity in this file is invented"


@dataclass(frozen=True, kw_only=True)
class TagRule:
    """What has to become of one header element in every file of a series.

    Attributes
    ----------
    path : str
        Tags and item numbers from the outside in, for example `00400275/0/00321060`.
    action : str
        One of the ten actions of MIDI-B: `tag_retained`, `text_notnull`, `text_retained`, `text_removed`, `date_shifted`, `uid_changed`,
        `uid_consistent`, `patid_consistent`, `pixels_hidden`, `pixels_retained`.
    category : str
        Who asks for it: `HIPAA`, `DICOM` (PS3.15 Annex E) or `research`.
    text : tuple of str
        Strings that have to go or to stay; none means: what stands in the raw file.
    """

    path: str
    action: str
    category: str
    text: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PixelBox:
    """Text that was drawn into every picture of a series.

    Attributes
    ----------
    top, left, bottom, right : int
        Rows and columns of the picture, the last two not included.
    text : tuple of str
        What stands there.
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
        Whether it is a scan that has to survive; screenshots and localizers may vanish as a whole.
    files : int
        Number of raw files.
    rules : tuple of TagRule
        Header elements, each for every file.
    boxes : tuple of PixelBox
        Burned-in text; all other pixels have to stay.
    """

    series_uid: str
    kept: bool
    files: int
    rules: tuple[TagRule, ...]
    boxes: tuple[PixelBox, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NoteSpan:
    """A part of a note that has to go: first and last character, Safe Harbor kind, and the words that may not be left."""

    start: int
    end: int
    kind: str
    parts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class NoteKey:
    """What has to go from one note, and the phrases that have to stay (eponyms, scores, values)."""

    spans: tuple[NoteSpan, ...]
    stay: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AnswerKey:
    """Everything that was planted in one simulated patient; it lies in the private zone beside the raw files.

    Attributes
    ----------
    case_id : str
        Pseudonym of the case.
    series : tuple of SeriesKey
        Raw series.
    notes : tuple of NoteKey
        Notes in order of time.
    record_go, record_stay : tuple of str
        Strings that no cell of the record may hold, and cells `variable=value` that have to stay.
    strings : tuple of str
        Long enough to be searched in every shareable file.
    label : str
        That nobody is named here.
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
    """How often an action was due and how often it was right.

    Attributes
    ----------
    place : str
        `header` (DICOM after cleaning), `note`, `record`, or `files` (everything that is shareable).
    action : str
        One of the ten actions, or `words_removed`: of the words that went from notes, those that had to.
    category : str
        `HIPAA`, `DICOM` or `research`; of notes the Safe Harbor kind.
    required, right : int
        Checks.
    patients, patients_right : int
        Simulated patients with such a check, and those for whom every one was right.
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
    """The score of one simulated patient (`score.json`): counts, and where wrong checks lie by tag or kind; never a value."""

    case_id: str
    rows: tuple[ScoreRow, ...]
    wrong: dict[str, int] = field(default_factory=dict)
    schema_version: int = 1
