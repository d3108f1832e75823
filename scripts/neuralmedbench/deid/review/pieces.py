"""Files that de-identification writes for the reviewer of a case: rendered skin, slice borders, header changes, versions of packages."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.headers.diff import ACTIONS
from neuralmedbench.files.json_files import read_json, write_json
from neuralmedbench.files.nifti import Volume, nifti_image
from neuralmedbench.files.plain_pictures import GREYS, Levels, side_by_side, to_levels, write_levels
from neuralmedbench.files.volumes import is_ct

Floats = npt.NDArray[np.float32]
GRID_MM = 1.5
SKIN, SKIN_HU = 0.12, -300.0
"""Threshold of the skin: this part of the way from background to bright tissue, in CT this density."""
LIGHT = (-0.35, -0.45, 0.82)
"""Direction of the light: from the left, from above, from the viewer."""
SHOWN_BORDER = 0.18
"""Outer part of a slice's height and width that is shown to the reviewer; the search by OCR counts words in a wider one (`ocr.BORDER`)."""
BORDER_PX = 240
GAMMA = 0.5
"""Makes dim letters visible next to bright anatomy."""
PREVIEW, SERIES = "preview.png", "series.json"
NO_PREVIEW = {
    "text": "text may be burned into it",
    "face": "its face could not be located",
    "unreadable": "its images cannot be converted",
}
"""Why there is no preview of an unused series: code in `series.json`, and words on the sheet."""
PREVIEW_PX, PREVIEW_AT = 88, (0.45, 0.6, 0.75)
"""Longest side of a preview's slices, and their heights as parts of the scan's extent from feet to head."""
REVIEW = "review"
"""Folder of these files, in this stage and in normalisation."""
TOOLS = (
    "dcm2niix", "dicom-anonymizer", "nibabel", "nilearn", "numpy", "phonenumbers", "presidio-analyzer", "pydicom", "scipy", "SimpleITK", "spacy",
)  # fmt: skip
"""Packages used for cleaning; their versions are recorded in the audit."""


def write_scan_pieces(folder: Path, series_id: str, volume: Volume) -> None:
    """Write the pictures in which a reviewer looks for a face or burned-in text in a scan, and its preview.

    `folder`: de-identified case, in which `review/<series_id>_surface.png`, `..._border.png` and `..._preview.png` are written.
    """
    voxels, sizes = upright(volume)
    write_levels(folder / REVIEW / f"{series_id}_surface.png", surface_views(voxels, sizes))
    write_levels(folder / REVIEW / f"{series_id}_border.png", border_views(voxels, sizes))
    write_levels(folder / REVIEW / f"{series_id}_{PREVIEW}", preview_views(voxels, sizes))


def write_header_piece(folder: Path, series_id: str, changed: Counter[tuple[str, str]]) -> None:
    """Write the header changes of a series, `review/<series_id>_headers.json`: number of elements by action and name."""
    lines = {action: {name: changed[name, action] for name, other in sorted(changed) if other == action} for action in ACTIONS}
    write_json(folder / REVIEW / f"{series_id}_headers.json", {action: names for action, names in lines.items() if names})


def write_tools_piece(folder: Path) -> None:
    """Write the versions of the packages used for cleaning, `review/tools.json`."""
    versions: dict[str, str] = {}
    for name in TOOLS:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # not every installation has the optional ones
            continue
    write_json(folder / REVIEW / "tools.json", versions)


def read_tools(folder: Path) -> dict[str, str]:
    """Read the versions of the packages that cleaned a case; empty if not recorded."""
    path = folder / REVIEW / "tools.json"
    return {str(name): str(number) for name, number in read_json(path).items()} if path.exists() else {}


def upright(volume: Volume) -> tuple[Floats, tuple[float, float, float]]:
    """Reorient a scan to RAS+ by swapping and flipping axes; returns voxels (X, Y, Z) and the voxel size in mm."""
    import nibabel

    reorient: Any = nibabel.as_closest_canonical
    image = reorient(nifti_image(Volume(volume.voxels.astype(np.float32), volume.affine)))
    x, y, z = (float(size) for size in image.header.get_zooms()[:3])
    return np.asarray(image.dataobj, dtype=np.float32), (x, y, z)


def surface_views(voxels: Floats, sizes: tuple[float, float, float]) -> Levels:
    """Render the skin from the front, from the patient's right and from the patient's left.

    `voxels`: shape (X, Y, Z), RAS+. `sizes`: voxel size in mm. Returns the three views side by side on black, `GRID_MM` per pixel.

    The skin is the first voxel on a ray brighter than `SKIN`. Its depth, interpolated between voxels, gives the surface normal, and the normal
    the shade (Lambert's cosine law).
    """
    from scipy import ndimage

    grid = _on_even_grid(voxels, sizes)
    smooth = ndimage.gaussian_filter(grid, 1.0)
    low = float(voxels.min())
    skin = SKIN_HU if is_ct(voxels) else low + SKIN * (float(np.percentile(grid, 99)) - low)
    parts, _ = ndimage.label(smooth > skin)
    if not parts.any():
        return np.zeros((8, 8), dtype=np.uint8)
    head = parts == np.bincount(parts.ravel())[1:].argmax() + 1
    towards = np.where(head, smooth, low)
    # each view looks along axis 1 from its end: rows from above, columns as the eye sees them
    front = towards[::-1, ::-1, ::-1]
    from_right = towards.transpose(1, 0, 2)[:, ::-1, ::-1]
    from_left = towards.transpose(1, 0, 2)[::-1, :, ::-1]
    return side_by_side([_shaded(view, skin) for view in (front, from_right, from_left)])


def _on_even_grid(voxels: Floats, sizes: tuple[float, float, float]) -> Floats:
    """Resample to voxels of `GRID_MM` by linear interpolation, axis by axis, starting with the axes that lose most voxels."""
    for axis in sorted(range(3), key=lambda number: sizes[number]):
        before, after = voxels.shape[axis], max(1, round(voxels.shape[axis] * sizes[axis] / GRID_MM))
        if before < 2:
            voxels = np.repeat(voxels, after, axis=axis)
            continue
        at = np.linspace(0, before - 1, after)
        lower = np.minimum(at.astype(np.intp), before - 2)
        part = (at - lower).astype(np.float32).reshape([-1 if other == axis else 1 for other in range(3)])
        first = np.take(voxels, lower, axis=axis)
        step = np.take(voxels, lower + 1, axis=axis)
        step -= first
        step *= part
        step += first
        voxels = step
    return voxels


def _shaded(view: Floats, skin: float) -> Levels:
    """Shade a surface seen along axis 1; axes 0 and 2 are the columns and rows of the picture."""
    # first voxel over the threshold on each ray, refined to where the grey crosses it
    over = view > skin
    hit = over.any(axis=1)
    first = over.argmax(axis=1)
    at = np.take_along_axis(view, first[:, None, :], axis=1)[:, 0]
    before = np.take_along_axis(view, np.maximum(first - 1, 0)[:, None, :], axis=1)[:, 0]
    depth = first - np.where(first > 0, (at - skin) / np.maximum(at - before, 1e-6), 0)
    # shade = cosine between surface normal and light
    across, down = np.gradient(depth)
    length = np.sqrt(across**2 + down**2 + 1)
    cosine = (across * LIGHT[0] + down * LIGHT[1] + LIGHT[2]) / length
    shade = 0.15 + 0.85 * np.clip(cosine, 0, 1)
    return to_levels(np.where(hit, shade, 0).T, 0.0, 1.0)


def border_views(voxels: Floats, sizes: tuple[float, float, float]) -> Levels:
    """Project the border of all slices onto one picture (maximum), in which text written into any slice stands out.

    `voxels`, `sizes`: as in `surface_views`. Returns one picture for a scan of thick slices, otherwise one per axis (right-left, front-back,
    feet-head); the middle is grey.
    """
    thick = max(sizes) > 1.5 * sorted(sizes)[1]
    axes = [int(np.argmax(sizes))] if thick else [0, 1, 2]
    return side_by_side([_border(voxels, axis, BORDER_PX if thick else BORDER_PX * 2 // 3) for axis in axes])


def preview_views(voxels: Floats, sizes: tuple[float, float, float]) -> Levels:
    """Return three axial slices side by side, small and with one window; `voxels`, `sizes`: as in `surface_views`.

    Axial slices show no profile, even if part of a face was left.
    """
    heights = np.flatnonzero((voxels > voxels.min()).any(axis=(0, 1)))
    chosen = [int(heights[round(part * (len(heights) - 1))]) for part in PREVIEW_AT] if len(heights) else [0]
    low, high = (float(value) for value in np.percentile(voxels[..., chosen], (1, 99)))
    step_mm = max(length * size for length, size in zip(voxels.shape[:2], sizes[:2], strict=True)) / PREVIEW_PX
    columns, rows = (
        np.linspace(length - 1, 0, max(1, round(length * size / step_mm))).round().astype(np.intp)
        for length, size in zip(voxels.shape[:2], sizes[:2], strict=True)
    )
    # in radiological view: the patient's right and front come first
    return side_by_side([to_levels(voxels[:, :, z][np.ix_(columns, rows)].T, low, high) for z in chosen])


def _border(voxels: Floats, axis: int, side: int) -> Levels:
    highest = voxels.max(axis=axis).T[::-1, ::-1]  # in radiological view: rows from above or from the front
    # reduce by maxima over blocks, which keep thin strokes
    step = max(1, -(-max(highest.shape) // side))
    padded = np.pad(highest, [(0, -length % step) for length in highest.shape], mode="edge")
    small = padded.reshape(padded.shape[0] // step, step, padded.shape[1] // step, step).max(axis=(1, 3))
    rows, columns = (max(2, round(SHOWN_BORDER * length)) for length in small.shape)
    rim = np.ones(small.shape, dtype=bool)
    rim[rows:-rows, columns:-columns] = False
    # brightness above ground and noise of the rim
    ground = float(np.median(small[rim]))
    noise = float(np.median(np.abs(small[rim] - ground)))
    bright = np.clip(small - ground - 3 * noise, 0, None)
    top = max(float(bright[rim].max()), 1e-6)
    return np.where(rim, to_levels((bright / top) ** GAMMA, 0.0, 1.0), np.uint8(GREYS // 4))
