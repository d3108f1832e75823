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

from neuralmedbench.atlas.fit import GRID_MM, fit_quality, fit_template
from neuralmedbench.atlas.matching import coarse_head
from neuralmedbench.errors import DataError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.json_files import read_json, write_json
from neuralmedbench.files.volumes import as_stored, as_transform, grid_over, read_volume, write_volume
from neuralmedbench.imaging.bias import correct_bias
from neuralmedbench.imaging.brain import find_brain
from neuralmedbench.imaging.quality import SERIES_LIMITS, check_limits, contrast, measure_reference, millilitres, plane_of, series_flags
from neuralmedbench.imaging.register import RegistrationReference, make_reference, register, rotation_deg
from neuralmedbench.imaging.units import share_window
from neuralmedbench.imaging.windows import COMPUTED, window_of
from neuralmedbench.records.case import CaseRecord, Sequence, Series
from neuralmedbench.runtime.atomic_write import atomic_folder
from neuralmedbench.runtime.storage import full_disk_cause

if TYPE_CHECKING:
    import SimpleITK as sitk

VOLUMES = "volumes"
"""Folder beside `case.json` that holds what this stage makes."""
COPY_MM = 2.0
SHADED = (Sequence.T1W, Sequence.CE_T1W, Sequence.T2W, Sequence.FLAIR, Sequence.PDW)
"""Sequences whose bias field is taken out. CT and ADC are physical; in diffusion and susceptibility pictures a field that is estimated from
the grey values takes what bright infarcts and dark blood do to their surroundings for shading."""
UNKNOWN_KIND = "its kind is not known: name it in `sequence_overrides`"


@dataclass(frozen=True, kw_only=True)
class NormaliseSettings:
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
class PlacedSeries:
    """One series with its place in the space of the reference.

    Attributes
    ----------
    image, stored, brain : SimpleITK.Image
        Native scan (float32), the scan as it is written, and brain mask (uint8), LPS+.
    rigid : ndarray of float, shape (4, 4)
        From points of the reference to points of the series, LPS+ in mm.
    """

    image: sitk.Image
    stored: sitk.Image
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


def normalise(case: CaseRecord, source: Path, target: Path, settings: NormaliseSettings) -> CaseRecord:
    """Normalise all scans of a case.

    Parameters
    ----------
    case : CaseRecord
        The de-identified case.
    source : Path
        Its folder.
    target : Path
        Folder of the normalised case; its folder `volumes` is replaced.
    settings : NormaliseSettings
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
        If no scan can be the reference, or the reference cannot be read or breaks a limit of `quality.REFERENCE_LIMITS`.

    Notes
    -----
    Another series that cannot be read, or breaks a limit of `quality.SERIES_LIMITS`, is left out; the reason stands in `set_aside`.
    """
    import SimpleITK as sitk

    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(1)
    ordered = order_series(case.series, settings.reference_order)
    aside = {entry.series_id: UNKNOWN_KIND for entry in case.series if entry.sequence is Sequence.UNKNOWN}
    with atomic_folder(target / VOLUMES) as folder:
        first, *others = ordered
        image = _flattened(first, source, settings)
        rough = coarse_head(image, GRID_MM)
        fit = fit_template(rough)
        brain = find_brain(image, fit, is_ct=first.sequence in COMPUTED)
        of_case, of_reference, flags = measure_reference(first, image, brain, fit_quality(rough, fit))
        copy = grid_over(image, COPY_MM)
        placed = PlacedSeries(image, as_stored(image), brain, np.eye(4))
        _write(folder, first, placed, copy)
        done = [_record(first, source, placed, of_reference, flags)]
        reference = make_reference(image, brain, grid_mm=settings.registration_grid_mm)
        for entry in others:
            try:
                placed, quality = _place(_flattened(entry, source, settings), reference, brain)
                record = _record(entry, source, placed, quality, series_flags(quality))
            except DataError as error:  # one series that cannot be used does not take the others with it
                if full_disk_cause(error):
                    raise
                aside[entry.series_id] = f"{entry.sequence.value}: {error}"
            else:
                _write(folder, entry, placed, copy)
                done.append(record)
        done = share_window(done, folder, brain)
    return replace(case, series=tuple(done), set_aside=case.set_aside | aside, quality=of_case | {"series_set_aside": float(len(aside))})


def _flattened(series: Series, source: Path, settings: NormaliseSettings) -> sitk.Image:
    image = read_volume(source / series.path)
    return correct_bias(image, grid_mm=settings.bias_grid_mm) if series.sequence in SHADED else image


def _place(image: sitk.Image, reference: RegistrationReference, brain: sitk.Image) -> tuple[PlacedSeries, dict[str, float]]:
    """Register a series to the reference and carry the brain over; DataError when a limit is broken."""
    import SimpleITK as sitk

    found = register(reference, image)
    there = sitk.Resample(sitk.Cast(brain, sitk.sitkFloat32), image, as_transform(np.linalg.inv(found.matrix)), sitk.sitkLinear, 0.0)
    mask = sitk.Cast(there >= 0.5, sitk.sitkUInt8)
    covered = min(millilitres(mask) / millilitres(brain), 1.0)
    centre = np.array([*reference.centre, 1.0])
    quality = {
        "shift_mm": round(float(np.linalg.norm((found.matrix @ centre - centre)[:3])), 3),
        "rotation_deg": round(rotation_deg(found.matrix), 3),
        "agreement_before": round(found.before, 4),
        "agreement_after": round(found.after, 4),
        "covered": round(covered, 4),
        "contrast": contrast(image, mask),
    }
    check_limits({**quality, "agreement_where_covered": found.after / max(covered, 0.05)}, SERIES_LIMITS)
    return PlacedSeries(image, as_stored(image), mask, found.matrix), quality


def _write(folder: Path, series: Series, placed: PlacedSeries, copy: sitk.Image) -> None:
    import SimpleITK as sitk

    name = series.series_id
    write_volume(folder / f"{name}.nii", placed.stored)
    write_volume(folder / f"{name}_brain.nii", placed.brain)
    write_json(folder / f"{name}_rigid.json", placed.rigid.tolist())
    outside = float(sitk.GetArrayViewFromImage(placed.image).min())
    small = sitk.Resample(placed.image, copy, as_transform(placed.rigid), sitk.sitkLinear, outside)
    write_volume(folder / f"{name}_space-ref.nii", small)


def _record(series: Series, source: Path, placed: PlacedSeries, quality: dict[str, float], flags: tuple[str, ...]) -> Series:
    import SimpleITK as sitk

    plane = plane_of(placed.image.GetSpacing())
    window = window_of(series.sequence, sitk.GetArrayViewFromImage(placed.stored), sitk.GetArrayViewFromImage(placed.brain) > 0)
    acquisition = series.acquisition if series.acquisition != "unknown" else ("3d" if plane is None else "2d")
    return replace(
        series,
        path=f"{VOLUMES}/{series.series_id}.nii",
        plane=plane,
        acquisition=acquisition,
        flags=tuple(dict.fromkeys((*series.flags, *flags))),
        quality=quality,
        volume_sha256=sha256_of(source / series.path),
        window=window,
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
