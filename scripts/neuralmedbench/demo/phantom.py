"""One simulated patient's head: made once, scanned as often as the study has series."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from neuralmedbench.demo.anatomy import Brain, make_brain
from neuralmedbench.demo.cohort import Patient
from neuralmedbench.demo.contrast import PROTOCOLS
from neuralmedbench.demo.grid import BRAIN, HEAD, Volume
from neuralmedbench.demo.head import Labels, Tissue, make_head
from neuralmedbench.demo.pathology import PhantomLesion, lesion_mask, paint
from neuralmedbench.demo.scanner import Pose, SliceStack, acquire

SEED = 20_260_925


@dataclass(frozen=True)
class Phantom:
    """One patient's head before it is scanned.

    Attributes
    ----------
    brain : Brain
        Tissue fractions.
    labels : ndarray of uint8, shape (Z, Y, X)
        The rest of the head, on the grid `HEAD`.
    masks : list of (PhantomLesion, ndarray)
        The disease.
    pose : Pose
        Where the head lies in the scanner.
    """

    brain: Brain
    labels: Labels
    masks: list[tuple[PhantomLesion, Volume]]
    pose: Pose

    def ideal(self, sequence: str) -> Volume:
        """Give the signal of the whole head in one sequence, on the grid `HEAD`, without noise."""
        table = PROTOCOLS[sequence].lookup()
        signal = table[self.labels]
        window = HEAD.window(BRAIN)
        brain = self.brain
        rest = 1 - self.inside()
        inside = signal[window] * rest + table[Tissue.CSF] * brain.csf + table[Tissue.GM] * brain.gm + table[Tissue.WM] * brain.wm
        signal[window] = paint(inside, self.masks, sequence)
        return signal

    def inside(self) -> Volume:
        """Give the brain with its fluid, from 0 to 1, on the grid `BRAIN`."""
        return self.brain.gm + self.brain.wm + self.brain.csf

    def lesion(self) -> Volume:
        """Give what the answer speaks of, from 0 to 1, on the grid `BRAIN`."""
        main = np.zeros(BRAIN.shape, np.float32)
        for lesion, mask in self.masks:
            if lesion.main:
                main = np.maximum(main, mask)
        return main


def make_phantom(patient: Patient) -> Phantom:
    """Build a patient's head; the same patient always gets the same one."""
    rng = np.random.default_rng([SEED, patient.seed])
    angles, shift = rng.uniform(-4, 4, 3), rng.uniform(-3, 3, 3)
    size = np.array([0.95, 0.93, 0.95]) + rng.uniform(-0.02, 0.02, 3)
    brain = make_brain(patient.shape, rng)
    labels = make_head(brain.gm + brain.wm + brain.csf > 0.5, rng)
    masks = [(lesion, lesion_mask(lesion, brain, patient.seed)) for lesion in patient.lesions]
    return Phantom(brain, labels, masks, Pose(_point(angles), _point(shift), _point(size)))


def _point(values: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    x, y, z = (round(float(value), 3) for value in values)
    return x, y, z


def scan_phantom(phantom: Phantom, patient: Patient) -> Iterator[tuple[str, SliceStack, Pose]]:
    """Scan every sequence of a patient; the head moves a little between series, not before the first one."""
    for number, sequence in enumerate(patient.series):
        rng = np.random.default_rng([SEED, patient.seed, number])
        pose = phantom.pose
        if number:
            pose = pose.moved(_point(rng.uniform(-0.8, 0.8, 3)), _point(rng.uniform(-0.8, 0.8, 3)))
        stack = acquire(phantom.ideal(sequence), PROTOCOLS[sequence], pose, rng, isotropic=sequence.endswith("-3D"))
        yield sequence, stack, pose


def measure_lesion(phantom: Phantom) -> tuple[str, str]:
    """Measure the largest connected lesion.

    Returns
    -------
    size, position : str
        Largest extent in mm, and the centre as "x y z" in LPS+ mm of the scanner during the first series.
    """
    mask = phantom.lesion() > 0.5
    labels, found = ndimage.label(mask)
    largest = 1 + int(np.argmax(ndimage.sum_labels(mask, labels, range(1, found + 1))))
    inside = np.argwhere(labels == largest)
    scale = np.array(phantom.pose.size[::-1])
    extent = float(((inside.max(axis=0) - inside.min(axis=0) + 1) * scale).max())
    z, y, x = (float(value) for value in inside.mean(axis=0) + np.array(BRAIN.low))
    place = phantom.pose.place((x, y, z))
    return f"{extent:.0f}", " ".join(f"{value:.1f}" for value in place)
