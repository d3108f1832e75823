"""Findings of a set of pictures: features between 0 and 1 by sequence, and the patches of the main lesion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import ndimage

from neuralmedbench.demo.baselines.measure import Frame, Patch, bright_mask, dark_mask, patches, small_dark_spots
from neuralmedbench.demo.baselines.pictures import DISC, Mask
from neuralmedbench.records.case import CT_SEQUENCES, Plane
from neuralmedbench.records.case import Sequence as Kind


@dataclass(frozen=True)
class Spot:
    """A patch, its picture, and the relative height of it: `z` from 0 (lowest) to 1 (highest), None if unknown."""

    patch: Patch
    z: float | None
    frame: Frame


def ramp(value: float, low: float, high: float) -> float:
    """Rise linearly from 0 at `low` to 1 at `high`."""
    return float(np.clip((value - low) / (high - low), 0, 1))


def area_by_side(spots: Iterable[Spot]) -> tuple[float, float]:
    """Sum the area on the patient's left and on the right."""
    pairs = [(spot.patch.area * spot.patch.left, spot.patch.area * (1 - spot.patch.left)) for spot in spots]
    return sum(left for left, _ in pairs), sum(right for _, right in pairs)


class Reading:
    """The frames of one request, by sequence and height.

    Parameters
    ----------
    frames : iterable of Frame
        In any order.
    """

    def __init__(self, frames: Iterable[Frame]) -> None:
        self.frames = tuple(sorted(frames, key=_order))
        largest: dict[Kind | None, float] = {}
        for frame in self.frames:
            largest[frame.sequence] = max(largest.get(frame.sequence, 0.0), float(frame.brain.sum()))
        # Small slices at the vertex and at the base of the skull measure mostly partial volume and face.
        self.useful = tuple(frame for frame in self.frames if frame.brain.sum() > 0.35 * largest[frame.sequence])
        heights = [frame.z_mm for frame in self.frames if frame.z_mm is not None and frame.plane is not Plane.SAGITTAL]
        self.low, self.high = (min(heights), max(heights)) if heights else (0.0, 0.0)

    def of(self, *kinds: Kind) -> tuple[Frame, ...]:
        """Return the useful frames of some sequences."""
        return tuple(frame for frame in self.useful if frame.sequence in kinds)

    def z(self, frame: Frame) -> float | None:
        """Return the relative height of a frame; None if unknown, or if the pictures span less than 30 mm."""
        if frame.z_mm is None or self.high - self.low < 30:
            return None
        return (frame.z_mm - self.low) / (self.high - self.low)

    def above(self, frame: Frame, level: float) -> bool:
        """Return True if a frame lies above a relative height; an unknown height counts as above."""
        height = self.z(frame)
        return height is None or height > level

    def partner(self, frame: Frame, *kinds: Kind) -> Frame | None:
        """Find the picture of another sequence in the same plane, within 2 mm, whose brain mask overlaps by more than 75 %."""
        for other in self.of(*kinds):
            same_height = (
                other.plane is frame.plane and None not in {other.z_mm, frame.z_mm} and abs((other.z_mm or 0) - (frame.z_mm or 0)) <= 2
            )
            if same_height and (other.brain & frame.brain).sum() > 0.75 * (other.brain | frame.brain).sum():
                return other
        return None

    def spots(self, frame: Frame, mask: Mask, *, smallest: float = 0.0008) -> list[Spot]:
        """Return the patches of a mask with their height."""
        return [Spot(patch, self.z(frame), frame) for patch in patches(frame, mask, smallest=smallest)]


def _order(frame: Frame) -> tuple[str, str, float, float]:
    return (frame.sequence or "", frame.plane or "", frame.z_mm or 0.0, float(frame.ratio.sum()))


def fluid_features(reading: Reading) -> dict[str, float]:
    """Rate ventricles and sulci: an Evans index above 0.30 is enlarged; tight sulci at the vertex suggest hydrocephalus."""
    scans = next((found for kind in (Kind.T1W, Kind.CE_T1W, Kind.FLAIR, Kind.CT, Kind.T2W) if (found := reading.of(kind))), ())
    scans = tuple(frame for frame in scans if frame.plane in {Plane.AXIAL, None})
    if not scans:
        return {}
    # each index only on the levels where it is defined
    evans = max((evans_index(frame) for frame in scans if _middle(reading.z(frame))), default=0.0)
    horns = max((temporal_horns(frame) for frame in scans if 0.12 < (reading.z(frame) or 0.0) < 0.38), default=None)
    sulci = [(reading.z(frame), sulcal_fraction(frame)) for frame in scans]
    high = [value for z, value in sulci if z is not None and 0.75 < z < 0.95]
    wide = float(np.mean([value for z, value in sulci if z is None or 0.35 < z < 0.95] or [0.0]))
    large = ramp(evans, 0.3, 0.38)
    features = {"large_ventricles": large, "wide_sulci": ramp(wide, 0.24, 0.34)}
    if horns is not None:
        features["wide_temporal_horns"] = ramp(horns, 0.006, 0.015)
    if high and len(scans) > 2:
        features["tight_vertex"] = large * (1 - ramp(float(np.mean(high)), 0.08, 0.2))
    return features


def _middle(z: float | None) -> bool:
    return z is None or 0.42 < z < 0.75


def evans_index(frame: Frame) -> float:
    """Return the width of the frontal horns over the width of the brain; 0 if no ventricle is visible."""
    row, _, height, width = frame.box
    part = frame.ventricles.copy()
    part[int(row + 0.05 * height) :] = False
    part[: int(row - 0.6 * height)] = False
    labels, count = ndimage.label(part)
    keep = [number for number in range(1, count + 1) if (labels == number).sum() > 0.002 * frame.brain.sum()]
    columns = np.flatnonzero(np.isin(labels, keep).any(axis=0)) if keep else np.array([], dtype=int)
    if columns.size == 0:
        return 0.0
    return float((columns[-1] - columns[0] + 1) / (2 * width))


def sulcal_fraction(frame: Frame) -> float:
    """Return the fraction of fluid in the outer fifth of the brain."""
    shell = frame.brain & (frame.depth < 0.2 * frame.radius)
    return float((frame.fluid & shell).sum() / max(1, shell.sum()))


def temporal_horns(frame: Frame) -> float:
    """Measure the fluid inside the mesial temporal lobes.

    Returns
    -------
    float
        Of the smaller side, as a fraction of the brain in the picture.
    """
    row, column, height, width = frame.box
    y, x = np.indices(frame.brain.shape)
    across, along = (x - column) / width, (y - row) / height
    region = (np.abs(across) > 0.25) & (np.abs(across) < 0.65) & (np.abs(along) < 0.35) & (frame.depth > 0.2 * frame.radius)
    horns = ndimage.binary_opening(frame.fluid, DISC) & region
    return float(min((horns & (across < 0)).sum(), (horns & (across > 0)).sum()) / frame.brain.sum())


T1_KINDS = (Kind.T1W, Kind.PDW)
BLOOD_KINDS = (Kind.SWI, Kind.T2STARW)


@dataclass(frozen=True)
class Findings:
    """Findings of a request.

    Attributes
    ----------
    features : dict of str to float
        From 0 (absent) to 1 (present), by the names in `opinion.EVIDENCE`; missing if the pictures cannot show it.
    lesion : tuple of Spot
        Patches of the main lesion, the largest first; empty if nothing stands out.
    frames : tuple of Frame
        The pictures that could be measured.
    """

    features: dict[str, float] = field(default_factory=dict)
    lesion: tuple[Spot, ...] = ()
    frames: tuple[Frame, ...] = ()


def read_pictures(frames: Sequence[Frame]) -> Findings:
    """Compute features and main lesion from all pictures of a request, in any order."""
    reading = Reading(frames)
    features: dict[str, float] = {}
    found: list[list[Spot]] = []
    for look in (_contrast, _blood, _diffusion, _white_matter, _cavity):
        new, lesion = look(reading)
        features |= new
        found.append(lesion)
    features |= fluid_features(reading)
    loud = max((value for name, value in features.items() if name not in QUIET), default=0.0)
    if reading.useful:
        features["unremarkable"] = 1 - loud
    # the first detector with a lesion of notable size, in the order of the loop above
    lesion = next((spots for spots in found if sum(spot.patch.area for spot in spots) > 0.004), [])
    if loud > 0.4 and lesion:
        features |= _position(lesion)
    return Findings(features, tuple(sorted(lesion, key=lambda spot: -spot.patch.area)), reading.frames)


def _position(lesion: Sequence[Spot]) -> dict[str, float]:
    """Return the fraction of the lesion in each coarse zone; zones may overlap and do not cover the brain."""
    # an unknown height is NaN, for which every comparison is false: hence `~(z < ...)`
    areas = np.array([spot.patch.area for spot in lesion])
    x = np.array([spot.patch.x for spot in lesion])
    y = np.array([spot.patch.y for spot in lesion])
    z = np.array([np.nan if spot.z is None else spot.z for spot in lesion])
    inner = np.array([spot.patch.edge < 0.05 for spot in lesion])
    left, right = area_by_side(lesion)
    zones = {
        "lateral_lesion": (np.abs(x) > 0.4) & (y > -0.6) & (y < 0.5) & ~(z < 0.2),
        "medial_lesion": (np.abs(x) < 0.22) & (y < 0.4) & ~(z < 0.4),
        "posterior_lesion": (y > 0.55) & ~(z < 0.2),
        "infratentorial_lesion": (z < 0.22) & (y > 0.15),
        "deep_lesion": (np.abs(x) > 0.12) & (np.abs(x) < 0.5) & (np.abs(y) < 0.35) & inner & ~(z < 0.35) & ~(z > 0.65),
    }
    shares = {name: float(areas[zone].sum() / areas.sum()) for name, zone in zones.items()}
    return shares | {"two_sided": ramp(min(left, right) / (left + right), 0.1, 0.25)}


QUIET = frozenset({"tight_vertex", "wide_sulci"})
"""Features that are not findings on their own."""


def _size(spots: Sequence[Spot]) -> float:
    return max((spot.patch.area for spot in spots), default=0.0)


def distinct(spots: Sequence[Spot]) -> int:
    """Count lesions; patches at the same position in different pictures are one."""
    places: list[tuple[float, float]] = []
    for spot in spots:
        if all(np.hypot(spot.patch.x - x, spot.patch.y - y) > 0.2 for x, y in places):
            places.append((spot.patch.x, spot.patch.y))
    return len(places)


def _contrast(reading: Reading) -> tuple[dict[str, float], list[Spot]]:
    """Rate enhancement: the picture after contrast minus the one before, where both show the same slice."""
    enhanced = reading.of(Kind.CE_T1W)
    if not enhanced:
        return {}, []
    spots: list[Spot] = []
    for frame in enhanced:
        plain = reading.partner(frame, *T1_KINDS)
        if plain is None:
            mask = bright_mask(frame)
        else:
            gain = ndimage.gaussian_filter(frame.ratio - plain.ratio, 0.7)
            inside = (frame.depth > 1) & plain.brain & reading.above(frame, 0.1)
            mask = inside & (gain > max(0.3, 3 * float(np.median(np.abs(gain[frame.brain]))) * 1.48)) & (frame.ratio > 1.15)
        opened = ndimage.binary_opening(mask, DISC)
        # Vessels and dura are thin lines; what is left after opening grows back to its own outline.
        spots += reading.spots(frame, ndimage.binary_propagation(opened, mask=mask), smallest=0.002)
    spots = [spot for spot in spots if spot.patch.elongation < 4]
    # ring or solid, and contact with the dura, from the larger patches only
    size = _size(spots)
    hole = max((spot.patch.hole for spot in spots if spot.patch.area > 0.3 * size), default=0.0)
    edge = max((spot.patch.edge for spot in spots if spot.patch.area > 0.3 * size), default=0.0)
    present = ramp(size, 0.004, 0.012)
    ring = ramp(hole, 0.1, 0.25)
    return {
        "ring_enhancement": present * ring,
        "solid_enhancement": present * (1 - ring),
        "dural_enhancement": present * (1 - ring) * ramp(edge, 0.08, 0.22),
        "many_enhancing": ramp(distinct(spots), 2.5, 5),
    }, spots if present > 0.5 else []


def _blood(reading: Reading) -> tuple[dict[str, float], list[Spot]]:
    """Rate blood: dense on CT, black on susceptibility-weighted pictures."""
    features: dict[str, float] = {}
    lesion: list[Spot] = []
    # CT: bright patches away from the edge of the brain are blood; dark patches are hypodensity
    if scans := reading.of(*CT_SEQUENCES):
        dense = [spot for frame in scans for spot in reading.spots(frame, ndimage.binary_opening(bright_mask(frame), DISC))]
        dense = [spot for spot in dense if spot.patch.edge < 0.5]
        features["dense_clot"] = ramp(_size(dense), 0.004, 0.015)
        pale = [spot for frame in scans for spot in reading.spots(frame, dark_mask(frame))]
        features["ct_hypodensity"] = ramp(_size(pale), 0.015, 0.05) * (1 - features["dense_clot"])
        lesion = dense if features["dense_clot"] > 0.2 else pale
    if scans := reading.of(*BLOOD_KINDS):
        # Air in sinuses and mastoid is black too, so the base of the skull is excluded.
        high = [frame for frame in scans if reading.above(frame, 0.3)]
        black = [spot for frame in high for spot in reading.spots(frame, (frame.depth > 0.1 * frame.radius) & (frame.ratio < 0.3))]
        tiny = [spot for frame in high for spot in reading.spots(frame, small_dark_spots(frame), smallest=0.0003)]
        features["microbleeds"] = ramp(len([spot for spot in tiny if spot.patch.area < 0.006 and spot.patch.elongation < 2]), 1.5, 6)
        features["black_bleed"] = ramp(_size([spot for spot in black if spot.patch.elongation < 3]), 0.008, 0.025)
        lesion = lesion or [spot for spot in black if spot.patch.area > 0.008]
    return features, lesion


def _diffusion(reading: Reading) -> tuple[dict[str, float], list[Spot]]:
    """Rate diffusion: a DWI-bright spot is restricted only where ADC is dark."""
    scans = reading.of(Kind.DWI)
    restricted: list[Spot] = []
    shining: list[Spot] = []
    unknown: list[Spot] = []
    for frame in scans:
        adc = reading.partner(frame, Kind.ADC)
        for spot in reading.spots(frame, ndimage.binary_opening(bright_mask(frame), DISC), smallest=0.0015):
            if adc is None:
                unknown.append(spot)
                continue
            # ratio to normal brain: below 0.85 restricted, above 1.1 shine-through, between them undecided
            value = float(np.median(adc.ratio[spot.patch.mask]))
            (restricted if value < 0.85 else shining if value > 1.1 else unknown).append(spot)
    features: dict[str, float] = {}
    if scans:
        features["restricted_diffusion"] = ramp(_size(restricted), 0.003, 0.012)
        features["shine_through"] = ramp(_size(shining), 0.004, 0.015) * (1 - features["restricted_diffusion"])
        features["dwi_bright"] = ramp(_size(unknown), 0.004, 0.015) * (1 - features["restricted_diffusion"])
    return features, restricted or shining or unknown


def _white_matter(reading: Reading) -> tuple[dict[str, float], list[Spot]]:
    """Rate white matter on FLAIR (else T2): one large patch, many small ones, confluent caps, or mesial temporal lobes."""
    scans = reading.of(Kind.FLAIR) or reading.of(Kind.T2W)
    if not scans:
        return {}, []
    spots = [spot for frame in scans for spot in reading.spots(frame, bright_mask(frame))]
    # small patches, patches near the ventricles, and patches of the mesial temporal lobes
    small = [spot for spot in spots if spot.patch.area < 0.012 and spot.patch.edge < 0.4]
    near = [spot for spot in spots if spot.patch.gap < 0.18]
    left, right = area_by_side(near)
    slices = max(1, len(scans))
    both = min(left, right) / max(left, right, 1e-6)
    confluent = ramp(min(left, right) / slices, 0.004, 0.015) * ramp(both, 0.25, 0.6)
    ovoid = [spot for spot in small if spot.patch.gap < 0.35]
    mesial = [spot for spot in spots if _is_mesial_temporal(spot)]
    size = _size([spot for spot in spots if spot.patch.gap > 0.02 or both < 0.3])
    sides = {spot.patch.x > 0 for spot in small if abs(spot.patch.x) > 0.08}
    return {
        "large_flair": ramp(size, 0.02, 0.06) * (1 - confluent),
        "scattered_flair": ramp(len(small), 4, 10) * (0.5 + 0.5 * (len(sides) == 2)),
        "ovoid_periventricular": ramp(len(ovoid), 3, 8) * (1 - confluent) * (len(sides) == 2),
        "confluent_periventricular": confluent,
        "mesial_temporal": ramp(sum(spot.patch.area for spot in mesial), 0.008, 0.03),
        "posterior_fossa_flair": ramp(sum(s.patch.area for s in spots if s.z is not None and s.z < 0.2 and s.patch.y > 0.1), 0.006, 0.03),
    }, spots


def _is_mesial_temporal(spot: Spot) -> bool:
    """Return True at the level of the hippocampus, between midline and lateral third, in the middle third from front to back."""
    return spot.z is not None and 0.08 < spot.z < 0.4 and 0.15 < abs(spot.patch.x) < 0.7 and -0.35 < spot.patch.y < 0.35


def _cavity(reading: Reading) -> tuple[dict[str, float], list[Spot]]:
    """Rate tissue replaced by fluid on one side: an old infarct, or tumour necrosis."""
    scans = reading.of(Kind.FLAIR, Kind.T1W)
    if not scans:
        return {}, []
    spots = [
        spot
        for frame in scans
        if reading.above(frame, 0.3)
        for spot in reading.spots(frame, dark_mask(frame) & (frame.ratio < 0.6), smallest=0.004)
        if spot.patch.gap > 0.04
    ]
    return {"cavity": ramp(_size(spots), 0.008, 0.025)}, spots
