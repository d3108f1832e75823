"""Locate brain and face in a scan by fitting the packaged MNI152 template, without downloads or trained weights; polish a fit, or transfer it.

The template is a skull-stripped brain. For the fit, shells that every head has (fluid, skull, scalp, air) are added around it. Mutual
information needs no common contrast, so T1, T2, FLAIR, DWI and CT are fitted in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import permutations, product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.anatomy import distance_to_brain, template_head
from neuralmedbench.atlas.matching import Floats, Pose, Target, agreement, climb, coarse_head, make_target, refine, rigid
from neuralmedbench.errors import DataError
from neuralmedbench.files.volumes import (
    Matrix,
    as_matrix,
    as_transform,
    centre_of_grid,
    grid_over,
    homogeneous,
    image_like,
    resample_to,
    use_one_thread,
)

if TYPE_CHECKING:
    import SimpleITK as sitk

BRAIN_CENTRE = (0.0, 17.0, 10.0)
SHOWN = 0.35
"""Threshold of the head as a fraction of mean plus SD of the grey values."""
GRID_MM, SEARCH_GRID_MM = 4.0, 6.0
"""Voxel size for refining and judging a fit, and for the search."""
BRAIN_GRID_MM, FAR_MM = 2.0, 999.0
HEIGHTS_MM = (95.0, 80.0, 65.0, 50.0, 35.0, 20.0, 5.0)
"""Start heights of the scan's top in the template: above the scalp, or anywhere in the brain if the scan is a slab."""
TILTS = (-0.3, 0.0, 0.3)
"""Start angles of nodding, in rad."""
STEPS = (0.16, 0.08, 0.08, 6.0, 6.0, 8.0, 0.06)
"""First steps: three rotations in rad, three shifts in mm, logarithm of the scale."""
LOG_SCALES, LOG_SCALE_SPREAD = (-0.04, -0.20, -0.36, -0.52), 0.09
"""Gaussian priors (means, SD) of the logarithm of a brain's size relative to the template, which is larger than
most: adult, toddler, infant, newborn. Without a prior a fit may take the scalp for the brain."""
MOVES = (0.04, 0.04, 0.04, 3.0, 3.0, 3.0, 0.03, 0.03, 0.03, 0.03)
"""First steps of polishing: three rotations in rad, three shifts in mm, logarithms of three stretches, shear of y along z."""
SHAPE = (6, 7, 8, 9)
"""Indices of the steps that change the shape of the head."""
NEIGHBOUR_MM = 10.0
LOOKS: tuple[tuple[float, Pose], ...] = (
    (SEARCH_GRID_MM, (0.1, 0.08, 0.08, 6.0, 6.0, 8.0)),
    (GRID_MM, (0.03, 0.03, 0.03, 2.0, 2.0, 2.0)),
)
"""Grid in mm and first steps (rotations in rad, shifts in mm) of the search for another scan of a head, and of a finer one if the first is ambiguous."""
LIFTS_MM = (0.0, -12.0, 12.0, -24.0, 24.0)
"""Its start heights, relative to the position in the headers."""
RIM_MM = 12.0
"""Rim of air around the head that is compared too."""
RIVAL_MM, MAX_RIVAL = 6.0, 0.83
"""A position is unambiguous if the best agreement at this distance is less than this part of its own: correct ones had up to 0.81, wrong ones
0.87 and more."""
MIN_THICK_MM = 20.0
"""Thinner slabs fit in many positions."""
CLEAR_AGREEMENT = 0.45
"""A fit with less agreement (nats) is searched for again from every height; whole heads in slices of up to 5.5 mm reach 0.46 to 1."""
SIZE_RIVAL, LEAST_RIVAL = 0.85, 0.65
"""A size whose best agreement reaches the first part of the best of all is a rival of it; worse ones than the second are not polished."""
SMALL_SCALE, FINE_MM = 0.85, 3.3
"""Brains below this size relative to the template are not an adult's; the voxel size for their last polish is the second times their size."""
SHRUNK = 0.94
"""Size of a second start of the last polish of a small head; wrong fits that a polish does not leave are 4 to 6 % too large."""
LEAN_RAD, LEAN_GAIN = 0.45, 1.05
"""Start angles of heads that lean or look to a side, and how much better such a fit must be to be a rival of one that does not."""
SCALP_MM, AIR_MM, SCALP_GREY, SCALP_SHOWN = (8.0, 14.0), (17.0, 22.0), 0.2, 0.4
"""Distances of scalp and air from the brain in the template, least grey of tissue relative to the brain's, and least `_scalp_share`."""
UPPER_MM = 110.0
"""The upper part of an adult's head, which centres a start."""
POSE_GRID_MM, POSE_HEIGHTS_MM = 10.0, (95.0, 80.0, 65.0, 35.0)
"""Of searches in several orientations: voxel size at which starts are compared, and their heights."""
MAX_TURN_DEG = 50.0
"""Largest angle between a head and its header: chins on chests and tilted heads reach 35 degrees. Beyond it the header is wrong."""


def fit_template(rough: sitk.Image, image: sitk.Image | None = None) -> sitk.Transform:
    """Fit the template's brain to a scan.

    Parameters
    ----------
    rough : SimpleITK.Image
        Result of `matching.coarse_head` on a grid of `GRID_MM`: a 3-D scan of a head or a brain, LPS+, any contrast, with or without face
        and neck; part of the head is enough.
    image : SimpleITK.Image, optional
        The scan itself, with which the fit of a small head is polished on a finer grid.

    Returns
    -------
    SimpleITK.Transform
        Affine; maps physical points of the scan to MNI152 space, both LPS+ in mm.

    Raises
    ------
    DataError
        If the scan shows no head.

    Notes
    -----
    Deterministic: a fixed list of starts, regular sampling, one thread. A similarity transform is searched and an affine one
    refined from it; if the affine one is implausible or no better, the similarity is kept.
    """
    use_one_thread()
    fits = _likely_fits(rough)
    if len(fits) > 1:
        fits = [polish_fit(rough, fit) for fit in fits]
    fit = fits[0] if len(fits) == 1 else _polished_to_the_end(rough, _best(rough, fits))
    scale = scale_of(fit)
    if image is None or scale >= SMALL_SCALE:
        return fit
    sharp = coarse_head(image, FINE_MM * scale)
    if fit_quality(rough, fit)["agreement"] < CLEAR_AGREEMENT:
        return polish_fit(sharp, fit)
    # two sizes of a small head may agree alike on the coarse grid, and the larger one takes the skull for the brain's rim
    fits = [polish_fit(sharp, fit) for fit in fits]
    fits += [polish_fit(sharp, _smaller(fit)) for fit in fits]
    return _polished_to_the_end(sharp, _best(sharp, fits))


def _smaller(fit: sitk.Transform) -> sitk.Transform:
    """Return a fit whose brain is smaller by `SHRUNK`, about its centre."""
    shrink = _move((0.0,) * 6 + (float(np.log(SHRUNK)),) * 3 + (0.0,))
    return as_transform(as_matrix(fit.GetInverse()) @ shrink).GetInverse()


def scale_of(transform: sitk.Transform) -> float:
    """Return the size of the brain relative to the template by a fit."""
    return 1 / float(np.cbrt(abs(np.linalg.det(as_matrix(transform)[:3, :3]))))


def _likely_fits(rough: sitk.Image) -> list[sitk.Transform]:
    """Search for the head in all sizes; returns several fits where sizes or leaning heads are rivals, whose best shows only after the polish."""
    points = _foreground_points(rough)
    by_size = sorted((_climb_size(rough, points, size) for size in LOG_SCALES), key=lambda best: -best[0])
    value, log_scale, similar = by_size[0]
    fitted, reached = _refined(rough, similar)
    if reached <= 0:
        message = "the template does not fit: the scan shows too little of a head"
        raise DataError(message)
    rivals = [best for best in by_size if best[0] > SIZE_RIVAL * value]
    rivals += [best for best in _search(rough, points, _leans(), TILTS, len(LOG_SCALES)) if best[0] > LEAN_GAIN * value]
    if reached < CLEAR_AGREEMENT:  # slices are thick or few
        sizes = {LOG_SCALES[0], log_scale}
        rivals += [_climb_size(rough, points, size, (height,)) for size in sorted(sizes) for height in HEIGHTS_MM]
    others = [_refined(rough, pose)[0] for other, _, pose in rivals[1:] if other > LEAST_RIVAL * value]
    return [fit.GetInverse() for fit in (fitted, *others)]


def _best(rough: sitk.Image, fits: list[sitk.Transform]) -> sitk.Transform:
    """Return the fit that agrees best.

    One that takes the scalp for the brain, so that it shows no scalp, is not chosen where another one that agrees about as well shows it.
    """
    if len(fits) == 1:
        return fits[0]
    reached = [fit_quality(rough, fit)["agreement"] for fit in fits]
    near = [place for place, value in enumerate(reached) if value >= SIZE_RIVAL * max(reached)]
    near = [place for place in near if _scalp_share(rough, fits[place]) >= SCALP_SHOWN] or near
    return fits[max(near, key=lambda place: reached[place])]


def _polished_to_the_end(rough: sitk.Image, fit: sitk.Transform) -> sitk.Transform:
    """Polish a fit until it gains nothing."""
    before, reached = 0.0, fit_quality(rough, fit)["agreement"]
    while reached > before:
        before = reached
        fit = polish_fit(rough, fit)
        reached = fit_quality(rough, fit)["agreement"]
    return fit


def _scalp_share(rough: sitk.Image, transform: sitk.Transform) -> float:
    """Return how much more of the template's scalp than of the air around it shows tissue, above the face: 1 at best."""
    import SimpleITK as sitk

    head = template_head(GRID_MM)
    values = sitk.GetArrayFromImage(sitk.Resample(rough, head.pattern, transform.GetInverse(), sitk.sitkLinear, -1.0))
    distance = sitk.GetArrayFromImage(distance_to_brain(GRID_MM))
    visible = (sitk.GetArrayFromImage(head.region) > 0) & (values > -0.5)
    brain = values[visible & (distance <= 0)]
    shares = []
    for low, high in (SCALP_MM, AIR_MM):
        layer = values[visible & (distance > low) & (distance <= high)]
        shares.append(float((layer > SCALP_GREY * np.median(brain)).mean()) if len(layer) and len(brain) else 0.0)
    return shares[0] - shares[1]


def _refined(rough: sitk.Image, similar: sitk.Similarity3DTransform) -> tuple[sitk.Transform, float]:
    """Refine a similarity to an affine transform where that is plausible and better; returns it with its agreement."""
    head = template_head(GRID_MM)
    reached = agreement(head, rough, similar)
    affine = _refine_affine(head, rough, similar)
    better = agreement(head, rough, affine)
    return (affine, better) if _plausible(affine, similar) and better > reached else (similar, reached)


def _refine_affine(head: Target, moving: sitk.Image, start: sitk.Similarity3DTransform) -> sitk.AffineTransform:
    transform = _as_affine(start)
    refined = refine(head, moving, transform, sampled=0.25, first_step=4.0, last_step=0.1, iterations=40)
    return transform if refined else _as_affine(start)


def _as_affine(similar: sitk.Similarity3DTransform) -> sitk.AffineTransform:
    import SimpleITK as sitk

    transform = sitk.AffineTransform(3)
    transform.SetMatrix(similar.GetMatrix())
    transform.SetTranslation(similar.GetTranslation())
    transform.SetCenter(similar.GetCenter())
    return transform


def _similarity(pose: Pose, turn: Matrix | None = None) -> sitk.Similarity3DTransform:
    """Build the transform from template to scan.

    `pose`: rotations in rad, shift of the brain's centre in mm, natural logarithm of the scale. `turn`: a rotation after them, shape (3, 3).
    """
    import SimpleITK as sitk

    tilt = sitk.Euler3DTransform()
    tilt.SetRotation(*pose[:3])
    linear = np.exp(pose[6]) * np.array(tilt.GetMatrix())
    transform = sitk.Similarity3DTransform()
    transform.SetCenter(BRAIN_CENTRE)
    transform.SetMatrix((linear if turn is None else (turn @ linear.reshape(3, 3)).ravel()).tolist())
    transform.SetTranslation(pose[3:6])
    return transform


def _starts(points: npt.NDArray[np.float64], turn: Matrix, log_scale: float, heights_mm: Pose, tilts: Pose) -> list[Pose]:
    """Return poses in which the upper part of a head of this size lies above the brain, centred in the other directions.

    `points`: of the head, shape (N, 3), mm. `turn`: rotation from template to scan, shape (3, 3).
    """
    across, along, up = (points @ axis for axis in turn.T)
    size = float(np.exp(log_scale - LOG_SCALES[0]))
    top = float(np.percentile(up, 99.5))
    upper = up > top - UPPER_MM * size
    x, y = (float(np.percentile(side[upper], [2, 98]).mean()) for side in (across, along))
    starts: list[Pose] = []
    height_of_centre = np.array([0.0, 0.0, BRAIN_CENTRE[2]])
    for height in heights_mm:
        lower = (1 - size) * (height - BRAIN_CENTRE[2])
        shift = turn @ np.array([x, y, top - height + lower]) + (turn @ height_of_centre - BRAIN_CENTRE)
        starts.extend((tilt, 0.0, 0.0, *shift.tolist(), log_scale) for tilt in tilts)
    return starts


def _climb_size(
    moving: sitk.Image,
    points: npt.NDArray[np.float64],
    log_scale: float,
    heights_mm: Pose = HEIGHTS_MM,
) -> tuple[float, float, sitk.Similarity3DTransform]:
    """Search for an upright head of about this size (a slab may lie anywhere, and heads nod).

    Returns the agreement weighted by the prior of the size, the size, and the pose.
    """
    return _climb(moving, np.eye(3), log_scale, _starts(points, np.eye(3), log_scale, heights_mm, TILTS))


def _climb(moving: sitk.Image, turn: Matrix, log_scale: float, starts: list[Pose]) -> tuple[float, float, sitk.Similarity3DTransform]:
    """Search from these starts, like `_climb_size`, for a head that is turned.

    The search is derivative-free because the agreement is weighted by the part of the head that is covered. Gradient descent on mutual
    information alone moves a slab out of the head and hardly rotates it.
    """
    head = template_head(SEARCH_GRID_MM)

    def value(pose: Pose) -> float:
        unusual = (pose[6] - log_scale) / LOG_SCALE_SPREAD
        return agreement(head, moving, _similarity(pose, turn)) * float(np.exp(-0.5 * unusual**2))

    best = climb(value, starts, STEPS)
    return value(best), log_scale, _similarity(best, turn)


def _search(
    rough: sitk.Image, points: npt.NDArray[np.float64], turns: tuple[Matrix, ...], tilts: Pose, climbs: int
) -> list[tuple[float, float, sitk.Similarity3DTransform]]:
    """Search from the best start of each size in these orientations, of the best sizes; returns the poses as `_climb` does."""
    coarse = template_head(POSE_GRID_MM)
    best_starts = []
    for log_scale in LOG_SCALES:
        starts: list[tuple[float, int, Matrix, Pose]] = []
        for turn in turns:
            for start in _starts(points, turn, log_scale, POSE_HEIGHTS_MM, tilts):
                starts.append((agreement(coarse, rough, _similarity(start, turn)), len(starts), turn, start))
        best_starts.append(max(starts, key=lambda entry: entry[:2]))
    best_starts.sort(key=lambda entry: -entry[0])
    return [_climb(rough, turn, start[-1], [start]) for _, _, turn, start in best_starts[:climbs]]


@cache
def _leans() -> tuple[Matrix, ...]:
    """Return the rotations of heads that lie upright, lean to a side or look to one, shape (3, 3)."""
    import SimpleITK as sitk

    leans = []
    for lean, look in product((0.0, -LEAN_RAD, LEAN_RAD), repeat=2):
        turn = sitk.Euler3DTransform()
        turn.SetRotation(0.0, lean, look)
        leans.append(np.array(turn.GetMatrix()).reshape(3, 3))
    return tuple(leans)


@cache
def _turns() -> tuple[Matrix, ...]:
    """Return the 23 rotations of a cube but the upright one, shape (3, 3)."""
    turns = []
    for order in permutations(np.eye(3)):
        for signs in product((1.0, -1.0), repeat=3):
            turn = np.array(order) * np.array(signs)[:, None]
            if np.linalg.det(turn) > 0 and np.trace(turn) < 3:
                turns.append(turn)
    return tuple(turns)


@dataclass(frozen=True)
class PosedFit:
    """A fit from starts of a given orientation.

    Attributes
    ----------
    transform : SimpleITK.AffineTransform
        Maps points of the scan to the template, polished.
    angle_deg : float
        Angle between the head and its header.
    agreement, covered : float
        As in `fit_quality`.
    """

    transform: sitk.AffineTransform
    angle_deg: float
    agreement: float
    covered: float


def fit_in_pose(rough: sitk.Image, *, turned: bool, least: float = 0.0) -> PosedFit | None:
    """Fit the template from starts of every size, at a coarser grid than `fit_template`.

    Parameters
    ----------
    rough : SimpleITK.Image
        The scan, or the depth below its skin, on a coarse grid, 0 to 255.
    turned : bool
        True: the head is turned against its header by more than `MAX_TURN_DEG`, as if supine had been entered for prone.
    least : float
        Agreement below which a fit is not polished.

    Returns
    -------
    PosedFit or None
        The best fit; None if no search ends in such a pose with such an agreement.
    """
    use_one_thread()
    points, head = _foreground_points(rough), template_head(SEARCH_GRID_MM)
    turns, tilts = (_turns(), (0.0,)) if turned else (_leans(), TILTS)
    searched = _search(rough, points, turns, tilts, climbs=2)
    poses = [pose for _, _, pose in searched if (_angle_deg(as_matrix(pose)[:3, :3]) > MAX_TURN_DEG) == turned]
    reached = [agreement(head, rough, pose) for pose in poses]
    if max(reached, default=0.0) <= least:
        return None
    best = polish_fit(rough, poses[int(np.argmax(reached))].GetInverse())
    quality = fit_quality(rough, best)
    angle = _angle_deg(as_matrix(best.GetInverse())[:3, :3])
    return PosedFit(best, round(angle, 1), quality["agreement"], quality["covered"])


def _angle_deg(linear: npt.NDArray[np.float64]) -> float:
    """Return the angle of the rotation closest to a linear map, shape (3, 3)."""
    left, _, right = np.linalg.svd(linear)
    return float(np.degrees(np.arccos(np.clip((np.trace(left @ right) - 1) / 2, -1, 1))))


def _foreground_points(moving: sitk.Image) -> npt.NDArray[np.float64]:
    """Return the physical points of the largest bright object, shape (N, 3), (x, y, z) in mm."""
    import SimpleITK as sitk

    voxels = sitk.GetArrayViewFromImage(moving)
    bright = image_like((voxels > SHOWN * float(voxels.mean() + voxels.std())).astype(np.uint8), moving)
    largest = sitk.RelabelComponent(sitk.ConnectedComponent(bright)) == 1
    indices = np.argwhere(sitk.GetArrayFromImage(largest))[:, ::-1]
    if len(indices) < 100:
        message = "the scan shows no head: its brightest object is smaller than a fist"
        raise DataError(message)
    matrix = np.array(moving.GetDirection()).reshape(3, 3) * moving.GetSpacing()[0]
    return np.asarray(indices @ matrix.T + np.array(moving.GetOrigin()))


def _plausible(affine: sitk.AffineTransform, similar: sitk.Similarity3DTransform) -> bool:
    """Return True if an affine fit differs little from the similarity: little stretch, about the same volume and position."""
    trim = np.array(affine.GetMatrix()).reshape(3, 3) @ np.linalg.inv(np.array(similar.GetMatrix()).reshape(3, 3))
    stretch = np.linalg.svd(trim, compute_uv=False)
    shift = np.linalg.norm(np.array(affine.TransformPoint(BRAIN_CENTRE)) - np.array(similar.TransformPoint(BRAIN_CENTRE)))
    return bool(stretch.max() < 1.15 and stretch.min() > 0.85 and 0.88 < stretch.prod() < 1.14 and shift < 12)


def fit_quality(rough: sitk.Image, transform: sitk.Transform) -> dict[str, float]:
    """Measure how plausible a fit is.

    Parameters
    ----------
    rough : SimpleITK.Image
        The scan, as for `fit_template`.
    transform : SimpleITK.Transform
        Result of `fit_template` for it.

    Returns
    -------
    dict of str to float
        `scale` (size of the brain relative to the template, 0.8 to 1.25 in adults), `covered` (part of the template's brain in the
        scan's field of view), `overlap` (part of that which is not background), `agreement` (see `matching.agreement`, nats).
    """
    import SimpleITK as sitk

    # sample the scan at the template's voxels; -1 marks places out of view
    head = template_head(GRID_MM)
    back = transform.GetInverse()
    values = sitk.GetArrayFromImage(sitk.Resample(rough, head.pattern, back, sitk.sitkLinear, -1.0))
    brain = sitk.GetArrayFromImage(distance_to_brain(GRID_MM)) <= 0
    seen = brain & (values > -0.5)
    bright = 0.2 * float(np.median(values[seen])) if seen.any() else 0.0
    return {
        "scale": round(scale_of(transform), 4),
        "covered": round(float(seen.sum() / brain.sum()), 4),
        "overlap": round(float((values[seen] > bright).mean()) if seen.any() else 0.0, 4),
        "agreement": round(agreement(head, rough, back), 4),
    }


def brain_depth(like: sitk.Image, transform: sitk.Transform) -> sitk.Image:
    """Sample the distance to the surface of the template's brain on the grid of a scan.

    Parameters
    ----------
    like : SimpleITK.Image
        The scan that defines the grid.
    transform : SimpleITK.Transform
        From points of the scan to the template, as returned by `fit_template`.

    Returns
    -------
    SimpleITK.Image
        float32, mm of the template, negative inside the brain and its fluid; `FAR_MM` beyond the template.
    """
    import SimpleITK as sitk

    return sitk.Resample(distance_to_brain(BRAIN_GRID_MM), like, transform, sitk.sitkLinear, FAR_MM)


def template_points(like: sitk.Image, transform: sitk.Transform) -> tuple[Floats, Floats, Floats]:
    """Compute the template coordinates of every voxel of a scan.

    Parameters
    ----------
    like, transform : SimpleITK.Image, SimpleITK.Transform
        As for `brain_depth`.

    Returns
    -------
    x, y, z : ndarray of float32, shape (Z, Y, X)
        MNI152, LPS+, mm.
    """
    # an affine transform is linear in the voxel indices: origin plus three steps
    start = np.array(transform.TransformPoint(like.GetOrigin()))
    columns = (np.array(like.GetDirection()).reshape(3, 3) * like.GetSpacing()).T
    steps = np.array([transform.TransformVector(column.tolist(), (0.0, 0.0, 0.0)) for column in columns])
    i, j, k = np.ogrid[tuple(slice(0, side) for side in like.GetSize())]
    x, y, z = (np.asarray((start[axis] + i * steps[0, axis] + j * steps[1, axis] + k * steps[2, axis]).T, np.float32) for axis in range(3))
    return x, y, z


def polish_fit(rough: sitk.Image, transform: sitk.Transform) -> sitk.AffineTransform:
    """Improve a fit.

    Parameters
    ----------
    rough, transform : SimpleITK.Image, SimpleITK.Transform
        As for `fit_quality`.

    Returns
    -------
    SimpleITK.AffineTransform
        Maps points of the scan to MNI152 space, like `transform`.

    Notes
    -----
    Heads differ in shape, so the fit is also stretched along each axis. Fits of the scans of one simulated patient differ by up to 11 mm
    (at the nose) before this step and by up to 5 mm after it.
    """
    head = template_head(GRID_MM)
    start = as_matrix(transform.GetInverse())
    best = climb(lambda pose: agreement(head, rough, as_transform(start @ _move(pose))), [(0.0,) * len(MOVES)], MOVES)
    return as_transform(np.asarray(np.linalg.inv(start @ _move(best)), dtype=np.float64))


def is_best_here(rough: sitk.Image, transform: sitk.Transform) -> bool:
    """Return True if a fit agrees better with the scan than the same fit shifted by `NEIGHBOUR_MM` along any axis."""
    shifts = [(0.0, 0.0, 0.0, *(sign * NEIGHBOUR_MM * axis).tolist(), 0.0, 0.0, 0.0, 0.0) for axis in np.eye(3) for sign in (-1, 1)]
    return _gain(rough, transform, shifts) < 1


def shape_gain(rough: sitk.Image, transform: sitk.Transform) -> float:
    """Measure how much better a scan agrees with another shape: one first step of `polish_fit` along each stretch and the shear.

    Parameters
    ----------
    rough, transform : SimpleITK.Image, SimpleITK.Transform
        As for `polish_fit`.

    Returns
    -------
    float
        Best agreement relative to that of the given fit; above 1 if another shape is better.
    """
    return _gain(rough, transform, [tuple((sign * MOVES[axis] * np.eye(len(MOVES))[axis]).tolist()) for axis in SHAPE for sign in (-1, 1)])


def _gain(rough: sitk.Image, transform: sitk.Transform, moves: list[Pose]) -> float:
    """Return the best agreement after one of the moves relative to the agreement before; infinite if that is 0."""
    head, start = template_head(GRID_MM), as_matrix(transform.GetInverse())
    here = agreement(head, rough, as_transform(start))
    best = max(agreement(head, rough, as_transform(start @ _move(move))) for move in moves)
    return best / here if here > 0 else float("inf")


def _move(pose: Pose) -> Matrix:
    """Return the matrix of a small move of the template about the brain's centre."""
    import SimpleITK as sitk

    turn = sitk.Euler3DTransform()
    turn.SetRotation(*pose[:3])
    shear = np.eye(3)
    shear[1, 2] = pose[9]
    linear = np.array(turn.GetMatrix()).reshape(3, 3) @ np.diag(np.exp(pose[6:9])) @ shear
    return homogeneous(linear, np.array(BRAIN_CENTRE) - linear @ np.array(BRAIN_CENTRE) + np.array(pose[3:6]))


@dataclass(frozen=True)
class TransferredFit:
    """A fit transferred from another scan.

    Attributes
    ----------
    transform : SimpleITK.AffineTransform
        Maps points of the scan to MNI152 space.
    rival : float
        Agreement at the best position `RIVAL_MM` away relative to the agreement here; 1 if nothing could be compared.
    sure : bool
        True if the position is unambiguous.
    """

    transform: sitk.AffineTransform
    rival: float
    sure: bool


def transfer_fit(rough: sitk.Image, other: sitk.Image, fit: sitk.Transform, guess: sitk.Transform | None = None) -> TransferredFit:
    """Transfer a fit to another scan of the same head.

    Parameters
    ----------
    rough, other : SimpleITK.Image
        The scan, and the one that has a fit, as returned by `coarse_head`; the scan may be a slab.
    fit : SimpleITK.Transform
        From points of the other scan to the template.
    guess : SimpleITK.Transform, optional
        A fit of the scan itself, from which the search starts in place of the position in the headers.

    Returns
    -------
    TransferredFit
        The fit.

    Notes
    -----
    Rigid registration by mutual information over the head of the scan and a rim of air. The scan is the target, so a slab is not drawn to
    where more of it would be covered. Deterministic.
    """
    starts: list[Pose] = [(0.0, 0.0, 0.0, 0.0, 0.0, height) for height in LIFTS_MM]
    centre = centre_of_grid(rough)
    if guess is not None:
        starts = [_rigid_part(np.linalg.inv(as_matrix(fit)) @ as_matrix(guess), np.array(centre))]
    if min(side * step for side, step in zip(rough.GetSize(), rough.GetSpacing(), strict=True)) < MIN_THICK_MM:
        return TransferredFit(as_transform(as_matrix(fit)), 1.0, sure=False)

    def agreement_on(target: Target) -> Callable[[Pose], float]:
        return lambda pose: agreement(target, other, rigid(pose, centre))

    # coarse search, then a finer one only if the position is ambiguous
    best, rival = starts[0], 1.0
    for grid_mm, steps in LOOKS:
        target = _head_target(resample_to(rough, grid_over(rough, grid_mm)), grid_mm)
        best, rival = _place(agreement_on(target), starts, steps)
        if rival <= MAX_RIVAL:
            break
        starts = [best]
    return TransferredFit(as_transform(as_matrix(fit) @ as_matrix(rigid(best, centre))), round(rival, 4), rival <= MAX_RIVAL)


def _place(value: Callable[[Pose], float], starts: list[Pose], steps: Pose) -> tuple[Pose, float]:
    """Search for the best pose; returns it with the best agreement `RIVAL_MM` away relative to its own."""
    best = climb(value, starts, steps)
    here = value(best)
    rivals = [np.add(best[3:6], sign * RIVAL_MM * axis).tolist() for axis in np.eye(3) for sign in (-1, 1)]
    return best, max(value((*best[:3], *shift)) for shift in rivals) / here if here > 0 else 1.0


def _head_target(image: sitk.Image, grid_mm: float) -> Target:
    """Build a target from the head of a scan, continued beyond the edge of the field of view, with a rim of air."""
    import SimpleITK as sitk
    from scipy import ndimage

    voxels = sitk.GetArrayViewFromImage(image)
    rim = max(1, round(RIM_MM / grid_mm))
    shown = np.pad(voxels > SHOWN * float(voxels.mean() + voxels.std()), rim, mode="edge")
    return make_target(image, ndimage.binary_dilation(shown, iterations=rim)[rim:-rim, rim:-rim, rim:-rim])


def _rigid_part(matrix: npt.NDArray[np.float64], centre: npt.NDArray[np.float64]) -> Pose:
    """Return the pose of the rigid movement closest to an affine one, about a centre: angles of SimpleITK's Euler3DTransform, shifts in mm."""
    # polar decomposition: the rotation closest to the linear part
    left, _, right = np.linalg.svd(matrix[:3, :3])
    turn = left @ right
    shift = matrix[:3, :3] @ centre + matrix[:3, 3] - centre
    angles = (np.arcsin(turn[2, 1]), np.arctan2(-turn[2, 0], turn[2, 2]), np.arctan2(-turn[0, 1], turn[1, 1]))
    return (*(float(angle) for angle in angles), *shift.tolist())
