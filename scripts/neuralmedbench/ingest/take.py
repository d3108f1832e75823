"""One series of a case taken into the pipeline under a neutral name, or refused with the reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neuralmedbench.errors import DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.dcm2niix import convert
from neuralmedbench.files.nifti import Volume, read_nifti, write_nifti
from neuralmedbench.ingest.copies import without_copies
from neuralmedbench.ingest.diffusion import B0, strongest_weighting, weighted_volume
from neuralmedbench.ingest.geometry import Geometry, measure_affine, measure_dicom
from neuralmedbench.ingest.header_words import b_value_of, label_of_header
from neuralmedbench.ingest.orientation import slice_normal
from neuralmedbench.ingest.pixels import copy_dicom, is_blank, is_cut_off
from neuralmedbench.ingest.raw_files import RawScan, stem_of
from neuralmedbench.ingest.raw_nifti import check_voxels, label_nifti, take_volume
from neuralmedbench.ingest.raw_series import RawSeries
from neuralmedbench.ingest.sequences import Label
from neuralmedbench.ingest.straighten import straighten
from neuralmedbench.ingest.words import plain_words
from neuralmedbench.records.case import Sequence, Series
from neuralmedbench.runtime.atomic_write import partial_folder

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

MIN_SLICES = 3
REFORMATTED = frozenset({"MPR", "CSA MPR", "PROJECTION IMAGE", "MIP", "REFORMATTED"})
REFORMATTED_WORDS = re.compile(r"\b(?:mpr|reformat\w*|recon\w*|curved|average)\b")
DIFFUSION = frozenset({Sequence.DWI, Sequence.ADC})


@dataclass(frozen=True)
class Others:
    """What else a case holds: all its series, and by the id of a copied series the one that it repeats."""

    series: list[RawSeries]
    copies: Mapping[str, str]


@dataclass(frozen=True)
class Taken:
    """A series that is used, and the reasons of those of its files that are not."""

    series: Series
    set_aside: dict[int, str] = field(default_factory=dict)


def take_series(series: RawSeries, folder: Path, label: Label | None, others: Others) -> Taken:
    """Copy or convert one series to `folder`/<series_id> or `folder`/<series_id>.nii.gz.

    Parameters
    ----------
    series : RawSeries
        Its raw files.
    folder : Path
        Where it shall lie.
    label : Label or None
        What a person says that it is; None when the files have to tell.
    others : Others
        The other series of the case.

    Returns
    -------
    Taken
        The series as it is used from here on.

    Raises
    ------
    DataError
        If it cannot be used; the message is its reason.
    """
    return _take_nifti(series, folder, label) if series.header is None else _take_dicom(series, folder, label, others)


def _take_nifti(series: RawSeries, folder: Path, label: Label | None) -> Taken:
    path = series.scans[0].path
    volume = read_nifti(path)
    check_voxels(volume.voxels)
    sidecars = [beside.path for beside in series.beside if beside.path.suffix.lower() == ".json"]
    modality, own = label_nifti(stem_of(path), volume.voxels, sidecars, by_a_person=label is not None)
    label = _known(label or own)
    gradients = next((beside.path for beside in reversed(series.beside) if beside.path.suffix.lower() == ".bval"), None)
    volume, b_value = take_volume(volume, label.sequence, gradients, plain_words(stem_of(path)))
    return Taken(_write_volume(series.series_id, folder, volume, label, modality=modality, b_value=b_value))


def _take_dicom(series: RawSeries, folder: Path, label: Label | None, others: Others) -> Taken:
    header = series.scans[0].header
    assert header is not None
    if label is None and series.series_id in others.copies:
        message = f"the same images as {others.copies[series.series_id]}, sent again"
        raise DataError(message)
    weights = [b_value_of(scan.header) for scan in series.scans if scan.header is not None]
    label = _known(label or label_of_header(header, weights))
    if _is_reformatted(series, others.series):
        message = "reformatted from another series of the case (ImageType)"
        raise DataError(message)
    _check_pixels(series)
    scans, copies = without_copies(series.scans)
    aside = {scan.number: f"{series.series_id}: a copy of another image of the series" for scan in copies}
    modality = dicom.text(header, "Modality")
    b_value = None
    if label.sequence is Sequence.DWI:
        scans, b_value = strongest_weighting(scans, weights if len(scans) == len(series.scans) else [])
    geometry = measure_dicom(RawSeries(series.series_id, scans))
    mosaic = "MOSAIC" in dicom.texts(header, "ImageType")
    if not mosaic:
        _check_places(geometry)
    if mosaic or geometry.volumes > 1:
        if label.sequence not in DIFFUSION:
            message = (
                "a mosaic that is no diffusion scan" if mosaic else f"a series of {geometry.volumes} volumes that is no diffusion scan"
            )
            raise DataError(message)
        volume, b_value = weighted_volume(scans, folder, b_value)
        return Taken(_write_volume(series.series_id, folder, volume, label, modality=modality, b_value=b_value), aside)
    if dicom.text(header, "LossyImageCompression") == "01":
        label = Label(label.sequence, (*label.flags, "lossy_compression"))
    if {"gantry_tilt", "uneven_spacing"} & set(geometry.flags):
        volume = _straight(scans, folder)
        straight = _write_volume(series.series_id, folder, volume, label, modality=modality, b_value=b_value, measured=geometry)
        return Taken(straight, aside)
    copy_dicom(scans, folder / series.series_id)
    return Taken(
        _series(
            series.series_id,
            f"series/{series.series_id}",
            label,
            geometry,
            modality=modality,
            b_value=b_value,
            acquisition=_acquisition(header),
        ),
        aside,
    )


def _check_pixels(series: RawSeries) -> None:
    if cut := [scan.number for scan in series.scans if is_cut_off(scan)]:
        cut = sorted(set(cut))
        message = f"{len(cut)} of {len(series.numbers)} files are cut off, the first is file {cut[0]} of the case; copy them again"
        raise DataError(message)
    if is_blank(series.scans[len(series.scans) // 2]) and all(is_blank(scan) for scan in series.scans):
        message = "all pixels are equal; the scan shows nothing"
        raise DataError(message)


def _check_places(geometry: Geometry) -> None:
    """Refuse what cannot be a volume: too few slices, gaps, places with fewer images than others."""
    if geometry.slices < MIN_SLICES:
        message = f"fewer than {MIN_SLICES} slices"
        raise DataError(message)
    if "incomplete_volumes" in geometry.flags:
        message = "some positions hold more images than others: images are missing, or two scans share one series"
        raise DataError(message)
    if "missing_slices" in geometry.flags:
        message = f"{geometry.quality['missing_slices']:g} slices are missing between the others; copy the whole series again"
        raise DataError(message)


def _write_volume(
    series_id: str,
    folder: Path,
    volume: Volume,
    label: Label,
    *,
    modality: str,
    b_value: float | None,
    measured: Geometry | None = None,
) -> Series:
    write_nifti(folder / f"{series_id}.nii.gz", volume)
    geometry = measure_affine(volume.affine, volume.voxels.shape)
    if measured is not None:
        geometry = Geometry(geometry.slices, 1, geometry.plane, measured.flags, {**measured.quality, **geometry.quality})
    return _series(series_id, f"series/{series_id}.nii.gz", label, geometry, modality=modality, b_value=b_value)


def _known(label: Label) -> Label:
    if label.sequence is Sequence.UNKNOWN:
        message = "kind of scan not known: name it in `sequence_overrides` of the case table if it shall be used"
        raise DataError(message)
    return label


def _is_reformatted(series: RawSeries, others: list[RawSeries]) -> bool:
    """Whether a series was computed from another one that is here too: same frame of reference, and says so itself."""
    header = series.header
    if header is None or not _says_reformatted(header):
        return False
    frame = dicom.text(header, "FrameOfReferenceUID")
    originals = [other.header for other in others if other.header is not None and other is not series]
    return any(frame == dicom.text(other, "FrameOfReferenceUID") and not _says_reformatted(other) for other in originals)


def _says_reformatted(header: Dataset) -> bool:
    types = set(dicom.texts(header, "ImageType"))
    words = plain_words(dicom.text(header, "SeriesDescription"))
    return bool(REFORMATTED & types) or ("DERIVED" in types and ("AVERAGE" in types or REFORMATTED_WORDS.search(words) is not None))


def _straight(scans: tuple[RawScan, ...], folder: Path) -> Volume:
    """Convert a tilted or uneven series and put its slices where their positions say."""
    folder.mkdir(parents=True, exist_ok=True)
    headers = [scan.header for scan in scans if scan.header is not None]
    positions = np.array([dicom.numbers(header, "ImagePositionPatient") for header in headers])
    normal = slice_normal(dicom.numbers(headers[0], "ImageOrientationPatient")) or (0.0, 0.0, 0.0)
    with partial_folder(folder) as work:
        copy_dicom(scans, work / "in")
        results = convert(work / "in", work / "out", as_stacked=True)
        stack = max((read_nifti(result.image) for result in results), key=lambda volume: volume.voxels.size)
        return straighten(stack, positions, normal)


def _acquisition(header: Dataset) -> str:
    return {"2D": "2d", "3D": "3d"}.get(dicom.text(header, "MRAcquisitionType").upper(), "unknown")


def _series(
    series_id: str, path: str, label: Label, geometry: Geometry, *, modality: str, b_value: float | None, acquisition: str = "unknown"
) -> Series:
    flags = [*label.flags, *geometry.flags]
    if label.sequence is Sequence.DWI and b_value is not None and b_value < B0:
        flags.append("b0_only")
    return Series(
        series_id=series_id,
        path=path,
        modality=modality,
        sequence=label.sequence,
        plane=geometry.plane,
        acquisition=acquisition,
        b_value=b_value,
        flags=tuple(flags),
        quality=geometry.quality,
    )
