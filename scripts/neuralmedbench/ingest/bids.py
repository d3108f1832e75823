"""BIDS names and data sets: entities, suffixes, inheritance of sidecars, folders without raw scans, ages and sexes of participants."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from neuralmedbench.files.texts import UnreadableTextError, decode_text
from neuralmedbench.ingest.sequences import CONTRAST_OF, CONTRAST_UNCLEAR, DISAGREE, Physics, SequenceLabel, sequence_by_physics
from neuralmedbench.records.case import NoHead, Sequence

NAME = re.compile(r"sub-[A-Za-z0-9+]+(?:_[A-Za-z0-9]+-[A-Za-z0-9+]+)*_([A-Za-z0-9]+)")
SUFFIXES = {
    "T1w": Sequence.T1W, "T2w": Sequence.T2W, "FLAIR": Sequence.FLAIR, "PDw": Sequence.PDW, "T2starw": Sequence.T2STARW,
    "swi": Sequence.SWI, "dwi": Sequence.DWI, "ADC": Sequence.ADC, "adc": Sequence.ADC, "trace": Sequence.DWI, "ct": Sequence.CT,
    "CT": Sequence.CT, "UNIT1": Sequence.T1W, "angio": Sequence.ANGIO,
}  # fmt: skip
NOT_STRUCTURAL = frozenset({
    "bold", "cbv", "sbref", "asl", "m0scan", "epi", "magnitude", "magnitude1", "magnitude2", "phase", "phase1", "phase2", "phasediff",
    "fieldmap", "T1map", "T2map", "T2starmap", "R1map", "R2map", "PDmap", "MTRmap", "MTsat", "Chimap", "minIP", "MP2RAGE", "VFA",
    "MESE", "MEGRE", "IRT1", "MPM", "MTS", "MTR", "TB1map", "TB1TFL", "RB1map", "pet", "svs", "mrsi", "unloc", "mrsref", "FLASH", "PDT2",
    "inplaneT1", "inplaneT2", "defacemask", "T2star", "FA", "MD", "colFA",
})  # fmt: skip
"""BIDS suffixes of images that are not structural scans, or may be of several kinds."""
NAMED = {
    NoHead.FIELD_MAP: {"epi", "magnitude", "magnitude1", "magnitude2", "phase1", "phase2", "phasediff", "fieldmap"},
    NoHead.FUNCTIONAL: {"bold", "cbv", "sbref"},
    NoHead.PERFUSION: {"asl", "m0scan"},
}
ENTITIES_OF_MAPS = {"part": {"phase", "real", "imag"}, "inv": set("12345"), "mt": {"on"}, "rec": {"mip", "minip"}}
OTHER_FOLDERS = {
    "derivatives": "derived data (derivatives of a BIDS data set)",
    "sourcedata": "source data of a BIDS data set, which holds the same scans",
    "code": "code of a BIDS data set",
    "stimuli": "stimuli of a BIDS data set",
    "phenotype": "tables of a BIDS data set",
}
"""Folders of a BIDS data set without raw scans."""
MARKER = "dataset_description.json"
METADATA_NAME = re.compile(
    r"(?:[^_]+-[^_]+_)*(?:participants|samples|sessions|scans|events|beh|channels|electrodes|coordsystem|aslcontext|physio|stim)"
    r"\.(?:json|tsv|tsv\.gz)"
)
"""Names of tables of a BIDS data set, and of the files that explain their columns: they describe no single scan."""
TABLE, SESSIONS = "participants.tsv", "sessions.tsv"
COLUMNS = {
    "age": ("age", "ageyears", "ageinyears"),
    "sex": ("sex", "gender"),
    "participant": ("participantid",),
    "session": ("sessionid", "session"),
}
"""Names of columns, as letters in lower case; the first with a value counts."""
UNKNOWN = frozenset({"", "n/a", "na", "nan", "none", "null", "unknown", "u", "-", "?", "."})
AGE = re.compile(r"0*(\d{1,3}(?:\.\d+)?\+?)(?:\.0*)?[yY]?")
PARTS_OF_A_YEAR = {"M": 12, "W": 52, "D": 365}
OLDEST_PERSON = 125
MOST_LINES = 5
PlacedNotice = tuple[str, list[int]]
"""What a person should know, and the places of the sessions that it is about."""
CODE = re.compile(r"-?\d{1,3}|9{4,}")
EXPECTED = {"age": "years, such as 61", "sex": "a word, such as F or M"}


def entities_of(name: str) -> dict[str, str]:
    """Return the entities of a BIDS name.

    Examples
    --------
    >>> entities_of("sub-01_ses-2_ce-gadolinium_T1w")
    {'sub': '01', 'ses': '2', 'ce': 'gadolinium'}
    """
    return dict(part.split("-", 1) for part in name.split("_") if "-" in part)


def is_bids(name: str) -> bool:
    """Return whether a file name without suffix is a valid BIDS name."""
    return NAME.fullmatch(name) is not None


def applies_to(sidecar: str, scan: str) -> bool:
    """Return whether a sidecar or gradients apply to a scan by name (BIDS' inheritance principle).

    Both are file names without suffixes; folders are not considered.

    Examples
    --------
    >>> applies_to("T1w", "sub-01_T1w"), applies_to("acq-fast_T1w", "sub-01_T1w"), applies_to("sub-01_T1w", "sub-01_acq-fast_T1w")
    (True, False, True)
    """
    return (
        is_bids(scan)
        and sidecar.rsplit("_", maxsplit=1)[-1] == scan.rsplit("_", maxsplit=1)[-1]
        and entities_of(sidecar).items() <= entities_of(scan).items()
    )


def subject_and_session(name: str) -> tuple[str, str]:
    """Return patient and session of a file: `sub-x` and `ses-y` (empty without a session)."""
    entities = entities_of(name)
    return f"sub-{entities['sub']}", f"ses-{entities['ses']}" if entities.get("ses") else ""


def label_bids(name: str, modality: str, physics: Physics) -> SequenceLabel | None:
    """Label a scan by its BIDS name, checked against the timing in its sidecar; None without a BIDS name or with an unknown suffix.

    `modality` is `MR` or `CT`, by the voxels. The suffix determines the sequence, the entity `ce` the contrast agent. Free words (`acq-`,
    `desc-`) do not change the label, but words for contrast in them without `ce` are flagged.
    """
    matched = NAME.fullmatch(name)
    if matched is None:
        return None
    entities = entities_of(name)
    if matched[1] in NOT_STRUCTURAL or any(entities.get(key) in values for key, values in ENTITIES_OF_MAPS.items()):
        return SequenceLabel(
            Sequence.UNKNOWN, other=next((name for name, suffixes in NAMED.items() if matched[1] in suffixes), NoHead.NOT_KNOWN)
        )
    kind = SUFFIXES.get(matched[1])
    if kind is None:
        return None
    agent = entities.get("ce", "none").lower() not in {"none", "no"}
    flags: list[str] = []
    free = " ".join(entities.get(key, "") for key in ("acq", "desc", "rec"))
    if kind in {Sequence.T1W, Sequence.CT} and not agent and re.search(r"(?i)post|gad|contrast|enh|(?:^|\W)ce(?:$|\W)", free):
        flags.append(CONTRAST_UNCLEAR)
    by_physics = sequence_by_physics(physics)
    if by_physics is not None and by_physics is not kind and kind in {Sequence.T1W, Sequence.T2W, Sequence.FLAIR, Sequence.PDW}:
        flags.append(DISAGREE)
    if (modality == "CT") != (kind is Sequence.CT) and DISAGREE not in flags:
        flags.append(DISAGREE)
    return SequenceLabel(CONTRAST_OF.get(kind, kind) if agent else kind, tuple(flags))


def other_folder(place: PurePosixPath, roots: set[PurePosixPath]) -> str:
    """Return why a file of a BIDS data set is not a raw scan, by its folder; empty if it may be one.

    `roots` are the folders with a `dataset_description.json`.
    """
    for folder in place.parents:
        if folder.name in OTHER_FOLDERS and folder.parent in roots:
            return OTHER_FOLDERS[folder.name]
    return ""


def spelling(text: str) -> str:
    r"""Return an id without that in which spellings of one id differ: case, blanks, carets, zero bytes, zeros before a number.

    Examples
    --------
    >>> {spelling(text) for text in ("MRN0047291", "mrn 47291", "Mrn^0047291\0")}
    {'mrn47291'}
    """
    letters = re.sub(r"[\s^\0]", "", unicodedata.normalize("NFKC", text).casefold())
    return re.sub(r"(?<!\d)0+(?=\d)", "", letters)


@dataclass(frozen=True)
class ParticipantRow:
    """One row of a table: its line, the ids as written, age and sex where known, and by column what was not understood."""

    line: int
    participant: str
    session: str
    facts: dict[str, str]
    unread: dict[str, str]


def participant_facts(root: Path, sessions: SequenceOf[tuple[str, str]]) -> tuple[list[dict[str, str]], list[PlacedNotice]]:
    """Return age and sex of subjects and sessions of a data set, and what a person should know about its tables.

    `root`: folder of the data set; `sessions`: labels as of `subject_and_session`. A row belongs to the subject with its id, else to the
    only one whose id differs in case, signs and zeros before a number alone. The row of a session precedes that of its subject, and
    `sessions.tsv` precedes both.
    """
    rows: list[ParticipantRow] = []
    if (root / TABLE).exists():
        table = read_rows(root / TABLE, "participant")
        if table is None:
            return [{} for _ in sessions], [(f"{TABLE} was not used: expected a table with the column participant_id", [])]
        rows = table
    by_subject, notices = _rows_by_subject(rows, {subject for subject, _ in sessions})
    facts: list[dict[str, str]] = []
    used: set[int] = set()
    without: list[int] = []
    contradicted: list[int] = []
    of_sessions: list[ParticipantRow] = []
    for place, (subject, session) in enumerate(sessions):
        chosen = _rows_of_session(by_subject.get(subject, []), session)
        table_of_sessions = read_rows(root / subject / f"{subject}_{SESSIONS}", "session") or []
        of_session = [row for row in table_of_sessions if session and _label(row.session, "ses") == _label(session, "ses")]
        facts.append(_common_facts(chosen) | _common_facts(of_session))
        used |= {row.line for row in chosen}
        of_sessions += of_session
        if not chosen and not of_session:
            without.append(place)
        if {name for row in (*chosen, *of_session) for name in row.facts} - set(facts[-1]):
            contradicted.append(place)
    if rows:
        lines = [row.line for rows_of_one in by_subject.values() for row in rows_of_one if row.line not in used]
        notices += _notice(TABLE, lines, "met no session of their subject")
    if rows and without:
        notices.append((f"{TABLE}: {len(without)} of {len(sessions)} cases met no row", without))
    if contradicted:
        words = "met rows with different ages or sexes, which were not used; name the session of each row (column session_id)"
        notices.append((f"{TABLE}: {len(contradicted)} of {len(sessions)} cases {words}", contradicted))
    return facts, [*notices, *_unread_notices(TABLE, rows), *_unread_notices(SESSIONS, of_sessions)]


def read_rows(path: Path, needed: str) -> list[ParticipantRow] | None:
    """Read a table with tabs, semicolons or commas between its columns; None if there is none, or not the column that is needed."""
    try:
        text = decode_text(path.read_bytes())
        head = text.partition("\n")[0]
        reader = csv.reader(text.splitlines(), delimiter=max("\t;,", key=head.count))
        table = [(reader.line_num, cells) for cells in reader]
    except (OSError, UnreadableTextError, csv.Error):
        return None
    titles = [re.sub(r"[^a-z]", "", title.casefold()) for title in table[0][1]] if table else []
    if not set(COLUMNS[needed]) & set(titles):
        return None
    return [_row(line, dict(zip(titles, cells, strict=False))) for line, cells in table[1:] if any(map(str.strip, cells))]


def _row(line: int, cells: dict[str, str]) -> ParticipantRow:
    values = {name: _first_known(cells, titles) for name, titles in COLUMNS.items()}
    participant, _, session = values["participant"].partition("_ses-")
    read = {"age": _age(values["age"]), "sex": "" if re.search(r"\d", values["sex"]) else values["sex"]}
    return ParticipantRow(
        line,
        participant,
        values["session"] or session,
        {name: value for name, value in read.items() if value},
        {name: values[name] for name, value in read.items() if values[name] and not value},
    )


def _first_known(cells: dict[str, str], titles: Iterable[str]) -> str:
    values = (cells.get(title, "").strip() for title in titles)
    return next((value for value in values if value.casefold() not in UNKNOWN), "")


def _age(text: str) -> str:
    """Return an age in years; empty for a code such as 999 or -4.

    Examples
    --------
    >>> [_age(text) for text in ("61", "058Y", "61.0", "89+", "018M", "999", "-4")]
    ['61', '58', '61', '89+', '1.5', '', '']
    """
    if match := re.fullmatch(r"(\d{1,3})([MWD])", text.upper()):
        return f"{round(int(match[1]) / PARTS_OF_A_YEAR[match[2]], 1):g}"
    years = AGE.fullmatch(text)
    if years is None or float(years[1].rstrip("+")) > OLDEST_PERSON:
        return ""
    return years[1] if years[1].endswith("+") else f"{float(years[1]):g}"


def _label(text: str, entity: str) -> str:
    """Return the label of an entity as its spellings have in common; a BIDS label has neither signs nor blanks.

    Examples
    --------
    >>> {_label(text, "sub") for text in ("sub-0050772", "50772", "SUB_50772 ", "50772.0")}
    {'50772'}
    """
    bare = re.sub(rf"^{entity}[-_ ]|\.0+$", "", text.strip().casefold())
    return spelling(re.sub(r"[\W_]", "", bare))


def _rows_by_subject(rows: Iterable[ParticipantRow], subjects: set[str]) -> tuple[dict[str, list[ParticipantRow]], list[PlacedNotice]]:
    """Return the rows of each subject, and notices about rows that fit by number alone, none, or several."""
    alike: dict[str, set[str]] = defaultdict(set)
    for subject in subjects:
        alike[_label(subject, "sub")].add(subject)
    by_subject: dict[str, list[ParticipantRow]] = defaultdict(list)
    others: list[ParticipantRow] = []
    for row in rows:
        if row.participant in subjects:
            by_subject[row.participant].append(row)
        else:
            others.append(row)
    exact = set(by_subject)
    spellings: dict[str, set[str]] = defaultdict(set)
    for row in others:
        spellings[_label(row.participant, "sub")].add(row.participant)
    by_number, several, unmet = [], [], []
    for row in others:
        label = _label(row.participant, "sub")
        fitting = alike.get(label, set())
        if not fitting:
            unmet.append(row.line)
        elif len(fitting) > 1 or len(spellings[label]) > 1 or fitting & exact:
            several.append(row.line)
        else:
            by_subject[min(fitting)].append(row)
            by_number.append(row.line)
    notices = _notice(TABLE, unmet, "met no subject with scans")
    notices += _notice(
        TABLE, several, "met several subjects, or one with a row of its own, and were not used; write the ids as the files are named"
    )
    notices += _notice(TABLE, by_number, "met a subject by number, because the ids are spelled differently")
    return by_subject, notices


def _rows_of_session(rows: SequenceOf[ParticipantRow], session: str) -> list[ParticipantRow]:
    """Return the rows of a subject that describe one session of it, else those without a session."""
    if not session:
        return list(rows)
    named = [row for row in rows if row.session and _label(row.session, "ses") == _label(session, "ses")]
    return named or [row for row in rows if not row.session]


def _common_facts(rows: SequenceOf[ParticipantRow]) -> dict[str, str]:
    """Return what is known by rows that do not contradict each other."""
    values: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for name, value in row.facts.items():
            values[name].add(value)
    return {name: min(known) for name, known in values.items() if len(known) == 1}


def _unread_notices(table: str, rows: Iterable[ParticipantRow]) -> list[PlacedNotice]:
    """Say which ages and codes of sex were not understood; words are not repeated."""
    unread: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for row in rows:
        for name, value in row.unread.items():
            unread[name].append((row.line, value))
    notices = []
    for name, values in sorted(unread.items()):
        codes = sorted({value for _, value in values if CODE.fullmatch(value)}, key=int)
        what = f"the codes {', '.join(codes)}" if codes else "words or numbers"
        words = f"held {what} in column {name}, which count as unknown; expected {EXPECTED[name]}"
        notices += _notice(table, [line for line, _ in values], words)
    return notices


def _notice(table: str, lines: SequenceOf[int], words: str) -> list[PlacedNotice]:
    """Say something about rows, with their number and lines; nothing without rows."""
    if not lines:
        return []
    shown = ", ".join(map(str, sorted(lines)[:MOST_LINES]))
    more = f" and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else ""
    return [(f"{table}: {len(lines)} {'row' if len(lines) == 1 else 'rows'} (line {shown}{more}) {words}", [])]
