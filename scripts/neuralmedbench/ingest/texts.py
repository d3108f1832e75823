"""Notes and records of a folder, handed to the case that they belong to."""

from __future__ import annotations

from pathlib import Path

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.texts import UnreadableTextError, decode_text
from neuralmedbench.ingest.found import FoundCase
from neuralmedbench.ingest.raw_files import stem_of
from neuralmedbench.ingest.told import FILES_TABLE, Told

NOTE_SUFFIXES = (".txt", ".md")
RECORD_NAME = "record.csv"
STRAY_TEXT = "fits no single case"
UNREADABLE = "no plain text, or in an encoding that cannot be told; save it as text in UTF-8"


def is_readable(content: bytes) -> bool:
    """Whether some bytes are a plain text; in a text that is garbled nobody could find a name."""
    try:
        decode_text(content)
    except UnreadableTextError:
        return False
    return True


def give_text(path: Path, source: Path, cases: list[FoundCase], told: Told | None) -> bool:
    """Hand a note or a record to its case; False for a text that has none."""
    owners = [case for case in cases if told is not None and told.case and case.study == told.case]
    if not owners:
        word = path.stem.split("_")[0]
        named = [
            case
            for case in cases
            if word in {stem_of(scan.path).split("_")[0] for scan in case.scans if scan.header is None} | {case.patient, case.study}
        ]
        inside = [case for case in cases if path.parent in case.folders] or _below(path.parent, source, cases)
        by_folder = [case for case in cases if path.parent.name in {folder.name for folder in case.folders} | {case.patient, case.study}]
        near = next((found for folder in path.parent.parents if source in folder.parents and (found := _below(folder, source, cases))), [])
        owners = next((choice for choice in ([case for case in inside if case in named], named, inside, by_folder, near) if choice), [])
    if len(owners) != 1 and path.name != RECORD_NAME:
        return False
    if len(owners) != 1:
        many = "fits several cases" if owners else "fits no case"
        message = f"a record {many}: put it into the folder of the scans of one case, or name its case in {FILES_TABLE} (column case)"
        raise ConfigError(message)
    case = owners[0]
    if path.name != RECORD_NAME:
        case.notes.append(path)
    elif case.record is None:
        case.record = path
    else:
        message = f"a case has two files {RECORD_NAME}: keep one, or name their cases in {FILES_TABLE}"
        raise ConfigError(message)
    return True


def _below(folder: Path, source: Path, cases: list[FoundCase]) -> list[FoundCase]:
    """Cases with scans in or below a folder; below `source` itself lie all of them, which tells nothing."""
    return [case for case in cases if folder != source and any(folder in (place, *place.parents) for place in case.folders)]
