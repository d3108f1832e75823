"""From the pictures of one request to features between 0 (absent) and 1 (present), and to the main lesion.

A feature that the pictures cannot show (no CT, no contrast, no matching slice) is not there: absence of evidence is not
evidence of absence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import ndimage

from neuralmedbench.models.builtin.fluid import fluid_features
from neuralmedbench.models.builtin.measure import Frame, bright_mask, dark_mask, small_dark_spots
from neuralmedbench.models.builtin.picture import DISC
from neuralmedbench.models.builtin.reading import Reading, Spot, one_each, ramp
from neuralmedbench.records.case import Sequence as Kind

T1_KINDS = (Kind.T1W, Kind.PDW)
CT_KINDS = (Kind.CT, Kind.CE_CT)
BLOOD_KINDS = (Kind.SWI, Kind.T2STARW)


@dataclass(frozen=True)
class Findings:
    """What the pictures show.

    Attributes
    ----------
    features : dict of str to float
        By the names of `evidence.EVIDENCE`; absent when it could not be looked for.
    lesion : tuple of Spot
        Patches of the main lesion, the largest first; empty when nothing stands out.
    frames : tuple of Frame
        The pictures that could be measured.
    """

    features: dict[str, float] = field(default_factory=dict)
    lesion: tuple[Spot, ...] = ()
    frames: tuple[Frame, ...] = ()


def read_pictures(frames: Sequence[Frame]) -> Findings:
    """Read all pictures of a request.

    Parameters
    ----------
    frames : sequence of Frame
        Measured pictures; their order does not matter.

    Returns
    -------
    Findings
        Features, the main lesion and the frames.
    """
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
    lesion = next((spots for spots in found if sum(spot.patch.area for spot in spots) > 0.004), [])
    if loud > 0.4 and lesion:
        features |= _position(lesion)
    return Findings(features, tuple(sorted(lesion, key=lambda spot: -spot.patch.area)), reading.frames)


def _position(lesion: Sequence[Spot]) -> dict[str, float]:
    """Share of the lesion that lies in each coarse zone; zones need not cover the brain and may overlap."""
    areas = np.array([spot.patch.area for spot in lesion])
    x = np.array([spot.patch.x for spot in lesion])
    y = np.array([spot.patch.y for spot in lesion])
    z = np.array([np.nan if spot.z is None else spot.z for spot in lesion])
    inner = np.array([spot.patch.edge < 0.05 for spot in lesion])
    left, right = one_each(lesion)
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
"""Features that are no finding by themselves."""


def _size(spots: Sequence[Spot]) -> float:
    return max((spot.patch.area for spot in spots), default=0.0)


def distinct(spots: Sequence[Spot]) -> int:
    """Count lesions: patches at the same place of neighbouring pictures are one."""
    places: list[tuple[float, float]] = []
    for spot in spots:
        if all(np.hypot(spot.patch.x - x, spot.patch.y - y) > 0.2 for x, y in places):
            places.append((spot.patch.x, spot.patch.y))
    return len(places)


def _contrast(reading: Reading) -> tuple[dict[str, float], list[Spot]]:
    """Enhancement: the picture after contrast minus the one before, where both show the same slice."""
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
    """Blood: dense on CT, black on susceptibility-weighted pictures."""
    features: dict[str, float] = {}
    lesion: list[Spot] = []
    if scans := reading.of(*CT_KINDS):
        dense = [spot for frame in scans for spot in reading.spots(frame, ndimage.binary_opening(bright_mask(frame), DISC))]
        dense = [spot for spot in dense if spot.patch.edge < 0.5]
        features["dense_clot"] = ramp(_size(dense), 0.004, 0.015)
        pale = [spot for frame in scans for spot in reading.spots(frame, dark_mask(frame))]
        features["ct_hypodensity"] = ramp(_size(pale), 0.015, 0.05) * (1 - features["dense_clot"])
        lesion = dense if features["dense_clot"] > 0.2 else pale
    if scans := reading.of(*BLOOD_KINDS):
        # Air of the sinuses and of the mastoid is black as well: the base of the skull is left out.
        high = [frame for frame in scans if reading.above(frame, 0.3)]
        black = [spot for frame in high for spot in reading.spots(frame, (frame.depth > 0.1 * frame.radius) & (frame.ratio < 0.3))]
        tiny = [spot for frame in high for spot in reading.spots(frame, small_dark_spots(frame), smallest=0.0003)]
        features["microbleeds"] = ramp(len([spot for spot in tiny if spot.patch.area < 0.006 and spot.patch.elongation < 2]), 1.5, 6)
        features["black_bleed"] = ramp(_size([spot for spot in black if spot.patch.elongation < 3]), 0.008, 0.025)
        lesion = lesion or [spot for spot in black if spot.patch.area > 0.008]
    return features, lesion


def _diffusion(reading: Reading) -> tuple[dict[str, float], list[Spot]]:
    """Diffusion: what is bright in DWI is restricted only where ADC is dark."""
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
            value = float(np.median(adc.ratio[spot.patch.mask]))
            (restricted if value < 0.85 else shining if value > 1.1 else unknown).append(spot)
    features: dict[str, float] = {}
    if scans:
        features["restricted_diffusion"] = ramp(_size(restricted), 0.003, 0.012)
        features["shine_through"] = ramp(_size(shining), 0.004, 0.015) * (1 - features["restricted_diffusion"])
        features["dwi_bright"] = ramp(_size(unknown), 0.004, 0.015) * (1 - features["restricted_diffusion"])
    return features, restricted or shining or unknown


def _white_matter(reading: Reading) -> tuple[dict[str, float], list[Spot]]:
    """FLAIR (T2 without it): one large patch, many small ones, confluent caps, or the mesial temporal lobes."""
    scans = reading.of(Kind.FLAIR) or reading.of(Kind.T2W)
    if not scans:
        return {}, []
    spots = [spot for frame in scans for spot in reading.spots(frame, bright_mask(frame))]
    small = [spot for spot in spots if spot.patch.area < 0.012 and spot.patch.edge < 0.4]
    near = [spot for spot in spots if spot.patch.gap < 0.18]
    left, right = one_each(near)
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
    """Level of the hippocampus, between the midline and the lateral third, in the middle from front to back."""
    return spot.z is not None and 0.08 < spot.z < 0.4 and 0.15 < abs(spot.patch.x) < 0.7 and -0.35 < spot.patch.y < 0.35


def _cavity(reading: Reading) -> tuple[dict[str, float], list[Spot]]:
    """Tissue replaced by fluid on one side: an old infarct, or the necrosis of a tumour."""
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
