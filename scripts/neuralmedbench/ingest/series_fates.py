"""Record what became of every series that came in, and keep images of the unused ones, of which a reviewer is shown a preview."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from neuralmedbench.errors import DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.nifti import Volume, read_nifti, write_nifti
from neuralmedbench.files.raw_folder import images_folder, write_descriptions
from neuralmedbench.ingest.geometry import is_mosaic, place_of
from neuralmedbench.ingest.import_series import SeriesOfCase, is_mask
from neuralmedbench.ingest.pixels import check_size, copy_dicom
from neuralmedbench.ingest.raw_files import FileKind, RawScan, stem_of
from neuralmedbench.ingest.raw_series import RawSeries
from neuralmedbench.ingest.sequences import plain_words
from neuralmedbench.records.case import MIN_SLICES, NoHead, Sequence, Series, SeriesFate

VARIANTS = {
    "NORM": "intensity normalised",
    "DIS2D": "distortion corrected",
    "DIS3D": "distortion corrected",
    "FILTERED": "filtered",
    "FIL": "filtered",
    "DERIVED": "derived",
}
"""Words of ImageType by which two series of one acquisition differ."""
NOT_DEFACED = "neither a face nor text could be removed from it"


def series_fates(
    series: SeriesOfCase, outcomes: Mapping[str, Series | str], excluded: Mapping[int, str], scans: Iterable[RawScan], folder: Path
) -> tuple[SeriesFate, ...]:
    """Return the fate of every series, and of what belongs to none, by kind and reason.

    Parameters
    ----------
    series : SeriesOfCase
        All series of the case, and which of them repeat another one.
    outcomes : mapping of str to Series or str
        By series id: the imported series, or the reason for which it was not imported.
    excluded : mapping of int to str
        Reason by file number, of every excluded file.
    scans : iterable of RawScan
        All raw files of the case.
    folder : Path
        Folder of the case, in which images and descriptions of the series are written (`files.raw_folder`).

    Returns
    -------
    tuple of SeriesFate
        By series id; then `other-01`..., objects and files that are part of no series.
    """
    in_use = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Series)}
    twins = _same_acquisition(series.series, in_use)
    fates: list[SeriesFate] = []
    descriptions: dict[str, str] = {}
    for one in series.series:
        descriptions[one.series_id] = _description(one.scans[0])
        fate = SeriesFate(series_id=one.series_id, files=len(one.numbers), variant=_variant(one))
        if one.series_id in in_use:
            fates.append(replace(fate, same_acquisition=twins.get(one.series_id, ())))
            continue
        no_preview = f"the same images as {series.copies[one.series_id]}" if one.series_id in series.copies else _keep_images(one, folder)
        fates.append(replace(fate, reason=str(outcomes[one.series_id]), no_preview=no_preview))
    # objects that are no images of a scan, and single files
    numbers = {number for one in series.series for number in one.numbers}
    rest: dict[tuple[str, str], dict[int, RawScan]] = defaultdict(dict)
    for scan in scans:
        if scan.number not in numbers and scan.number in excluded and scan.kind is not FileKind.SIDECAR:
            uid = dicom.text(scan.header, "SeriesInstanceUID") if scan.header is not None else ""
            rest[uid, excluded[scan.number]].setdefault(scan.number, scan)
    for place, ((_, reason), files) in enumerate(sorted(rest.items(), key=lambda entry: min(entry[1])), start=1):
        name = f"other-{place:02d}"
        descriptions[name] = _description(next(iter(files.values())))
        fates.append(SeriesFate(series_id=name, files=len(files), reason=reason, no_preview=NOT_DEFACED))
    write_descriptions(folder, descriptions)
    return tuple(fates)


def _keep_images(series: RawSeries, folder: Path) -> str:
    """Copy one volume of an unused series; return why it has none that could be shown, empty if it has."""
    target = images_folder(folder) / series.series_id
    try:
        if series.header is None:
            write_nifti(target.with_name(f"{target.name}.nii.gz"), _first_volume(series.scans[0].path))
            return ""
        first_at_place: dict[tuple[float, ...], RawScan] = {}
        for scan in series.scans:
            first_at_place.setdefault(place_of(scan.header), scan)
        mosaic = is_mosaic(series.header)
        if len(first_at_place) < MIN_SLICES and not mosaic:
            return f"{NOT_DEFACED} ({NoHead.FEW_SLICES})"
        chosen = series.scans[:1] if mosaic else tuple(first_at_place.values())
        check_size(chosen)
        copy_dicom(chosen, target)
    except DataError:
        shutil.rmtree(target, ignore_errors=True)
        return "its images cannot be read"
    return ""


def _first_volume(path: Path) -> Volume:
    volume = read_nifti(path)
    voxels = volume.voxels if volume.voxels.ndim == 3 else volume.voxels[..., 0]
    if not np.isfinite(voxels).all() or voxels.min() == voxels.max() or is_mask(plain_words(stem_of(path)), voxels):
        message = "it shows no scan"
        raise DataError(message)
    return Volume(voxels, volume.affine)


def _description(scan: RawScan) -> str:
    """Return the raw description of a series: its SeriesDescription, or the name of a NIfTI file."""
    if scan.header is not None:
        return dicom.text(scan.header, "SeriesDescription") or dicom.text(scan.header, "ProtocolName")
    return stem_of(scan.path) if scan.kind is FileKind.NIFTI else ""


def _variant(series: RawSeries) -> str:
    """Return how the scanner processed a series, in words; empty if the header does not say."""
    types = (
        {part for value in dicom.texts(series.header, "ImageType") for part in value.upper().split("_")}
        if series.header is not None
        else set()
    )
    return ", ".join(dict.fromkeys(words for word, words in VARIANTS.items() if word in types))


def _same_acquisition(series: Iterable[RawSeries], used: Mapping[str, Series]) -> dict[str, tuple[str, ...]]:
    """Return, by used series, the other used ones of its kind that were acquired at the same time with the same timing."""
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for one in series:
        if one.series_id in used and (key := _acquisition(one, used[one.series_id].sequence)) is not None:
            groups[key].append(one.series_id)
    return {name: tuple(other for other in names if other != name) for names in groups.values() for name in names if len(names) > 1}


def _acquisition(series: RawSeries, sequence: Sequence) -> tuple[object, ...] | None:
    """Return what is equal in two reconstructions of one acquisition; None if the header has no time of acquisition."""
    header = series.header
    if header is None:
        return None
    times = {
        dicom.text(scan.header, name)
        for scan in series.scans
        if scan.header is not None
        for name in ("AcquisitionDateTime", "AcquisitionTime")
    }
    if not times - {""}:
        return None
    timing = tuple(
        dicom.text(header, name) for name in ("FrameOfReferenceUID", "AcquisitionDate", "RepetitionTime", "EchoTime", "InversionTime")
    )
    return sequence, min(times - {""}), *timing
