"""The pictures of one request side by side: by kind, by height, and the picture of another kind in the same place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from neuralmedbench.models.builtin.measure import Frame, Patch, patches
from neuralmedbench.models.builtin.picture import Mask
from neuralmedbench.records.case import Plane
from neuralmedbench.records.case import Sequence as Kind


@dataclass(frozen=True)
class Spot:
    """A patch and the height of its picture: `z` from 0 (lowest picture of its sequence) to 1, None when unknown."""

    patch: Patch
    z: float | None


def ramp(value: float, low: float, high: float) -> float:
    """Rise from 0 at `low` to 1 at `high`."""
    return float(np.clip((value - low) / (high - low), 0, 1))


def one_each(spots: Iterable[Spot]) -> tuple[float, float]:
    """Area on the patient's left and on the right."""
    pairs = [(spot.patch.area * spot.patch.left, spot.patch.area * (1 - spot.patch.left)) for spot in spots]
    return sum(left for left, _ in pairs), sum(right for _, right in pairs)


class Reading:
    """The frames of one request, by kind and height.

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
        """Give the useful frames of some kinds."""
        return tuple(frame for frame in self.useful if frame.sequence in kinds)

    def z(self, frame: Frame) -> float | None:
        """Relative height of a frame, None when it is not known."""
        if frame.z_mm is None or self.high - self.low < 30:
            return None
        return (frame.z_mm - self.low) / (self.high - self.low)

    def above(self, frame: Frame, level: float) -> bool:
        """Whether a frame lies above a relative height; one whose height is not known counts as above."""
        height = self.z(frame)
        return height is None or height > level

    def partner(self, frame: Frame, *kinds: Kind) -> Frame | None:
        """Find the picture of another kind in the same plane, within 2 mm, whose brain lies in the same place."""
        for other in self.of(*kinds):
            same_height = (
                other.plane is frame.plane and None not in {other.z_mm, frame.z_mm} and abs((other.z_mm or 0) - (frame.z_mm or 0)) <= 2
            )
            if same_height and (other.brain & frame.brain).sum() > 0.75 * (other.brain | frame.brain).sum():
                return other
        return None

    def spots(self, frame: Frame, mask: Mask, *, smallest: float = 0.0008) -> list[Spot]:
        """Describe the patches of a mask with their height."""
        return [Spot(patch, self.z(frame)) for patch in patches(frame, mask, smallest=smallest)]


def _order(frame: Frame) -> tuple[str, str, float, float]:
    return (frame.sequence or "", frame.plane or "", frame.z_mm or 0.0, float(frame.ratio.sum()))
