"""Import one series of a case under a neutral name, or refuse it with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.nifti import Volume, read_nifti, write_nifti
from neuralmedbench.files.volumes import CT_AIR_HU, is_ct
from neuralmedbench.ingest.bids import label_bids
from neuralmedbench.ingest.conversion import B0, read_b_values, regrid_series, strongest_weighting, trace_image, weighted_volume
from neuralmedbench.ingest.geometry import Geometry, check_field, contradicts_sidecar, is_mosaic, measure_affine, measure_dicom
from neuralmedbench.ingest.pixels import check_size, copy_dicom, is_blank, split_cut_off, split_duplicates
from neuralmedbench.ingest.raw_files import FILE_NAMES, RawScan, merge_sidecars, stem_of
from neuralmedbench.ingest.raw_series import RawSeries
from neuralmedbench.ingest.sequences import (
    BY_PERSON,
    DISAGREE,
    OTHER_TYPES,
    PHYSICS_ALONE,
    Physics,
    SequenceLabel,
    b_value_of,
    completed,
    label_of_header,
    label_sequence,
    other_part,
    plain_words,
    sequence_by_words,
)
from neuralmedbench.records.case import MIN_SLICES, NoHead, Sequence, Series, VoxelSizes

if TYPE_CHECKING:
    from pydicom.dataset import Dataset


REFORMATTED = frozenset({"MPR", "CSA MPR", "PROJECTION IMAGE", "MIP", "REFORMATTED"})
REFORMATTED_WORDS = re.compile(r"\b(?:mpr|reformat\w*|recon\w*|curved|average)\b")
NAMES = ("SeriesDescription", "ProtocolName")
DIFFUSION = frozenset({Sequence.DWI, Sequence.ADC})


MASK = re.compile(r"\b(?:mask|brainmask|seg|segmentation|label|labels|roi|lesion|dseg|probseg|\w*mask)\b")
CT_WORDS = re.compile(r"\b(?:ct|cta|cect|ncct)\b")
MULTI_ECHO = re.compile(r"\b(?:multi ?echo(?:es)?|mecho|me ?gre|me ?se|all ?echoes)\b")
WHO = re.compile(r"^(?:(?:sub|ses)(?:-[A-Za-z0-9+]+|[_ ]?\d[A-Za-z0-9]*)_)+", re.IGNORECASE)
"""Subject and session at the start of a name: a `sub` is not a subtraction."""
MAX_VALUE = 1e12
"""Largest voxel: the sum of the squares of all voxels still is a 32-bit float."""
MAX_MASK_VALUES = 8
"""A volume with at most so many different values is a mask or a label map."""


@dataclass(frozen=True)
class SeriesOfCase:
    """All series of the case, and the id of the original by the id of a copied series."""

    series: list[RawSeries]
    copies: Mapping[str, str]


@dataclass(frozen=True)
class ImportedSeries:
    """An imported series, and the reasons, by number, of those of its files that are not used."""

    series: Series
    excluded: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Description:
    """Properties of a series other than its geometry; b-value in s/mm2."""

    series_id: str
    label: SequenceLabel
    modality: str
    b_value: float | None = None


def import_series(
    series: RawSeries, folder: Path, label: SequenceLabel | None, others: SeriesOfCase, *, sizes: VoxelSizes | None = None
) -> ImportedSeries:
    """Copy a series to `folder`/<series_id>, or convert it to `folder`/<series_id>.nii.gz.

    `label` is a person's; None if the files decide. `sizes` is what counts in a NIfTI header whose voxel sizes differ.
    An unusable series raises DataError, whose message becomes the reason of its files.
    """
    if series.header is None:
        return _import_nifti(series, folder, label, sizes)
    return _import_dicom(series, folder, label, others)


def _import_nifti(series: RawSeries, folder: Path, label: SequenceLabel | None, sizes: VoxelSizes | None) -> ImportedSeries:
    path = series.scans[0].path
    volume = read_nifti(path, f"file {series.scans[0].number} of the case", sizes)
    check_voxels(volume.voxels)
    sidecars = [sidecar.path for sidecar in series.sidecars if sidecar.is_json]
    fields, words = merge_sidecars(sidecars), plain_words(stem_of(path))
    if label is None or BY_PERSON not in label.flags:
        _check_body_part(str(fields.get("BodyPartExamined", "")))
    modality, by_name = label_nifti(stem_of(path), volume.voxels, sidecars, by_a_person=label is not None)
    if volume.voxels.ndim == 4 and (isinstance(fields.get("EchoTime"), list) or MULTI_ECHO.search(words)):
        raise DataError(NoHead.ECHOES.format(volume.voxels.shape[3]))
    label = _check_known(completed(label, by_name))
    if contradicts_sidecar(volume.affine, fields):
        label = replace(label, flags=(*label.flags, "sidecar_geometry_disagrees"))
    gradients = next((sidecar.path for sidecar in reversed(series.sidecars) if sidecar.path.suffix.lower() == ".bval"), None)
    volume, b_value = volume_3d(volume, label.sequence, gradients, words)
    return ImportedSeries(_write_volume(_Description(series.series_id, label, modality, b_value), folder, volume))


def _import_dicom(series: RawSeries, folder: Path, label: SequenceLabel | None, others: SeriesOfCase) -> ImportedSeries:
    """Import a DICOM series; where several reasons exclude it, the first step decides."""
    header = series.scans[0].header
    assert header is not None
    # 1. A series that was sent twice is used once, unless a person labelled the copy.
    if (label is None or BY_PERSON not in label.flags) and series.series_id in others.copies:
        raise DataError(NoHead.SENT_AGAIN.format(others.copies[series.series_id]))
    # 2. It must not show another part of the body, and its sequence be known: by a person, or by words and physics of the header.
    if label is None or BY_PERSON not in label.flags:
        _check_body_part(dicom.text(header, "BodyPartExamined"))
    weights = [b_value_of(scan.header) for scan in series.scans if scan.header is not None]
    by_header = label_of_header(header, weights)
    if PHYSICS_ALONE in by_header.flags and _has_other_echoes(series, others.series):
        by_header = SequenceLabel(Sequence.UNKNOWN, other=NoHead.FIELD_MAP)
    label = _check_known(completed(label, by_header))
    # 3. A series computed from another one of the case is not used.
    if _is_reformatted(series, others.series):
        raise DataError(NoHead.REFORMATTED)
    # 4. Files that are cut off are left out; the others must show something.
    complete, cut = split_cut_off(series.scans)
    because = _name_cut_files(cut, len(series.numbers))
    if not complete:
        raise DataError(because)
    _check_not_blank(complete)
    excluded = dict.fromkeys(cut, f"{series.series_id}: cut off; copy it again")
    label = replace(label, flags=(*label.flags, *(["cut_off_files"] if cut else [])))
    # 5. Duplicate images are dropped; of diffusion only the strongest weighting is kept. What is left must fit into memory.
    scans, copies = split_duplicates(complete)
    used = {scan.number for scan in scans}  # an object may hold copies beside other frames
    excluded |= {scan.number: f"{series.series_id}: {NoHead.COPY}" for scan in copies if scan.number not in used}
    b_value = None
    if label.sequence is Sequence.DWI:
        weights = [] if copies else [b_value_of(scan.header) for scan in scans if scan.header is not None]
        scans, b_value = strongest_weighting(scans, weights)
    check_size(scans)
    # 6. The slices must form a volume; the tiles of a mosaic have no positions of their own.
    geometry = measure_dicom([scan.header for scan in scans if scan.header is not None])
    mosaic = is_mosaic(header)
    if not mosaic:
        _check_places(geometry, because)
        check_field(_sides_mm(header, geometry))
    described = _Description(series.series_id, label, dicom.text(header, "Modality"), b_value)
    # 7. Several volumes are diffusion, converted to one trace image while the vendor's headers are available.
    if mosaic or geometry.volumes > 1:
        if label.sequence not in DIFFUSION:
            raise DataError(NoHead.MOSAIC if mosaic else NoHead.VOLUMES.format(geometry.volumes))
        volume, b_value = weighted_volume(scans, folder, b_value)
        return ImportedSeries(_write_volume(replace(described, b_value=b_value), folder, volume), excluded)
    if dicom.text(header, "LossyImageCompression") == "01":
        described = replace(described, label=replace(label, flags=(*label.flags, "lossy_compression")))
    # 8. Tilted or unevenly spaced slices are converted to a regular grid.
    if {"gantry_tilt", "uneven_spacing"} & set(geometry.flags):
        return ImportedSeries(_write_volume(described, folder, regrid_series(scans, folder), measured=geometry), excluded)
    # 9. Everything else stays DICOM: its headers are cleaned before it is converted.
    copy_dicom(scans, folder / series.series_id)
    return ImportedSeries(_series(described, f"series/{series.series_id}", geometry, _acquisition(header)), excluded)


def _name_cut_files(cut: SequenceOf[int], total: int) -> str:
    """Say which files of a series are cut off, by their numbers in the case; empty if none is."""
    if not cut:
        return ""
    one = len(cut) == 1
    which = (
        f"file {cut[0]} of the case is cut off"
        if one
        else f"{len(cut)} of {total} files are cut off, the first is file {cut[0]} of the case"
    )
    return f"{which}; copy {'it' if one else 'them'} again ({FILE_NAMES} in the case's folder of data/raw has the name)"


def _check_not_blank(scans: SequenceOf[RawScan]) -> None:
    if is_blank(scans[len(scans) // 2]) and all(is_blank(scan) for scan in scans):
        message = "all pixels are equal; the scan shows nothing"
        raise DataError(message)


def _check_places(geometry: Geometry, because: str) -> None:
    """Refuse a series that is no complete volume: too few slices, gaps, positions with fewer images than others.

    `because` says which of its files were left out before.
    """
    reason = f": {because}" if because else ""
    if geometry.slices < MIN_SLICES:
        message = f"{NoHead.FEW_SLICES}{reason}"
        raise DataError(message)
    if "incomplete_volumes" in geometry.flags:
        message = f"some positions hold more images than others{reason or ': images are missing, or two scans share one series'}"
        raise DataError(message)
    if "missing_slices" in geometry.flags:
        number = int(geometry.quality["missing_slices"])
        missing = f"{number} slice{'s are' if number > 1 else ' is'} missing {geometry.gaps}"
        message = f"{missing}{reason or '; copy the whole series again'}"
        raise DataError(message)


def _sides_mm(header: Dataset, geometry: Geometry) -> list[float]:
    """Return the sides of the field of view of a DICOM series in mm."""
    pixels = [dicom.number(header, side) or 0.0 for side in ("Rows", "Columns")]
    across = [number * geometry.quality["pixel_mm"] for number in pixels]
    return [*across, geometry.slices * geometry.quality["spacing_mm"]]


def _write_volume(described: _Description, folder: Path, volume: Volume, measured: Geometry | None = None) -> Series:
    name = f"{described.series_id}.nii.gz"
    check_field(np.linalg.norm(volume.affine[:3, :3], axis=0) * volume.voxels.shape[:3])
    write_nifti(folder / name, volume)
    geometry = measure_affine(volume.affine, volume.voxels.shape)
    if measured is not None:
        geometry = Geometry(geometry.slices, 1, geometry.plane, measured.flags, {**measured.quality, **geometry.quality})
    return _series(described, f"series/{name}", geometry)


def _check_body_part(text: str) -> None:
    if part := other_part(text):
        message = (
            f"{NoHead.OTHER_PART}: {part} (BodyPartExamined); name its kind in `sequence_overrides` of the case table if it shows the head"
        )
        raise DataError(message)


def _has_other_echoes(series: RawSeries, others: list[RawSeries]) -> bool:
    """Return whether the case has the same scan with another echo time, or its phase: magnitudes of field maps have the timing of T1."""
    header = series.header
    for other in others:
        if header is None or other.header is None or other is series:
            continue
        same = all(dicom.text(header, name) == dicom.text(other.header, name) for name in ("StudyInstanceUID", *NAMES, "RepetitionTime"))
        phase = OTHER_TYPES[NoHead.PHASE] & set(dicom.texts(other.header, "ImageType"))
        if same and (phase or dicom.number(header, "EchoTime") != dicom.number(other.header, "EchoTime")):
            return True
    return False


def _check_known(label: SequenceLabel) -> SequenceLabel:
    if label.sequence is Sequence.UNKNOWN:
        message = f"{label.other}: name it in `sequence_map`, or in `sequence_overrides` of the case table, if it shall be used"
        raise DataError(message)
    return label


def _is_reformatted(series: RawSeries, others: list[RawSeries]) -> bool:
    """Return whether a series was computed from another one of the case: same frame of reference, and labelled as such."""
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
        agent=label.agent,
        plane=geometry.plane,
        acquisition=acquisition,
        b_value=b_value,
        flags=tuple(flags),
        quality=geometry.quality,
    )


def check_voxels(voxels: npt.NDArray[Any]) -> None:
    """Refuse a volume with non-finite or huge voxels, or with one value only."""
    if voxels.dtype.kind == "f" and (bad := int(voxels.size - np.isfinite(voxels).sum())):
        message = (
            f"{bad} of {voxels.size} voxels are no numbers (NaN or infinite); write 0 where they are background and list the cases again"
        )
        raise DataError(message)
    if (largest := max(abs(float(voxels.min())), float(voxels.max()))) > MAX_VALUE:
        message = f"voxels reach {largest:.3g}; at most {MAX_VALUE:.0e} is read: scale them and list the cases again"
        raise DataError(message)
    if voxels.min() == voxels.max():
        message = "all voxels are equal; the scan shows nothing"
        raise DataError(message)


def is_mask(words: str, voxels: npt.NDArray[Any]) -> bool:
    """Return whether a volume is a mask or a label map: by its name, or by few different values, all whole and not negative."""
    if MASK.search(words):
        return True
    sample = voxels[::2, ::2, ::2]  # for speed
    values = np.unique(sample[::2] if sample.size > 4_000_000 else sample)
    return bool(len(values) <= MAX_MASK_VALUES and values[0] >= 0 and np.array_equal(values, np.round(values)))


def label_nifti(
    name: str, voxels: npt.NDArray[Any], sidecars: Iterable[Path] = (), *, by_a_person: bool = False
) -> tuple[str, SequenceLabel]:
    """Return modality (`MR` or `CT`) and label of a NIfTI file, by name (without suffix, BIDS or not), sidecars and voxels.

    Sidecars are ordered from far to near. With a label by a person it may look
    like a mask; otherwise DataError for a mask. DataError also for an invalid sidecar.
    """
    words = plain_words(WHO.sub("", name))
    if not by_a_person and is_mask(words, voxels):
        raise DataError(NoHead.MASK)
    stated, texts, physics = read_sidecars(sidecars)
    modality, flags = modality_of(stated or ("CT" if CT_WORDS.search(words) else ""), words, voxels)
    label = label_bids(name, modality, physics) or label_sequence(modality, words, physics, texts)
    return modality, replace(label, flags=tuple(dict.fromkeys((*label.flags, *flags))))


def modality_of(stated: str, words: str, voxels: npt.NDArray[Any]) -> tuple[str, tuple[str, ...]]:
    """Return the modality of a volume as it is `stated`, else by its greys, with a flag where the greys contradict that or its `words`."""
    in_hu = is_ct(voxels)
    if stated:
        return stated, (DISAGREE,) if in_hu and stated == "MR" else ()
    if in_hu:
        return "CT", (DISAGREE,) if sequence_by_words(words) else ()
    return "MR", ("negative_voxels",) if float(voxels.min()) < CT_AIR_HU else ()


def read_sidecars(paths: Iterable[Path]) -> tuple[str, str, Physics]:
    """Return modality (`MR`, `CT` or empty), words and physics of BIDS sidecars, whose times are in s; DataError if one is no JSON object."""
    fields = merge_sidecars(paths)
    seconds = [fields.get(key) for key in ("RepetitionTime", "EchoTime", "InversionTime")]
    repetition, echo, inversion = (1000.0 * value if isinstance(value, int | float) else None for value in seconds)
    flip, agent, technique = fields.get("FlipAngle"), fields.get("ContrastBolusIngredient"), fields.get("ScanningSequence")
    physics = Physics(
        repetition_ms=repetition,
        echo_ms=echo,
        inversion_ms=inversion,
        agent=agent if isinstance(agent, str) else "",
        technique=frozenset(re.split(r"[\\_, ]+", technique)) if isinstance(technique, str) else frozenset(),
        flip_deg=float(flip) if isinstance(flip, int | float) else None,
    )
    texts = [fields.get(key) for key in ("SeriesDescription", "ProtocolName", "SequenceName")]
    modality = fields.get("Modality")
    words = plain_words(*(value for value in texts if isinstance(value, str)))
    return modality if modality in {"MR", "CT"} else "", words, physics


def volume_3d(volume: Volume, sequence: Sequence, gradients: Path | None, words: str) -> tuple[Volume, float | None]:
    """Return the 3-D volume of a NIfTI file (of a diffusion series the trace image) and its b-value.

    `gradients` is its `.bval` file, `words` are the `plain_words` of its name. DataError for any other series of volumes.
    """
    if volume.voxels.ndim == 4:
        if sequence is not Sequence.DWI:
            raise DataError(NoHead.VOLUMES.format(volume.voxels.shape[3]))
        if gradients is None:
            raise DataError(NoHead.VOLUMES_WITHOUT_WEIGHTS.format(volume.voxels.shape[3]))
        voxels, b_value = trace_image(volume.voxels, read_b_values(gradients))
        return Volume(voxels, volume.affine), b_value
    if sequence is not Sequence.DWI:
        return volume, None
    if gradients is not None and len(known := read_b_values(gradients)) == 1:
        return volume, float(known[0])
    return volume, 0.0 if "b0" in words.replace("b 0", "b0") else None
