"""Where a lesion lies, in words: a coarse atlas over the position in the brain of an axial picture."""

from __future__ import annotations

from collections.abc import Sequence

from neuralmedbench.models.builtin.reading import Spot, one_each


def side(spots: Sequence[Spot]) -> str:
    """Side of a lesion.

    Parameters
    ----------
    spots : sequence of Spot
        Its patches; x runs from the patient's right (-1) to the left (+1).

    Returns
    -------
    str
        `left`, `right`, `bilateral`, `midline`, or empty without patches.
    """
    if not spots:
        return ""
    left, right = one_each(spots)
    if max(abs(spot.patch.x) for spot in spots) < 0.12:
        return "midline"
    if min(left, right) > 0.3 * max(left, right):
        return "bilateral"
    return "left" if left > right else "right"


def place(spots: Sequence[Spot]) -> str:
    """Anatomical term for the centre of the largest patch, or of many small ones around the ventricles; empty without patches."""
    if not spots:
        return ""
    near = [spot for spot in spots if spot.patch.gap < 0.25]
    if len(spots) >= 5 and sum(spot.patch.area for spot in near) > 0.6 * sum(spot.patch.area for spot in spots):
        return "periventricular white matter"
    main = max(spots, key=lambda spot: spot.patch.area)
    return _region(abs(main.patch.x), main.patch.y, 0.5 if main.z is None else main.z)


def _region(x: float, y: float, z: float) -> str:
    """Region of a point: `x` from the midline (0) to the side (1), `y` from anterior (-1) to posterior (1), `z` from 0 to 1."""
    if z < 0.22 and y > 0.2:
        return "brainstem" if x < 0.2 and y < 0.45 else "cerebellum"
    if z < 0.38 and -0.45 < y < 0.4:
        return "medial temporal lobe" if x < 0.55 else "temporal lobe"
    if y > 0.62:
        return "occipital lobe" if z < 0.75 else "parietal lobe"
    if z < 0.65 and -0.35 < y < 0.3 and x < 0.5:
        return "thalamus" if x < 0.22 and y > 0 else "basal ganglia"
    if z < 0.6 and -0.4 < y < 0.25:
        return "insula"
    return "frontal lobe" if y < 0.1 else "parietal lobe"
