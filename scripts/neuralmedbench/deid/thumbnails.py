"""Small pictures of a de-identified scan for the person who signs the review."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.io.nifti import Volume, nifti_image

SIDE_PX = 150
PARTS = (("axial", 2), ("sagittal", 0), ("coronal", 1))


def write_thumbnail(path: Path, volume: Volume) -> None:
    """Write the middle slices of a scan, side by side: axial, sagittal (shows the profile) and coronal.

    Parameters
    ----------
    path : Path
        PNG file.
    volume : Volume
        The scan without its face.
    """
    import nibabel
    from PIL import Image

    reorient: Any = nibabel.as_closest_canonical
    canonical = reorient(nifti_image(Volume(volume.voxels.astype(np.float32), volume.affine)))
    voxels, sizes = np.asarray(canonical.dataobj), canonical.header.get_zooms()
    low, high = float(voxels.min()), float(np.percentile(voxels[::2, ::2, ::2], 99.5))
    low = max(low, -150.0) if low < -500 else low
    high = min(high, 250.0) if low <= -150 else high
    sheet = Image.new("L", (SIDE_PX * len(PARTS), SIDE_PX))
    for place, (_, axis) in enumerate(PARTS):
        rows = np.take(voxels, voxels.shape[axis] // 2, axis=axis).T[::-1]
        grey = np.clip((rows - low) / max(high - low, 1e-6), 0, 1) * 255
        sheet.paste(_square(grey, [size for other, size in enumerate(sizes[:3]) if other != axis]), (SIDE_PX * place, 0))
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path)


def _square(grey: npt.NDArray[Any], sizes: list[float]) -> Any:
    from PIL import Image

    height, width = grey.shape[0] * sizes[1], grey.shape[1] * sizes[0]
    scale = SIDE_PX / max(height, width)
    picture = Image.fromarray(grey.astype(np.uint8)).resize((max(1, round(width * scale)), max(1, round(height * scale))))
    square = Image.new("L", (SIDE_PX, SIDE_PX))
    square.paste(picture, ((SIDE_PX - picture.width) // 2, (SIDE_PX - picture.height) // 2))
    return square
