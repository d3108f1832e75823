"""Locate the face of a scan, by its own fit of the template or by that of another scan of the same head."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.atlas.fit import (
    GRID_MM,
    SMALL_SCALE,
    fit_in_pose,
    fit_quality,
    fit_template,
    is_best_here,
    polish_fit,
    scale_of,
    shape_gain,
    transfer_fit,
)
from neuralmedbench.atlas.matching import coarse_head
from neuralmedbench.deid.faces.face_measures import HeadView, skin_distances, view_head
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files import dicom
from neuralmedbench.files.volumes import as_matrix, as_transform
from neuralmedbench.records.case import Sequence, Series

if TYPE_CHECKING:
    import SimpleITK as sitk

PLAUSIBLE_SCALE = (0.5, 1.3)
"""Sizes of a brain relative to the template, from newborns to adults."""
WHOLE_HEAD, MIN_OVERLAP, MIN_AGREEMENT = 0.8, 0.9, 0.2
"""A fit is trusted if at least these parts of the template's brain are in view and not background, and the agreement (nats) is reached."""
WHOLE_SMALL_HEAD = 0.95
"""A fit of a brain that is smaller than an adult's must cover this part of it: a slab of an adult resembles a whole small head."""
NO_BRAIN = 0.001
"""Below this part of the template's brain in view, a scan counts as showing no brain."""
UNEVEN_MM = 12.0
"""Largest difference between opposite sides in the distance from the fitted brain to the skin."""
MAX_SHAPE_GAIN = 1.06
"""A scan whose agreement grows by more than this with another shape of the head is distorted, and gets its own fit."""
MAX_SOURCES = 2
"""Number of the case's heads whose fit is tried."""
SLAB_MM = 120.0
"""A scan whose slices span less shows too little of a head to pass on its fit."""
TURNED, UNCLEAR, CLEARLY_TURNED = 1.1, 0.95, 0.45
"""A turned fit wins where its agreement is the first part of the upright one's, and is a rival from the second on. Heads that lie as their
header says had at most 0.87, turned ones at least 1.14, bottles and balls 0.96 to 1.07. In a slab it must reach the third, in nats."""
RIVAL = 0.75
"""A turned fit with less than this part of the upright one's agreement before its polish is no rival of it."""
LIKE_THE_TEMPLATE = (Sequence.T1W, Sequence.CE_T1W)


class TurnedHeadError(DeidentificationError):
    """Raised for a head that does not lie as its header says: what is left and right of it cannot be known, in any series of the case."""


def defacing_order(series: Several[Series]) -> list[Series]:
    """Order the scans of a case: whole heads before slabs, slabs before maps; T1 first, as it has the template's contrast and fits best."""
    return sorted(series, key=_rank)


def _rank(series: Series) -> tuple[bool, bool, bool]:
    slices, spacing = series.quality.get("slices", inf), series.quality.get("spacing_mm", inf)
    return series.sequence is Sequence.ADC, slices * spacing < SLAB_MM, series.sequence not in LIKE_THE_TEMPLATE


def frame_of(raw: Path) -> str:
    """Read FrameOfReferenceUID from the first raw file, empty if absent; it is compared with others and must never be written."""
    header = dicom.first_header(raw)
    return "" if header is None else dicom.text(header, "FrameOfReferenceUID")


@dataclass(frozen=True)
class Head:
    """A scan of a whole head with a trusted fit, which other scans of the head may use.

    Attributes
    ----------
    name : str
        Name of the series.
    frame : str
        FrameOfReferenceUID; empty if unknown.
    rough : SimpleITK.Image
        The scan on a coarse grid.
    transform : SimpleITK.AffineTransform
        From points of the scan to the template.
    """

    name: str
    frame: str
    rough: sitk.Image
    transform: sitk.AffineTransform


@dataclass(frozen=True)
class FaceLocation:
    """Position of the template in a scan.

    Attributes
    ----------
    rough : SimpleITK.Image
        The scan on a coarse grid.
    transform : SimpleITK.AffineTransform
        From points of the scan to the template.
    seen : HeadView
        Position of the scan's voxels relative to template and skin.
    distances : dict of str to float
        Result of `skin_distances`.
    quality : dict of str to float
        `deface_*`, see `DefacedScan`.
    trusted, whole : bool
        True if the fit may be used, and if the scan shows enough of the brain to be fitted by itself.
    source_series : str
        Name of the scan whose fit it is; empty if it is the scan's own.
    """

    rough: sitk.Image
    transform: sitk.AffineTransform
    seen: HeadView
    distances: dict[str, float]
    quality: dict[str, float]
    trusted: bool
    whole: bool
    source_series: str = ""


def locate(image: sitk.Image, skin: sitk.Image, heads: Several[Head] = (), frame: str = "") -> FaceLocation:
    """Locate the brain, and with it the face.

    `image`: 3-D scan of a head or a brain, float32, LPS+. `skin`: result of `skin_depth` for it. `heads`: tried in this order. Returns the first trusted fit of: another head's;
    the scan's own; another head's, searched from the scan's own; and, if by its positions the scan shows no brain, that of a head in the
    same frame of reference. If none is trusted, returns the scan's own. Raises DataError if the template does not fit and no head can be used,
    TurnedHeadError if the head does not lie as its header says.
    """
    rough = coarse_head(image, GRID_MM)
    # all scans of a case show the same head: a trusted fit of another scan comes first
    found = _by_others(rough, skin, heads)
    if found is not None:
        return found
    try:
        fit = fit_template(rough, image)
        # that of a small head is polished on a finer grid
        own = _judge(rough, skin, polish_fit(rough, fit) if scale_of(fit) >= SMALL_SCALE else as_transform(as_matrix(fit)))
    except DataError:
        placed = _by_place(rough, skin, heads, frame)
        if placed is None:
            raise
        return placed
    _require_upright(rough, own)
    if own.trusted:
        return own
    # an untrusted fit still helps as a start for the fits of other heads
    return _by_others(rough, skin, heads, own.transform) or _by_place(rough, skin, heads, frame) or own


def _require_upright(rough: sitk.Image, upright: FaceLocation) -> None:
    """Raise TurnedHeadError if the scan agrees better with a turned head, DeidentificationError if with both alike, as a bottle does."""
    turned = fit_in_pose(rough, turned=True, least=RIVAL * upright.quality["deface_agreement"])
    if turned is None:
        return
    rival = turned.agreement / max(upright.quality["deface_agreement"], 1e-6)
    if rival >= UNCLEAR and (again := fit_in_pose(rough, turned=False)) is not None:
        rival = min(rival, turned.agreement / again.agreement)
    clear = upright.whole or (turned.agreement >= CLEARLY_TURNED and turned.covered >= WHOLE_HEAD)
    if clear and rival >= TURNED:
        message = (
            f"the head is turned by {turned.angle_deg:.0f} degrees against its header, so that left and right cannot be known:"
            " correct the orientation where the scan was exported, or exclude the case"
        )
        raise TurnedHeadError(message)
    if upright.whole and rival >= UNCLEAR:
        message = (
            f"the template fits as well turned by {turned.angle_deg:.0f} degrees: the scan shows no head, or one that does not lie as its"
            " header says; look at the scan, and exclude the case or its series"
        )
        raise DeidentificationError(message)


def _by_others(rough: sitk.Image, skin: sitk.Image, heads: Several[Head], guess: sitk.Transform | None = None) -> FaceLocation | None:
    """Transfer the fit of another head, if its position in the scan is unambiguous and the fit is good."""
    for head in heads[:MAX_SOURCES]:
        followed = transfer_fit(rough, head.rough, head.transform, guess)
        if not followed.sure:
            continue
        found = _judge(rough, skin, followed.transform)
        fits = found.trusted and shape_gain(rough, followed.transform) <= MAX_SHAPE_GAIN if found.whole else _is_plausible(found.quality)
        if fits:
            return replace(found, trusted=True, source_series=head.name, quality=found.quality | {"deface_rival": followed.rival})
    return None


def _by_place(rough: sitk.Image, skin: sitk.Image, heads: Several[Head], frame: str) -> FaceLocation | None:
    """Use the fit of a head in the same frame of reference unchanged if it puts no brain in view: patients move by less than the size of a face."""
    for head in heads:
        if frame and head.frame == frame:
            found = _judge(rough, skin, head.transform)
            if found.quality["deface_covered"] <= NO_BRAIN:
                return replace(found, trusted=True, source_series=head.name)
    return None


def _judge(rough: sitk.Image, skin: sitk.Image, transform: sitk.AffineTransform) -> FaceLocation:
    fit, seen = fit_quality(rough, transform), view_head(skin, transform)
    distances = skin_distances(seen)
    quality = {f"deface_{name}": fit[name] for name in ("scale", "covered", "overlap", "agreement")}
    quality["deface_uneven_mm"] = round(_uneven(distances), 1)
    whole = fit["covered"] >= (WHOLE_HEAD if fit["scale"] >= SMALL_SCALE else WHOLE_SMALL_HEAD)
    trusted = whole and _is_plausible(quality) and fit["agreement"] >= MIN_AGREEMENT and is_best_here(rough, transform)
    return FaceLocation(rough, transform, seen, distances, quality, trusted, whole)


def _is_plausible(quality: dict[str, float]) -> bool:
    low, high = PLAUSIBLE_SCALE
    shown = quality["deface_overlap"] >= MIN_OVERLAP or quality["deface_covered"] <= NO_BRAIN
    return shown and quality["deface_uneven_mm"] <= UNEVEN_MM and low < quality["deface_scale"] < high


def _uneven(distances: dict[str, float]) -> float:
    pairs = [
        (distances[one], distances[other]) for one, other in (("front", "back"), ("left", "right")) if {one, other} <= distances.keys()
    ]
    return max((abs(one - other) for one, other in pairs), default=0.0)
