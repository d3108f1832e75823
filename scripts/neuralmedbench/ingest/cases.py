"""One case's raw files to neutral names, with the kind of every scan read from the headers before they are cleaned."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.ingest.geometry import Geometry, measure_affine, measure_dicom
from neuralmedbench.ingest.identity import collect_identity
from neuralmedbench.ingest.raw_nifti import B0, is_mask, label_nifti, read_b_values, trace_image
from neuralmedbench.ingest.raw_series import (
    RawScan,
    RawSeries,
    checked_bytes,
    is_cut_off,
    load_raw_files,
    physics_of,
    sort_into_series,
    stem_of,
    words_of,
)
from neuralmedbench.ingest.sequences import Label, label_sequence, plain_words
from neuralmedbench.io import dicom
from neuralmedbench.io.dcm2niix import convert
from neuralmedbench.io.identity import write_identity
from neuralmedbench.io.nifti import Volume, read_nifti, write_nifti
from neuralmedbench.io.partial import partial_folder
from neuralmedbench.io.raw_index import RawIndex
from neuralmedbench.records.case import CaseRecord, FileFate, Sequence, Series, State

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

MIN_SLICES = 3
REFORMATTED = frozenset({"MPR", "PROJECTION IMAGE", "MIP"})


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
        If a file changed or is absent. (A case without a usable series comes back as quarantined.)
    ConfigError
        If an override names an unknown kind of scan, or a series that the case does not have.
    """
    scans = load_raw_files(index, root)
    result = sort_into_series(scans)
    write_identity(out / "identity.json", collect_identity(scans))
    labels = {series.series_id: _override(series.series_id, overrides) for series in result.series}
    if unknown := sorted(set(overrides) - set(labels)):
        message = f"sequence_overrides of case {base.case_id}: {unknown[0]} is none of its {len(labels)} series; correct its row in the case table"
        raise ConfigError(message)
    used: list[Series] = []
    fates = dict(result.set_aside)
    for series in result.series:
        try:
            record = _take(series, out / "series", labels[series.series_id], result.series)
        except DataError as error:
            fates.update(dict.fromkeys(_numbers(series), f"{series.series_id}: {error}"))
            shutil.rmtree(out / "series" / series.series_id, ignore_errors=True)
        else:
            used.append(record)
    case = replace(
        base,
        fates=_fates(scans, result.series, fates),
        quality={"files": float(len(scans)), "files_used": float(len(scans) - len(fates)), "series": float(len(used))},
    )
    if not used:
        # not raised: the fate of every file tells a person what to put right
        reason = f"no usable series among {len(scans)} files: {_most_common(fates)}"
        return replace(case, state=State.QUARANTINED, quarantined_by=base.stage, reason=reason)
    notes, record_path = _copy_text(index, root, out / "text")
    return replace(case, series=tuple(used), notes=notes, record=record_path)


def _fates(scans: list[RawScan], series: list[RawSeries], set_aside: Mapping[int, str]) -> tuple[FileFate, ...]:
    by_number = {number: one.series_id for one in series for number in _numbers(one)}
    return tuple(
        FileFate(
            file=scan.number,
            fate="set_aside" if scan.number in set_aside else "used",
            reason=set_aside.get(scan.number) or by_number[scan.number],
        )
        for scan in scans
    )


def _override(series_id: str, overrides: Mapping[str, str]) -> Label | None:
    if series_id not in overrides:
        return None
    try:
        return Label(Sequence(overrides[series_id]), ("label_by_a_person",))
    except ValueError:
        message = f"sequence_overrides: {series_id} is set to an unknown kind; known kinds: {', '.join(Sequence)}"
        raise ConfigError(message) from None


def _numbers(series: RawSeries) -> list[int]:
    return [scan.number for scan in (*series.scans, *series.beside)]


def _most_common(reasons: Mapping[int, str]) -> str:
    """Name the reason that set most files aside; a series' number in it says nothing to a reader."""
    plain = [reason.partition(": ")[2] if reason.startswith("series-") else reason for reason in reasons.values()]
    return max(sorted(set(plain)), key=plain.count) if plain else "there are none"


def _take(series: RawSeries, folder: Path, label: Label | None, others: list[RawSeries]) -> Series:
    if series.header is None:
        return _take_nifti(series, folder, label)
    return _take_dicom(series, folder, label, others)


def _take_nifti(series: RawSeries, folder: Path, label: Label | None) -> Series:
    path = series.scans[0].path
    volume = read_nifti(path)
    words = plain_words(stem_of(path))
    if label is None and is_mask(words, volume.voxels):
        message = "a mask, not a scan"
        raise DataError(message)
    modality, own = label_nifti(stem_of(path), volume.voxels)
    label = _known(label or own)
    b_value: float | None = None
    if volume.voxels.ndim == 4:
        gradients = [beside.path for beside in series.beside if beside.path.name.endswith(".bval")]
        if label.sequence is not Sequence.DWI or not gradients:
            message = f"a series of {volume.voxels.shape[3]} volumes without b-values"
            raise DataError(message)
        voxels, b_value = trace_image(volume.voxels, read_b_values(gradients[0]))
        volume = Volume(voxels, volume.affine)
    elif label.sequence is Sequence.DWI and "b0" in words.replace("b 0", "b0"):
        b_value = 0.0
    return _write_volume(series.series_id, folder, volume, label, modality=modality, b_value=b_value)


def _take_dicom(series: RawSeries, folder: Path, label: Label | None, others: list[RawSeries]) -> Series:
    header = series.scans[0].header
    assert header is not None
    modality, words, physics = dicom.text(header, "Modality"), words_of(header), physics_of(header)
    label = _known(label or label_sequence(modality, words, physics))
    if _is_reformatted(series, others):
        message = "reformatted from another series of the case (ImageType)"
        raise DataError(message)
    if cut := [scan.number for scan in series.scans if is_cut_off(scan)]:
        message = f"{len(cut)} of {len(series.scans)} files are cut off, the first is file {cut[0]} of the case; copy them again"
        raise DataError(message)
    geometry = measure_dicom(series)
    b_value = physics.b_value if label.sequence is Sequence.DWI else None
    mosaic = "MOSAIC" in dicom.texts(header, "ImageType")
    if mosaic or geometry.volumes > 1 or (label.sequence is Sequence.DWI and "NumberOfFrames" in header):
        if label.sequence not in {Sequence.DWI, Sequence.ADC}:
            message = f"a series of {geometry.volumes} volumes that is no diffusion scan"
            raise DataError(message)
        volume, b_value = _convert_here(series, folder)
        return _write_volume(series.series_id, folder, volume, label, modality=modality, b_value=b_value)
    if geometry.slices < MIN_SLICES:
        message = f"fewer than {MIN_SLICES} slices"
        raise DataError(message)
    _copy_dicom(series.scans, folder / series.series_id)
    return _series(
        series.series_id,
        f"series/{series.series_id}",
        label,
        geometry,
        modality=modality,
        b_value=b_value,
        acquisition=_acquisition(header),
    )


def _write_volume(series_id: str, folder: Path, volume: Volume, label: Label, *, modality: str, b_value: float | None) -> Series:
    write_nifti(folder / f"{series_id}.nii.gz", volume)
    geometry = measure_affine(volume.affine, volume.voxels.shape)
    return _series(series_id, f"series/{series_id}.nii.gz", label, geometry, modality=modality, b_value=b_value)


def _known(label: Label) -> Label:
    if label.sequence is Sequence.UNKNOWN:
        message = "kind of scan not known: name it in `sequence_overrides` of the case table if it shall be used"
        raise DataError(message)
    return label


def _is_reformatted(series: RawSeries, others: list[RawSeries]) -> bool:
    """Whether a series was computed from another one that is here too: same frame of reference, and says so itself."""
    header = series.header
    if header is None or not REFORMATTED & set(dicom.texts(header, "ImageType")):
        return False
    frame = dicom.text(header, "FrameOfReferenceUID")
    originals = [other.header for other in others if other.header is not None and other is not series]
    return any(
        frame == dicom.text(other, "FrameOfReferenceUID") and not REFORMATTED & set(dicom.texts(other, "ImageType")) for other in originals
    )


def _convert_here(series: RawSeries, folder: Path) -> tuple[Volume, float | None]:
    """Convert diffusion while the vendor's headers, which hold gradients and tiles, are still there."""
    folder.mkdir(parents=True, exist_ok=True)
    with partial_folder(folder) as work:  # not in the system's folder: raw headers stay in the private zone
        _copy_dicom(series.scans, work / "in")
        results = convert(work / "in", work / "out")
        volumes = [read_nifti(result.image) for result in results]
        sizes = [volume.voxels.size for volume in volumes]
        best = sizes.index(max(sizes))
        volume, bval = volumes[best], results[best].bval
        if volume.voxels.ndim == 3:
            return volume, None
        if bval is None:
            message = "diffusion weighting of a series of volumes is not in its headers"
            raise DataError(message)
        voxels, b_value = trace_image(volume.voxels, read_b_values(bval))
        return Volume(voxels, volume.affine), b_value


def _copy_dicom(scans: tuple[RawScan, ...], folder: Path) -> None:
    folder.mkdir(parents=True)
    for place, scan in enumerate(scans, start=1):
        shutil.copyfile(scan.path, folder / f"{place:06d}.dcm")


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


def _copy_text(index: RawIndex, root: Path, folder: Path) -> tuple[tuple[str, ...], str]:
    """Copy notes and record as UTF-8 under neutral names."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[str] = []
    for number, note in enumerate(index.notes, start=1):
        content = checked_bytes(root / note.path, note.sha256, f"note {number} of {len(index.notes)}")
        (folder / f"note-{number:02d}.txt").write_text(_decode(content), encoding="utf-8", newline="\n")
        paths.append(f"text/note-{number:02d}.txt")
    if index.record is None:
        return tuple(paths), ""
    content = checked_bytes(root / index.record.path, index.record.sha256, "the health record")
    (folder / "record.csv").write_text(_decode(content), encoding="utf-8", newline="\n")
    return tuple(paths), "text/record.csv"


def _decode(content: bytes) -> str:
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return content.decode(encoding).replace("\r\n", "\n")
        except UnicodeDecodeError:
            continue
    return content.decode("latin-1").replace("\r\n", "\n")
