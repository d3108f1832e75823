"""Normalise the scans of one case: common orientation (LPS), bias correction, registration to a reference series, brain mask.

The native voxels are never resampled: only the order of the axes and the intensities change. The place of the reference in a series
is stored as a rigid transform. A resampled copy (2 mm) exists for measurements and overlays, never for a picture that a model sees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.fit import GRID_MM, brain_depth, fit_quality, fit_template
from neuralmedbench.atlas.matching import coarse_head
from neuralmedbench.config.imaging import ImagingConfig
from neuralmedbench.errors import DataError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.volumes import (
    as_stored,
    as_transform,
    grid_over,
    image_like,
    read_volume,
    resample_to,
    use_one_thread,
    write_volume,
)
from neuralmedbench.imaging.quality import (
    SERIES_LIMITS,
    agreement_where_covered,
    brain_hu,
    check_limits,
    contrast,
    measure_reference,
    millilitres,
    plane_of,
    series_flags,
)
from neuralmedbench.imaging.register import RegistrationReference, make_reference, register, rotation_deg
from neuralmedbench.imaging.scans import VOLUMES, brain_path, copy_path, rigid_path
from neuralmedbench.imaging.windows import share_window, window_of
from neuralmedbench.records.case import CT_SEQUENCES, CaseRecord, Sequence, Series
from neuralmedbench.runtime.atomic_write import atomic_folder
from neuralmedbench.runtime.storage import full_disk_cause

if TYPE_CHECKING:
    import SimpleITK as sitk

COPY_MM = 2.0
"""Voxel size of the copy in the space of the reference."""
SHADED = (Sequence.T1W, Sequence.CE_T1W, Sequence.T2W, Sequence.FLAIR, Sequence.PDW)
"""Sequences that get a bias correction. CT and ADC values are physical; in diffusion and susceptibility scans the estimate would mistake
bright infarcts and dark blood for shading."""
UNKNOWN_KIND = "its kind is not known: name it in `sequence_overrides`"
BIAS_ITERATIONS = (30, 20)
"""Iterations per level of N4."""
BIAS_FWHM = 0.3
"""Full width at half maximum of the field's histogram that N4 deconvolves. Measured on a simulated field of +-40 %: with ITK's default of
0.15, 50 to 80 % of it are left after these iterations, with 0.3 20 %; a larger value flattens the contrast of the brain."""
BRAIN_GRID_MM = 2.0
RIM_MM = 5.0
"""A voxel this deep below the template's brain surface is brain regardless of its intensity."""
REACH_MM, REACH_STRIPPED_MM = 0.5, 10.0
"""How far the mask may extend beyond the template's brain: little in a whole head (scalp and orbits have similar intensities), more in a
skull-stripped scan."""
CT_BRAIN_HU = (0.0, 90.0)


@dataclass(frozen=True)
class PlacedSeries:
    """One series registered to the reference.

    Attributes
    ----------
    image, stored, brain : SimpleITK.Image
        Native scan (float32), the same in the type in which it is written, and brain mask (uint8), LPS+.
    rigid : ndarray of float, shape (4, 4)
        Maps points of the reference to points of the series, LPS+ in mm.
    """

    image: sitk.Image
    stored: sitk.Image
    brain: sitk.Image
    rigid: npt.NDArray[np.float64]


def order_series(series: tuple[Series, ...], reference_order: tuple[str, ...]) -> list[Series]:
    """Put the reference first and keep the order of the others; drop series of unknown kind.

    Parameters
    ----------
    series : tuple of Series
        The scans of a case.
    reference_order : tuple of str
        Sequences by preference.

    Returns
    -------
    list of Series
        The scans of known kind, the reference first.

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
    kinds = ", ".join(sorted({entry.sequence.value for entry in series})) or "no series"
    message = f"no series can be the reference: found {kinds}, expected one of {', '.join(reference_order)}"
    raise DataError(message)


def normalise(case: CaseRecord, source: Path, target: Path, settings: ImagingConfig) -> CaseRecord:
    """Normalise all scans of a case.

    Parameters
    ----------
    case : CaseRecord
        The de-identified case.
    source : Path
        Its folder.
    target : Path
        Folder of the normalised case; its folder `volumes` is replaced.
    settings : ImagingConfig
        Grids and order of preference.

    Returns
    -------
    CaseRecord
        The case with the reference as its first series. Files per series: `<series_id>.nii` (native grid, LPS+, bias-corrected),
        `<series_id>_brain.nii` (mask), `<series_id>_rigid.json` (maps points of the reference to points of the series, LPS+ in mm)
        and `<series_id>_space-ref.nii` (2 mm copy in the space of the reference).

    Raises
    ------
    DataError
        If no scan can be the reference, or the reference cannot be read or breaks a limit of `quality.REFERENCE_LIMITS`.

    Notes
    -----
    Another series that cannot be read, or breaks a limit of `quality.SERIES_LIMITS`, is left out; `set_aside` has the reason.
    """
    use_one_thread()
    ordered = order_series(case.series, settings.reference_order)
    excluded = {entry.series_id: UNKNOWN_KIND for entry in case.series if entry.sequence is Sequence.UNKNOWN}
    with atomic_folder(target / VOLUMES) as folder:
        # the reference: bias field, fit of the template, brain, quality
        first, *others = ordered
        image = _bias_corrected(first, source, settings)
        rough = coarse_head(image, GRID_MM)
        # fitted again, for 0.2 CPU s: de-identification's fit follows skin and face, and its outline of a real T2 ran through the scalp
        fit = fit_template(rough, image)
        brain = find_brain(image, fit, is_ct=first.sequence in CT_SEQUENCES)
        of_case, of_reference, flags = measure_reference(first, image, brain, fit_quality(rough, fit))
        copy = grid_over(image, COPY_MM)
        placed = PlacedSeries(image, as_stored(image), brain, np.eye(4))
        _write(folder, first, placed, copy)
        done = [_record(first, source, placed, of_reference, flags)]
        # the other series: registered to the reference
        reference = make_reference(image, brain, grid_mm=settings.registration_grid_mm)
        for entry in others:
            try:
                placed, quality = _place(entry, _bias_corrected(entry, source, settings), reference, brain)
                record = _record(entry, source, placed, quality, series_flags(quality))
            except DataError as error:  # one unusable series does not exclude the others
                if full_disk_cause(error):
                    raise
                excluded[entry.series_id] = f"{entry.sequence.value}: {error}"
            else:
                _write(folder, entry, placed, copy)
                done.append(record)
        done = share_window(done, folder, brain)
    return replace(
        case, series=tuple(done), set_aside=case.set_aside | excluded, quality=of_case | {"series_set_aside": float(len(excluded))}
    )


def _bias_corrected(series: Series, source: Path, settings: ImagingConfig) -> sitk.Image:
    """Read a series and correct its bias field if its sequence is one of `SHADED`."""
    image = read_volume(source / series.path)
    return correct_bias(image, grid_mm=settings.bias_grid_mm) if series.sequence in SHADED else image


def _place(series: Series, image: sitk.Image, reference: RegistrationReference, brain: sitk.Image) -> tuple[PlacedSeries, dict[str, float]]:
    """Register a series to the reference and transfer the brain mask; DataError if a limit is broken."""
    import SimpleITK as sitk

    registration = register(reference, image)
    to_reference = as_transform(np.linalg.inv(registration.matrix))
    resampled = sitk.Resample(sitk.Cast(brain, sitk.sitkFloat32), image, to_reference, sitk.sitkLinear, 0.0)
    mask = sitk.Cast(resampled >= 0.5, sitk.sitkUInt8)
    covered = min(millilitres(mask) / millilitres(brain), 1.0)
    centre = np.array([*reference.centre, 1.0])
    quality = {
        "shift_mm": round(float(np.linalg.norm((registration.matrix @ centre - centre)[:3])), 3),
        "rotation_deg": round(rotation_deg(registration.matrix), 3),
        "agreement_before": round(registration.before, 4),
        "agreement_after": round(registration.after, 4),
        "covered": round(covered, 4),
        **contrast(image, mask),
    }
    where_covered = {"agreement_where_covered": agreement_where_covered(registration.after, covered)}
    check_limits({**quality, **where_covered, **brain_hu(series, image, mask)}, SERIES_LIMITS)
    return PlacedSeries(image, as_stored(image), mask, registration.matrix), quality


def _write(folder: Path, series: Series, placed: PlacedSeries, copy: sitk.Image) -> None:
    import SimpleITK as sitk

    volume = folder / f"{series.series_id}.nii"
    write_volume(volume, placed.stored)
    write_volume(brain_path(volume), placed.brain)
    write_json(rigid_path(volume), placed.rigid.tolist())
    outside = float(sitk.GetArrayViewFromImage(placed.image).min())
    resampled = sitk.Resample(placed.image, copy, as_transform(placed.rigid), sitk.sitkLinear, outside)
    write_volume(copy_path(volume), resampled)


def _record(series: Series, source: Path, placed: PlacedSeries, quality: dict[str, float], flags: tuple[str, ...]) -> Series:
    import SimpleITK as sitk

    # the window is chosen from the stored values, which rounding to int16 may have changed
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


def correct_bias(image: sitk.Image, *, grid_mm: float) -> sitk.Image:
    """Divide a scan by its bias field, estimated by N4 on a coarse grid.

    Parameters
    ----------
    image : SimpleITK.Image
        MR scan, float32.
    grid_mm : float
        Voxel size of the isotropic grid on which N4 works. In mm, because a shrink factor in voxels leaves thick slices as they are
        and takes ten times longer.

    Returns
    -------
    SimpleITK.Image
        float32, on the grid of the scan; the mean over the head hardly changes.
    """
    import SimpleITK as sitk

    coarse = resample_to(image, grid_over(image, grid_mm))
    head = sitk.OtsuThreshold(coarse, 0, 1)
    if not np.any(sitk.GetArrayViewFromImage(head)):
        return image
    method = sitk.N4BiasFieldCorrectionImageFilter()
    method.SetMaximumNumberOfIterations(BIAS_ITERATIONS)
    method.SetBiasFieldFullWidthAtHalfMaximum(BIAS_FWHM)
    method.Execute(coarse, head)
    log_field = sitk.Cast(method.GetLogBiasFieldAsImage(coarse), sitk.sitkFloat32)
    # padded, because border voxels of the scan may lie outside the coarse grid
    native = sitk.Resample(sitk.ZeroFluxNeumannPad(log_field, [1] * 3, [1] * 3), image)
    return image_like(sitk.GetArrayViewFromImage(image) / np.exp(sitk.GetArrayFromImage(native)), image)


def find_brain(image: sitk.Image, fit: sitk.Transform, *, is_ct: bool) -> sitk.Image:
    """Segment the brain: the template's brain, trimmed to what the scan shows.

    Parameters
    ----------
    image : SimpleITK.Image
        The scan, float32 (CT in HU).
    fit : SimpleITK.Transform
        Maps points of the scan to the template (`fit_template`).
    is_ct : bool
        In CT, brain is tissue within `CT_BRAIN_HU`; in MR, tissue about as bright as the inner brain.

    Returns
    -------
    SimpleITK.Image
        uint8 on the grid of the scan, 1 in the brain.

    Raises
    ------
    DataError
        If the scan does not cover the brain of the template.
    """
    import SimpleITK as sitk

    work = grid_over(image, BRAIN_GRID_MM)
    depth = sitk.GetArrayFromImage(brain_depth(work, fit))  # mm outside the template's brain, negative inside
    inner = depth <= -RIM_MM
    if inner.sum() < 100:
        message = "the scan shows no brain where the template has it; look at it and exclude the case or the series"
        raise DataError(message)
    voxels = sitk.GetArrayFromImage(sitk.DiscreteGaussian(resample_to(image, work), [1.0] * 3))
    low, high = CT_BRAIN_HU if is_ct else _brightness(voxels[inner])
    # dark all around the template's brain: the scan is skull-stripped
    around = voxels[(depth > RIM_MM) & (depth <= REACH_STRIPPED_MM)]
    stripped = not is_ct and float((around > low / 4).mean()) < 0.35
    like_brain = (depth <= REACH_STRIPPED_MM) & (voxels > low / 4) if stripped else (depth <= REACH_MM) & (voxels > low) & (voxels < high)
    # largest component, without bridges to the scalp and without holes, back on the native grid
    opened = sitk.BinaryMorphologicalOpening(image_like((like_brain | inner).astype(np.uint8), work), [1, 1, 1])
    largest = sitk.RelabelComponent(sitk.ConnectedComponent(opened)) == 1
    closed = sitk.BinaryFillhole(sitk.BinaryMorphologicalClosing(largest, [2, 2, 2]))
    smooth = sitk.Resample(sitk.ZeroFluxNeumannPad(sitk.Cast(closed, sitk.sitkFloat32), [1] * 3, [1] * 3), image)
    return sitk.Cast(smooth >= 0.5, sitk.sitkUInt8)


def _brightness(inner: npt.NDArray[np.float32]) -> tuple[float, float]:
    """Return the range of the brain's intensities; dark fluid near the surface is added by the closing."""
    median = float(np.median(inner))
    return 0.4 * median, max(float(np.percentile(inner, 98)), 1.8 * median)
