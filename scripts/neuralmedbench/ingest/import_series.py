"""One series of a case imported under a neutral name, or refused with the reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.errors import DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.nifti import Volume, read_nifti, write_nifti
from neuralmedbench.ingest.diffusion import B0, strongest_weighting, weighted_volume
from neuralmedbench.ingest.geometry import Geometry, measure_affine, measure_dicom
from neuralmedbench.ingest.pixels import copy_dicom, is_blank, is_cut_off, split_duplicates
from neuralmedbench.ingest.raw_files import stem_of
from neuralmedbench.ingest.raw_nifti import check_voxels, label_nifti, volume_3d
from neuralmedbench.ingest.raw_series import RawSeries
from neuralmedbench.ingest.regrid import regrid_series
from neuralmedbench.ingest.sequences import SequenceLabel, b_value_of, label_of_header
from neuralmedbench.ingest.words import plain_words
from neuralmedbench.records.case import Sequence, Series

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

MIN_SLICES = 3
REFORMATTED = frozenset({"MPR", "CSA MPR", "PROJECTION IMAGE", "MIP", "REFORMATTED"})
REFORMATTED_WORDS = re.compile(r"\b(?:mpr|reformat\w*|recon\w*|curved|average)\b")
DIFFUSION = frozenset({Sequence.DWI, Sequence.ADC})


@dataclass(frozen=True)
class OtherSeries:
    """What else a case holds: all its series, and by the id of a copied series the one that it repeats."""

    series: list[RawSeries]
    copies: Mapping[str, str]


@dataclass(frozen=True)
class ImportedSeries:
    """A series that is used, and why some of its files are not, by file number."""

    series: Series
    excluded: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Description:
    """What is known of a series before its geometry: id, kind, modality, diffusion weighting (s/mm2)."""

    series_id: str
    label: SequenceLabel
    modality: str
    b_value: float | None = None


def import_series(series: RawSeries, folder: Path, label: SequenceLabel | None, others: OtherSeries) -> ImportedSeries:
    """Copy or convert one series to `folder`/<series_id> or `folder`/<series_id>.nii.gz.

    `label` is what a person says that it is, None when the files have to tell. A series that cannot be used raises DataError; the message is
    the reason that stands beside its files.
    """
    return _import_nifti(series, folder, label) if series.header is None else _import_dicom(series, folder, label, others)


def _import_nifti(series: RawSeries, folder: Path, label: SequenceLabel | None) -> ImportedSeries:
    path = series.scans[0].path
    volume = read_nifti(path)
    check_voxels(volume.voxels)
    sidecars = [sidecar.path for sidecar in series.sidecars if sidecar.path.suffix.lower() == ".json"]
    modality, by_name = label_nifti(stem_of(path), volume.voxels, sidecars, by_a_person=label is not None)
    label = _check_known(label or by_name)
    gradients = next((sidecar.path for sidecar in reversed(series.sidecars) if sidecar.path.suffix.lower() == ".bval"), None)
    volume, b_value = volume_3d(volume, label.sequence, gradients, plain_words(stem_of(path)))
    return ImportedSeries(_write_volume(_Description(series.series_id, label, modality, b_value), folder, volume))


def _import_dicom(series: RawSeries, folder: Path, label: SequenceLabel | None, others: OtherSeries) -> ImportedSeries:
    """Import a DICOM series; the order of the steps decides which reason is given where several hold."""
    header = series.scans[0].header
    assert header is not None
    # 1. A series that was sent twice is used once, unless a person named the copy.
    if label is None and series.series_id in others.copies:
        message = f"the same images as {others.copies[series.series_id]}, sent again"
        raise DataError(message)
    # 2. Its kind must be known, by a person or by words and physics of the header.
    weights = [b_value_of(scan.header) for scan in series.scans if scan.header is not None]
    label = _check_known(label or label_of_header(header, weights))
    # 3. What was computed from another series of the case shows nothing new.
    if _is_reformatted(series, others.series):
        message = "reformatted from another series of the case (ImageType)"
        raise DataError(message)
    # 4. All pixels are there, and show something.
    _check_pixels(series)
    # 5. Of doubled images one is kept; of diffusion only the strongest weighting.
    scans, copies = split_duplicates(series.scans)
    excluded = {scan.number: f"{series.series_id}: a copy of another image of the series" for scan in copies}
    b_value = None
    if label.sequence is Sequence.DWI:
        scans, b_value = strongest_weighting(scans, weights if len(scans) == len(series.scans) else [])
    # 6. The slices make a volume; the tiles of a mosaic have no positions of their own.
    geometry = measure_dicom([scan.header for scan in scans if scan.header is not None])
    mosaic = "MOSAIC" in dicom.texts(header, "ImageType")
    if not mosaic:
        _check_places(geometry)
    described = _Description(series.series_id, label, dicom.text(header, "Modality"), b_value)
    # 7. First way out: several volumes are diffusion, and become one trace image while the vendor's headers are still here.
    if mosaic or geometry.volumes > 1:
        if label.sequence not in DIFFUSION:
            message = (
                "a mosaic that is no diffusion scan" if mosaic else f"a series of {geometry.volumes} volumes that is no diffusion scan"
            )
            raise DataError(message)
        volume, b_value = weighted_volume(scans, folder, b_value)
        return ImportedSeries(_write_volume(replace(described, b_value=b_value), folder, volume), excluded)
    if dicom.text(header, "LossyImageCompression") == "01":
        described = replace(described, label=SequenceLabel(label.sequence, (*label.flags, "lossy_compression")))
    # 8. Second way out: slices that are no even stack are brought onto a regular grid.
    if {"gantry_tilt", "uneven_spacing"} & set(geometry.flags):
        return ImportedSeries(_write_volume(described, folder, regrid_series(scans, folder), measured=geometry), excluded)
    # 9. Everything else goes on as DICOM, so that its headers can be cleaned before it is converted.
    copy_dicom(scans, folder / series.series_id)
    return ImportedSeries(_series(described, f"series/{series.series_id}", geometry, _acquisition(header)), excluded)


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


def _write_volume(described: _Description, folder: Path, volume: Volume, measured: Geometry | None = None) -> Series:
    name = f"{described.series_id}.nii.gz"
    write_nifti(folder / name, volume)
    geometry = measure_affine(volume.affine, volume.voxels.shape)
    if measured is not None:
        geometry = Geometry(geometry.slices, 1, geometry.plane, measured.flags, {**measured.quality, **geometry.quality})
    return _series(described, f"series/{name}", geometry)


def _check_known(label: SequenceLabel) -> SequenceLabel:
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


def _acquisition(header: Dataset) -> str:
    return {"2D": "2d", "3D": "3d"}.get(dicom.text(header, "MRAcquisitionType").upper(), "unknown")


def _series(described: _Description, path: str, geometry: Geometry, acquisition: str = "unknown") -> Series:
    label, b_value = described.label, described.b_value
    flags = [*label.flags, *geometry.flags]
    if label.sequence is Sequence.DWI and b_value is not None and b_value < B0:
        flags.append("b0_only")
    return Series(
        series_id=described.series_id,
        path=path,
        modality=described.modality,
        sequence=label.sequence,
        plane=geometry.plane,
        acquisition=acquisition,
        b_value=b_value,
        flags=tuple(flags),
        quality=geometry.quality,
    )
