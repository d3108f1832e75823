"""One ingested case to a BIDS case that identifies nobody."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np

from neuralmedbench.deid.deface import deface
from neuralmedbench.deid.headers import HeaderRules, clean_series
from neuralmedbench.deid.leaks import count_leaks
from neuralmedbench.deid.notes import clean_note
from neuralmedbench.deid.records import clean_record
from neuralmedbench.deid.sidecars import clean_sidecar
from neuralmedbench.deid.thumbnails import write_thumbnail
from neuralmedbench.deid.values import DateShift, parse_day
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.io.dcm2niix import convert
from neuralmedbench.io.files import write_json, write_text
from neuralmedbench.io.identity import identity_pattern, read_identity
from neuralmedbench.io.nifti import Volume, read_nifti, write_nifti
from neuralmedbench.io.partial import partial_folder, sweep
from neuralmedbench.io.pseudonyms import date_shift_days
from neuralmedbench.records.case import CaseRecord, Sequence, Series

BIDS = {
    Sequence.T1W: ("anat", "", "T1w"),
    Sequence.CE_T1W: ("anat", "ce-gadolinium", "T1w"),
    Sequence.T2W: ("anat", "", "T2w"),
    Sequence.FLAIR: ("anat", "", "FLAIR"),
    Sequence.T2STARW: ("anat", "", "T2starw"),
    Sequence.PDW: ("anat", "", "PDw"),
    Sequence.DWI: ("dwi", "", "dwi"),
    Sequence.ADC: ("dwi", "", "ADC"),
    Sequence.SWI: ("swi", "", "swi"),
    Sequence.CT: ("ct", "", "ct"),
    Sequence.CE_CT: ("ct", "ce-contrast", "ct"),
}
"""Folder, entity and suffix of each kind of scan."""
OUTPUTS = ("anat", "dwi", "swi", "ct", "text", "review")
SPACING_TOLERANCE = 0.03


def deidentify_case(case: CaseRecord, source: Path, out: Path, key: bytes, profile: str) -> CaseRecord:
    """De-identify one case.

    Parameters
    ----------
    case : CaseRecord
        The ingested case.
    source : Path
        Folder that holds it, with `identity.json`.
    out : Path
        Folder to fill; scans, texts and review pictures that it held before are replaced.
    key : bytes
        Secret of the pseudonyms.
    profile : str
        `pseudonymised` (dates shifted) or `safe_harbor` (years only).

    Returns
    -------
    CaseRecord
        The case with BIDS names, cleaned texts and the counts of every check.

    Raises
    ------
    DataError
        If no series can be converted with the geometry of its raw positions.
    DeidentificationError
        If a face cannot be located, or an identifying value is left in any file; nothing is left in `out` then.
    """
    empty_outputs(out)
    identity = read_identity(source / "identity.json")
    pattern = identity_pattern(identity)
    # the pseudonym stands for the patient: all cases of a patient share it, and with it the shift
    dates = DateShift(date_shift_days(key, case.patient_id), years_only=profile == "safe_harbor")
    rules = HeaderRules(key, case.patient_id, dates, pattern)
    checks: Counter[str] = Counter()
    try:
        series = _write_all_series(case, source, out, rules, checks)
        scan_day = parse_day(identity.scan_date)
        notes = tuple(path for path in case.notes if _write_note(source / path, out / path, rules, scan_day, checks))
        if not identity.names:
            checks["notes_without_known_names"] += len(notes)
        record = (
            "text/record.tsv"
            if case.record and _write_record(source / case.record, out / "text/record.tsv", rules, scan_day, checks)
            else ""
        )
        leaks = count_leaks(out, identity)
        if leaks:
            message = f"{leaks} identifying values are left after cleaning: the case is kept back; report the kind of file, never the value"
            raise DeidentificationError(message)
    except (DataError, DeidentificationError):
        empty_outputs(out)
        raise
    return replace(case, series=series, notes=notes, record=record, checks={**{name: checks[name] for name in sorted(checks)}, "leaks": 0})


def empty_outputs(out: Path) -> None:
    """Remove what this stage wrote before, and what a killed run of it left half-done."""
    sweep(out)
    for name in OUTPUTS:
        shutil.rmtree(out / name, ignore_errors=True)


def bids_names(case: CaseRecord) -> dict[str, str]:
    """Give the BIDS path without suffix of each series; a second series of the same kind gets `run-2`.

    Parameters
    ----------
    case : CaseRecord
        A case with labelled series.

    Returns
    -------
    dict of str to str
        By series id, for example `anat/sub-0123_ce-gadolinium_T1w`.
    """
    names: dict[str, str] = {}
    seen: Counter[Sequence] = Counter()
    for series in case.series:
        folder, entity, suffix = BIDS[series.sequence]
        seen[series.sequence] += 1
        run = f"run-{seen[series.sequence]}" if seen[series.sequence] > 1 else ""
        names[series.series_id] = f"{folder}/" + "_".join(part for part in (f"sub-{case.case_id}", entity, run, suffix) if part)
    return names


def _write_all_series(case: CaseRecord, source: Path, out: Path, rules: HeaderRules, checks: Counter[str]) -> tuple[Series, ...]:
    names = bids_names(case)
    done: list[Series] = []
    failed: list[DataError] = []
    for series in case.series:
        try:
            written = _write_series(series, source, out / names[series.series_id], rules, checks)
        except DataError as error:  # one series that no program can read does not take the others with it
            failed.append(error)
            checks["series_not_convertible"] += 1
        else:
            done.append(replace(written, path=f"{names[series.series_id]}.nii.gz"))
    if not done:
        raise failed[0]
    return tuple(done)


def _write_series(series: Series, source: Path, stem: Path, rules: HeaderRules, checks: Counter[str]) -> Series:
    """Write one cleaned scan with its sidecars as `stem`.nii.gz...; gives the series with what defacing found."""
    with partial_folder(source) as work:  # faces are in it: it stays in the private zone
        volume, sidecar = _clean_volume(series, source, work, rules, checks)
        _check_spacing(series, volume)
        defaced = deface(volume)
        write_nifti(stem.with_name(f"{stem.name}.nii.gz"), defaced.volume)
        write_json(stem.with_name(f"{stem.name}.json"), clean_sidecar(sidecar, modality=series.modality))
    if series.sequence is Sequence.DWI:
        write_text(stem.with_name(f"{stem.name}.bval"), f"{series.b_value or 0:g}\n")
        write_text(stem.with_name(f"{stem.name}.bvec"), "0\n0\n0\n")  # a trace has no direction
    write_thumbnail(stem.parent.parent / "review" / f"{series.series_id}.png", defaced.volume)
    checks["faces_removed"] += defaced.quality["face_removed"] > 0
    return replace(series, flags=(*series.flags, *defaced.flags), quality={**series.quality, **defaced.quality})


def _clean_volume(series: Series, source: Path, work: Path, rules: HeaderRules, checks: Counter[str]) -> tuple[Volume, Path | None]:
    """Read one series without its header: DICOM is cleaned before it is converted, NIfTI keeps voxels and geometry alone."""
    path = source / series.path
    if path.is_file():
        checks["nifti_headers_cleaned"] += 1
        return read_nifti(path), None
    counts = clean_series(path, work / "clean", rules)
    checks.update({f"header_{name}": number for name, number in counts.items()})
    checks["dicom_files_cleaned"] += sum(1 for _ in path.glob("*.dcm"))
    results = [result for result in convert(work / "clean", work / "nifti") if result.image.stat().st_size]
    volumes = [(read_nifti(result.image), result.sidecar) for result in results]
    volume, sidecar = max(volumes, key=lambda one: one[0].voxels.size)
    if volume.voxels.ndim != 3:
        message = f"{series.series_id}: the conversion gave a series of volumes; name its kind in `sequence_overrides` or exclude it"
        raise DataError(message)
    return volume, sidecar


def _check_spacing(series: Series, volume: Volume) -> None:
    """Positions win over SliceThickness: the distance between the converted slices must be the measured one."""
    expected = series.quality.get("spacing_mm")
    if not expected or "uneven_spacing" in series.flags:
        return
    sizes = np.linalg.norm(volume.affine[:3, :3], axis=0)
    if np.abs(sizes - expected).min() > SPACING_TOLERANCE * expected:
        message = (
            f"{series.series_id}: slices lie {expected:g} mm apart, the converted scan says {', '.join(f'{size:.3g}' for size in sizes)} mm"
        )
        raise DataError(message)


def _write_note(source: Path, target: Path, rules: HeaderRules, scan_day: date | None, checks: Counter[str]) -> bool:
    """Write one cleaned note; False when nothing of it may be shown."""
    note = clean_note(source.read_text(encoding="utf-8"), rules.dates, rules.identifying, scan_day=scan_day)
    checks.update({f"notes_{kind}": number for kind, number in note.counts.items()})
    if not note.text.strip():
        return False
    write_text(target, note.text)
    return True


def _write_record(source: Path, target: Path, rules: HeaderRules, scan_day: date | None, checks: Counter[str]) -> bool:
    """Write the cleaned record; False when no row of it may be shown."""
    record = clean_record(source.read_text(encoding="utf-8"), rules.dates, rules.identifying, scan_day)
    checks.update(record.counts)
    if not record.text:
        return False
    write_text(target, record.text)
    return True
