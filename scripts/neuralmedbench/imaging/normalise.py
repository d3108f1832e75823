"""Bring the scans of one case to one left and one space, without blurring what they show.

The native voxels stay where they are: only the order of the axes and the shading change. Where the reference's brain lies in a
series is written down as a rigid transform; a resampled copy (2 mm) is made for measuring and for looking at the overlay, never
for a picture that a model sees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.fit import fit_quality, fit_template
from neuralmedbench.errors import DataError
from neuralmedbench.imaging.bias import correct_bias
from neuralmedbench.imaging.brain import find_brain
from neuralmedbench.imaging.quality import plane_of, reference_flags, series_flags
from neuralmedbench.imaging.register import Reference, as_transform, make_reference, register, rotation_deg
from neuralmedbench.io.files import read_json, sha256_of, whole_folder, write_json
from neuralmedbench.io.volumes import grid_over, read_volume, write_volume
from neuralmedbench.records.case import CaseRecord, Sequence, Series

if TYPE_CHECKING:
    import SimpleITK as sitk

VOLUMES = "volumes"
"""Folder beside `case.json` that holds what this stage makes."""
COPY_MM = 2.0
COMPUTED = (Sequence.CT, Sequence.CE_CT)
FLAT = (*COMPUTED, Sequence.ADC)
"""Sequences whose values are physical: no bias field is taken out."""

MIN_SHOWN = 0.02
"""Part of the brain below which a series shows something else."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a case is normalised.

    Attributes
    ----------
    reference_order : tuple of str
        Sequences in the order in which one of them becomes the reference.
    bias_grid_mm, registration_grid_mm : float
        Grids of the bias field and of the registration.
    """

    reference_order: tuple[str, ...]
    bias_grid_mm: float
    registration_grid_mm: float


@dataclass(frozen=True)
class Placed:
    """One series with its place in the space of the reference.

    Attributes
    ----------
    image, brain : SimpleITK.Image
        Native scan (float32) and brain mask (uint8), LPS+.
    rigid : ndarray of float, shape (4, 4)
        From points of the reference to points of the series, LPS+ in mm.
    """

    image: sitk.Image
    brain: sitk.Image
    rigid: npt.NDArray[np.float64]


def order_series(series: tuple[Series, ...], reference_order: tuple[str, ...]) -> list[Series]:
    """Put the reference first and keep the others in their order; series of unknown kind are set aside.

    Parameters
    ----------
    series : tuple of Series
        The scans of a case.
    reference_order : tuple of str
        Sequences in the order in which one of them becomes the reference.

    Returns
    -------
    list of Series
        The known scans, the reference first.

    Raises
    ------
    DataError
        If no scan is of a sequence in `reference_order`.
    """
    known = [entry for entry in series if entry.sequence is not Sequence.UNKNOWN]
    for sequence in reference_order:
        for entry in known:
            if entry.sequence == sequence:
                return [entry, *(other for other in known if other is not entry)]
    found = ", ".join(sorted({entry.sequence.value for entry in series})) or "no series"
    message = f"no series can be the reference: found {found}, expected one of {', '.join(reference_order)}"
    raise DataError(message)


def normalise(case: CaseRecord, source: Path, target: Path, settings: Settings) -> CaseRecord:
    """Normalise all scans of a case.

    Parameters
    ----------
    case : CaseRecord
        The de-identified case.
    source : Path
        Its folder.
    target : Path
        Folder of the normalised case; its folder `volumes` is replaced.
    settings : Settings
        How.

    Returns
    -------
    CaseRecord
        The case with the reference as its first series. Of each series there are `<series_id>.nii` (native grid, LPS+, without
        bias field), `<series_id>_brain.nii` (mask), `<series_id>_rigid.json` (from points of the reference to points of the
        series, LPS+ in mm) and `<series_id>_space-ref.nii` (2 mm copy in the space of the reference).

    Raises
    ------
    DataError
        If a scan cannot be read, or none can be the reference, or one shows another place than the reference.
    """
    import SimpleITK as sitk

    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(1)
    ordered = order_series(case.series, settings.reference_order)
    with whole_folder(target / VOLUMES) as folder:
        first, *others = ordered
        image = _flattened(first, source, settings)
        fit = fit_template(image)
        brain = find_brain(image, fit, is_ct=first.sequence in COMPUTED)
        fitted = fit_quality(image, fit)
        millilitres = round(_millilitres(brain), 1)
        copy = grid_over(image, COPY_MM)
        _write(folder, first, Placed(image, brain, np.eye(4)), copy)
        done = [_record(first, source, image, {}, reference_flags(millilitres, fitted))]
        reference = make_reference(image, brain, grid_mm=settings.registration_grid_mm)
        for entry in others:
            moved = _flattened(entry, source, settings)
            placed, quality = _place(entry, moved, reference, brain)
            _write(folder, entry, placed, copy)
            done.append(_record(entry, source, moved, quality, series_flags(quality)))
    quality = {"brain_ml": millilitres, "series_set_aside": float(len(case.series) - len(ordered))}
    return replace(case, series=tuple(done), quality=quality | {f"template_{name}": value for name, value in fitted.items()})


def _flattened(series: Series, source: Path, settings: Settings) -> sitk.Image:
    image = read_volume(source / series.path)
    return image if series.sequence in FLAT else correct_bias(image, grid_mm=settings.bias_grid_mm)


def _millilitres(mask: sitk.Image) -> float:
    import SimpleITK as sitk

    return float(sitk.GetArrayViewFromImage(mask).sum() * np.prod(mask.GetSpacing()) / 1000)


def _place(series: Series, image: sitk.Image, reference: Reference, brain: sitk.Image) -> tuple[Placed, dict[str, float]]:
    """Register a series to the reference and carry the brain over."""
    import SimpleITK as sitk

    found = register(reference, image)
    there = sitk.Resample(sitk.Cast(brain, sitk.sitkFloat32), image, as_transform(np.linalg.inv(found.matrix)), sitk.sitkLinear, 0.0)
    mask = sitk.Cast(there >= 0.5, sitk.sitkUInt8)
    covered = min(_millilitres(mask) / _millilitres(brain), 1.0)
    if covered < MIN_SHOWN:
        message = f"{series.series_id} ({series.sequence.value}) does not show the brain of the reference: override its sequence or exclude the case"
        raise DataError(message)
    centre = np.array([*reference.centre, 1.0])
    quality = {
        "shift_mm": round(float(np.linalg.norm((found.matrix @ centre - centre)[:3])), 3),
        "rotation_deg": round(rotation_deg(found.matrix), 3),
        "agreement_before": round(found.before, 4),
        "agreement_after": round(found.after, 4),
        "covered": round(covered, 4),
    }
    return Placed(image, mask, found.matrix), quality


def _write(folder: Path, series: Series, placed: Placed, copy: sitk.Image) -> None:
    import SimpleITK as sitk

    name = series.series_id
    write_volume(folder / f"{name}.nii", placed.image)
    write_volume(folder / f"{name}_brain.nii", placed.brain)
    write_json(folder / f"{name}_rigid.json", placed.rigid.tolist())
    outside = float(sitk.GetArrayViewFromImage(placed.image).min())
    small = sitk.Resample(placed.image, copy, as_transform(placed.rigid), sitk.sitkLinear, outside)
    write_volume(folder / f"{name}_space-ref.nii", small)


def _record(series: Series, source: Path, image: sitk.Image, quality: dict[str, float], flags: tuple[str, ...]) -> Series:
    plane = plane_of(image.GetSpacing())
    acquisition = series.acquisition if series.acquisition != "unknown" else ("3d" if plane is None else "2d")
    return replace(
        series,
        path=f"{VOLUMES}/{series.series_id}.nii",
        plane=plane,
        acquisition=acquisition,
        flags=tuple(dict.fromkeys((*series.flags, *flags))),
        quality=quality,
        volume_sha256=sha256_of(source / series.path),
    )


def read_rigid(folder: Path, series: Series) -> npt.NDArray[np.float64]:
    """Read where the reference lies in a series.

    Parameters
    ----------
    folder : Path
        Folder of the normalised case.
    series : Series
        One of its series.

    Returns
    -------
    ndarray of float, shape (4, 4)
        From points of the reference to points of the series, LPS+ in mm.
    """
    return np.array(read_json(folder / VOLUMES / f"{series.series_id}_rigid.json"))
