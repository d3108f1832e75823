"""The scans of a case to BIDS: headers cleaned, converted, and without a face."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from neuralmedbench.deid.bids_scan import bids_names, clean_sidecar
from neuralmedbench.deid.burned_in.hide import Policy, TextFoundError, count_text, has_suspect_header, hide_text, stacked_along
from neuralmedbench.deid.faces.deface import deface
from neuralmedbench.deid.faces.locate import Head, defacing_order, frame_of
from neuralmedbench.deid.headers.cleaner import clean_series
from neuralmedbench.deid.headers.rules import OF_PIXELS, HeaderRules
from neuralmedbench.deid.review.pieces import write_header_piece, write_scan_pieces
from neuralmedbench.deid.score.case import NO_OBSERVER, Observer
from neuralmedbench.errors import DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.dcm2niix import convert
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.nifti import Volume, read_nifti, write_nifti
from neuralmedbench.records.case import CaseRecord, Sequence, Series
from neuralmedbench.runtime.atomic_write import partial_folder, write_text

SPACING_TOLERANCE = 0.03


def clean_scans(
    case: CaseRecord,
    source: Path,
    out: Path,
    rules: HeaderRules,
    checks: Counter[str],
    *,
    aside: dict[str, str],
    watch: Observer = NO_OBSERVER,
    burned_in: Policy = "hide",
) -> tuple[Series, ...]:
    """Write all scans of a case with BIDS names.

    Parameters
    ----------
    case : CaseRecord
        The ingested case.
    source, out : Path
        Its folder, and the folder of the de-identified case.
    rules : HeaderRules
        Key, pseudonym and dates.
    checks : Counter
        Counts what was done.
    aside : dict of str to str
        Gets the reasons why series are left out, by series id.
    watch : Watch
        Sees a phantom's scans before they are thrown away, to score their cleaning.
    burned_in : str
        `hide` burned-in text, or `drop` a series that shows any.

    Returns
    -------
    tuple of Series
        The scans that could be converted; one that no program can read is counted as `series_not_convertible`.

    Raises
    ------
    DataError
        If none could be converted, or all were dropped.
    DeidentificationError
        If a face cannot be located, or text cannot be hidden.
    """
    names = bids_names(case)
    done: dict[str, Series] = {}
    heads: list[Head] = []
    failed: list[DataError] = []
    for series in defacing_order(case.series):
        try:
            stem = out / names[series.series_id]
            written = write_scan(series, source, stem, rules, checks, heads=heads, watch=watch, burned_in=burned_in)
        except TextFoundError as error:
            failed.append(error)  # counted as dropped
            aside[series.series_id] = _why(series, error)
        except DataError as error:  # one series that no program can read does not take the others with it
            failed.append(error)
            checks["series_not_convertible"] += 1
            aside[series.series_id] = _why(series, error)
        else:
            done[series.series_id] = replace(written, path=f"{names[series.series_id]}.nii.gz")
    if not done:
        raise failed[0]
    return tuple(done[series.series_id] for series in case.series if series.series_id in done)


def write_scan(
    series: Series,
    source: Path,
    stem: Path,
    rules: HeaderRules,
    checks: Counter[str],
    *,
    heads: list[Head],
    watch: Observer,
    burned_in: Policy,
) -> Series:
    """Write one cleaned scan with its sidecars as `stem`.nii.gz...; gives the series with what defacing found, and adds its head to `heads`."""
    case_folder = stem.parent.parent
    with partial_folder(source) as work:  # faces are in it: it stays in the private zone
        changed: Counter[tuple[str, str]] = Counter()
        volume, sidecar = _clean_volume(series, source, work, rules, checks=checks, changed=changed)
        watch.cleaned(source / series.path, work / "clean")
        _check_spacing(series, volume)
        volume, text_flags = _without_text(series, source / series.path, volume, burned_in, checks)
        watch.converted(source / series.path, volume)
        frame = frame_of(source / series.path)
        defaced = deface(volume, is_map=series.sequence is Sequence.ADC, heads=heads, name=series.series_id, frame=frame)
        heads.extend([defaced.head] if defaced.head else [])
        write_nifti(stem.with_name(f"{stem.name}.nii.gz"), defaced.volume)
        done = {*OF_PIXELS, *(rules.held - OF_PIXELS if sidecar is not None else ())}
        write_json(
            stem.with_name(f"{stem.name}.json"), clean_sidecar(sidecar, modality=series.modality, codes=done, acquired=_acquired(work))
        )
    if series.sequence is Sequence.DWI:
        write_text(stem.with_name(f"{stem.name}.bval"), f"{series.b_value or 0:g}\n")
        write_text(stem.with_name(f"{stem.name}.bvec"), "0\n0\n0\n")  # a trace has no direction
    write_scan_pieces(case_folder, series.series_id, defaced.volume)
    write_header_piece(case_folder, series.series_id, changed)
    checks["faces_removed"] += defaced.quality["face_removed"] > 0
    return replace(series, flags=(*series.flags, *text_flags, *defaced.flags), quality={**series.quality, **defaced.quality})


def _acquired(work: Path) -> str:
    """AcquisitionTime of the first cleaned file of a series; empty when there is none. The converter leaves times out."""
    first = min((work / "clean").glob("*.dcm"), default=None)
    return dicom.text(dicom.read_header(first.read_bytes()), "AcquisitionTime") if first is not None else ""


def _clean_volume(
    series: Series, source: Path, work: Path, rules: HeaderRules, *, checks: Counter[str], changed: Counter[tuple[str, str]]
) -> tuple[Volume, Path | None]:
    """Read one series without its header: DICOM is cleaned before it is converted, NIfTI keeps voxels and geometry alone."""
    path = source / series.path
    if path.is_file():
        checks["nifti_headers_cleaned"] += 1
        return read_nifti(path), None
    counts = clean_series(path, work / "clean", rules, changed)
    checks.update({f"header_{name}": number for name, number in counts.items()})
    checks["dicom_files_cleaned"] += sum(1 for _ in path.glob("*.dcm"))
    results = [result for result in convert(work / "clean", work / "nifti") if result.image.stat().st_size]
    volumes = [(read_nifti(result.image), result.sidecar) for result in results]
    volume, sidecar = max(volumes, key=lambda one: one[0].voxels.size)
    if volume.voxels.ndim != 3:
        message = f"{series.series_id}: the conversion gave a series of volumes; name its kind in `sequence_overrides` or exclude it"
        raise DataError(message)
    return volume, sidecar


def _without_text(series: Series, raw: Path, volume: Volume, policy: Policy, checks: Counter[str]) -> tuple[Volume, tuple[str, ...]]:
    """Hide burned-in text, before the face goes: a head without its front is no reason to stop looking."""
    files = sorted(raw.glob("*.dcm"))
    suspect = bool(files) and has_suspect_header(dicom.read_header(files[0].read_bytes()))
    axis = stacked_along(volume.voxels.shape, volume.affine, len(files) or None)
    hidden = hide_text(volume.voxels, axis, suspect=suspect, policy=policy)
    count_text(checks, hidden.found, policy, "series")
    if not hidden.found:
        return volume, ()
    if policy == "drop":
        message = f"{series.series_id}: text is burned into the pixels, and `deidentification: burned_in` says drop"
        raise TextFoundError(message)
    return Volume(hidden.voxels, volume.affine), ("burned_in_text_hidden",)


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


def _why(series: Series, error: DataError) -> str:
    """Why a series is left out, in the words of a later stage: its kind takes the place of its number."""
    return f"{series.sequence.value}: {str(error).removeprefix(f'{series.series_id}: ')}"
