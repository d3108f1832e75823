"""One case's raw files to neutral names, with the kind of every scan read from the headers before they are cleaned."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.identity import write_identity
from neuralmedbench.files.raw_index import RawFile, RawIndex
from neuralmedbench.files.texts import UnreadableTextError, decode_text
from neuralmedbench.ingest.import_series import OtherSeries, import_series
from neuralmedbench.ingest.pixels import repeated_series
from neuralmedbench.ingest.raw_files import checked_bytes, load_raw_files, path_inside
from neuralmedbench.ingest.raw_identity import collect_identity, several_patients
from neuralmedbench.ingest.raw_series import RawSeries, sort_into_series
from neuralmedbench.ingest.sequences import SequenceLabel
from neuralmedbench.records.case import CaseRecord, FileFate, Sequence, Series, State

USED = "used"


def ingest_case(base: CaseRecord, index: RawIndex, root: Path, out: Path, overrides: Mapping[str, str]) -> CaseRecord:
    """Copy the usable scans, notes and record of one case to neutral names.

    Parameters
    ----------
    base : CaseRecord
        Whose case it is.
    index : RawIndex
        The private index of its raw files.
    root : Path
        Folder that relative paths of the index start from.
    out : Path
        Folder to fill: `series/`, `text/`, `identity.json`.
    overrides : mapping of str to str
        Kind of scan by series id, where a person knows better than the header.

    Returns
    -------
    CaseRecord
        The case with its series, and with the fate of every raw file.

    Raises
    ------
    DataError
        If a file changed or is absent. (A case without a usable series, or of several patients, comes back as quarantined.)
    ConfigError
        If an override names an unknown kind of scan, or a series that the case does not have.
    """
    scans = load_raw_files(index, root)
    result = sort_into_series(scans)
    write_identity(out / "identity.json", collect_identity(scans, index.scan_date))
    labels = {series.series_id: _override(series.series_id, overrides) for series in result.series}
    if unknown := sorted(set(overrides) - set(labels)):
        message = f"sequence_overrides of case {base.case_id}: {unknown[0]} is none of its {len(labels)} series; correct its row in the case table"
        raise ConfigError(message)
    mixed = several_patients(scan for series in result.series for scan in series.scans)
    if mixed:
        fates = _file_fates(len(index.files), {}, dict.fromkeys(range(1, len(index.files) + 1), mixed))
        return replace(base, state=State.QUARANTINED, quarantined_by=base.stage, reason=mixed, fates=fates, raw_files=count_fates(fates))
    others = OtherSeries(result.series, repeated_series(result.series))
    used: list[Series] = []
    excluded = dict(result.excluded)  # reasons by file number
    for series in result.series:
        try:
            imported = import_series(series, out / "series", labels[series.series_id], others)
        except DataError as error:
            excluded.update(dict.fromkeys(series.numbers, f"{series.series_id}: {error}"))
            shutil.rmtree(out / "series" / series.series_id, ignore_errors=True)
        else:
            used.append(imported.series)
            excluded.update(imported.excluded)
    by_file = _series_by_file(result.series, used, excluded)
    fates = _file_fates(len(index.files), by_file, excluded)
    case = replace(
        base,
        fates=fates,
        raw_files=count_fates(fates),
        quality={"files": float(len(index.files)), "files_used": float(len(by_file)), "series": float(len(used))},
    )
    if not used:
        # not raised: the fate of every file tells a person what to put right
        reason = f"no usable series among {len(index.files)} files: {_most_common(excluded)}"
        return replace(case, state=State.QUARANTINED, quarantined_by=base.stage, reason=reason)
    notes, record_path, unread = copy_texts(index, root, out / "text")
    quality = {**case.quality, "texts_unreadable": float(unread)} if unread else case.quality
    return replace(case, series=tuple(used), notes=notes, record=record_path, quality=quality)


def _series_by_file(series: list[RawSeries], used: list[Series], excluded: Mapping[int, str]) -> dict[int, list[str]]:
    """Series that use each file; a multi-frame object or a sidecar may be part of several, and of one that is not used."""
    by_file: dict[int, list[str]] = {}
    ids = {one.series_id for one in used}
    for one in series:
        whole = {scan.number for scan in one.scans if scan.frame is not None} | {scan.number for scan in one.sidecars}
        for number in one.numbers if one.series_id in ids else ():
            if number not in excluded or number in whole:
                by_file.setdefault(number, []).append(one.series_id)
    return by_file


def _file_fates(files: int, used: Mapping[int, list[str]], excluded: Mapping[int, str]) -> tuple[FileFate, ...]:
    return tuple(
        FileFate(file=number, fate=USED, reason=", ".join(used[number]))
        if number in used
        else FileFate(file=number, fate="set_aside", reason=excluded[number])
        for number in range(1, files + 1)
    )


def count_fates(fates: Iterable[FileFate]) -> dict[str, int]:
    """Count raw files by what became of them: `used`, or why they were set aside.

    Examples
    --------
    >>> count_fates([FileFate(file=1, fate="used", reason="series-01"), FileFate(file=2, fate="set_aside", reason="series-02: 3 of 9 differ")])
    {'3 of 9 differ': 1, 'used': 1}
    """
    counts = Counter(USED if fate.fate == USED else _plain(fate.reason) for fate in fates)
    return dict(sorted(counts.items()))


def _plain(reason: str) -> str:
    """Give a reason without the series that it stands in."""
    return reason.partition(": ")[2] if reason.startswith("series-") else reason


def _override(series_id: str, overrides: Mapping[str, str]) -> SequenceLabel | None:
    if series_id not in overrides:
        return None
    try:
        return SequenceLabel(Sequence(overrides[series_id]), ("label_by_a_person",))
    except ValueError:
        message = f"sequence_overrides: {series_id} is set to an unknown kind; known kinds: {', '.join(Sequence)}"
        raise ConfigError(message) from None


def _most_common(reasons: Mapping[int, str]) -> str:
    """Name the reason that set most files aside; a series' number in it says nothing to a reader."""
    plain = [_plain(reason) for reason in reasons.values()]
    return max(sorted(set(plain)), key=plain.count) if plain else "there are none"


def copy_texts(index: RawIndex, root: Path, folder: Path) -> tuple[tuple[str, ...], str, int]:
    """Copy notes and record of a case as UTF-8 under neutral names.

    `folder`: folder to fill, `text/` of the case. Returns: Paths of the notes and of the record (empty without one) relative to the folder
    of the case, and how many texts could not be read. Raises DataError if a file changed or is absent.
    """
    folder.mkdir(parents=True, exist_ok=True)
    total, unread = len(index.notes), 0
    for number, note in enumerate(index.notes, start=1):
        unread += not _write_text(root, note, f"note {number} of {total}", folder / f"note-{number:02d}.txt")
    if index.record is not None:
        unread += not _write_text(root, index.record, "the health record", folder / "record.csv")
    notes = tuple(f"text/note-{number:02d}.txt" for number in range(1, total + 1))
    return notes, "text/record.csv" if index.record else "", unread


def _write_text(root: Path, file: RawFile, what: str, target: Path) -> bool:
    """Copy one text; False for what is none, which is copied as it is, so that de-identification counts and withholds it."""
    content = checked_bytes(path_inside(root, file.path, what), file.sha256, what)
    try:
        target.write_text(decode_text(content), encoding="utf-8", newline="\n")
    except UnreadableTextError:
        target.write_bytes(content)
        return False
    return True
