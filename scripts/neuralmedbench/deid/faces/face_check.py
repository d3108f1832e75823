"""Look for a face once more after its removal, by the surface of the head alone: neither greys nor the fit of the removal are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralmedbench.atlas.fit import SEARCH_GRID_MM, fit_in_pose
from neuralmedbench.deid.faces.face_measures import FEW, Floats, face_level, skin_distances, view_head
from neuralmedbench.files.volumes import grid_over, image_like, resample_to

if TYPE_CHECKING:
    import SimpleITK as sitk

RIVAL = 0.8
"""A turned fit with less than this part of the upright one's agreement before its polish is no rival of it."""
SURE_MM = 6.0
"""Tissue this deep in the region of the face is face, though the surface of a head locates it to a centimetre only."""
GREY_PER_MM = 4.0
"""Grey of the picture of depths that is fitted; the template's shells and brain have one grey each, by their depth too."""


def face_left_by_surface(skin: sitk.Image, level: Floats, *, upright: bool = False) -> float:
    """Measure which part of the face remains where the surface of the head shows one.

    The template is fitted to the depth below the skin, from starts of every size, upright and turned.

    Parameters
    ----------
    skin : SimpleITK.Image
        Result of `face_measures.skin_depth` for the scan before the removal.
    level : ndarray of float32, shape (Z, Y, X)
        Level set of what was removed, on the grid of `skin`.
    upright : bool
        True leaves out turned starts: the scan was registered to one of the same head that is upright.

    Returns
    -------
    float
        Remaining fraction; 0 if the scan shows too little of a face.
    """
    import SimpleITK as sitk

    coarse = resample_to(skin, grid_over(skin, SEARCH_GRID_MM))
    depth = np.clip(GREY_PER_MM * sitk.GetArrayFromImage(coarse), 0, 255).astype(np.float32)
    surface = image_like(depth, coarse)
    best = fit_in_pose(surface, turned=False)
    fits = [] if best is None else [best]
    if not upright:
        turned = fit_in_pose(surface, turned=True, least=RIVAL * best.agreement if best is not None else 0.0)
        fits += [] if turned is None else [turned]
    if not fits:
        return 0.0
    best = max(fits, key=lambda fit: fit.agreement)
    seen = view_head(skin, best.transform)
    face = (seen.skin > 0) & (face_level(seen, skin_distances(seen)) < -SURE_MM)
    return round(float((level[face] > 0).mean()), 4) if face.sum() > FEW else 0.0
