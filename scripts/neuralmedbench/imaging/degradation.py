"""Degrade pictures as scanners, transfer and display do, at two levels: artefacts of MR, of CT, and of both.

The operators act on the displayed intensity, because pictures are 8-bit slices that went through a window: k-space, projections and noise
are those of the picture, not of the scan. What the window cut off (bone in a brain window) causes no streaks. The black around the head is
air that was scanned, so noise and ghosts reach into it; the black between the tiles of a montage, and the side letters, are ours and stay.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import ConfigError
from neuralmedbench.imaging.pictures import tile_boxes
from neuralmedbench.imaging.side_letters import find_letters
from neuralmedbench.records.case import CT_SEQUENCES, Sequence

Grey = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.float64]
LEVELS = (0, 1, 2)
"""The picture as it is, mild and severe; the levels of MedQ-Deg (arXiv 2603.07769): severe "still preserves enough critical information"."""
WHITE = 255.0
GHOSTS = 4
MATRIX = 256
"""Lines of k-space that a scan of the brain usually has along the phase direction; a picture with more pixels was interpolated."""
FINE = 16
"""Steps per pixel at which the shadow of a pixel is known."""
MR, CT = "MR", "CT"


def modality_of(sequence: str) -> str | None:
    """Return the modality of a picture by the name of its sequence, `MR` or `CT`; None if the sequence is unknown."""
    if sequence in CT_SEQUENCES:
        return CT
    return MR if sequence in set(Sequence) - {Sequence.UNKNOWN} else None


def bias_field(picture: Numbers, strength: float, rng: np.random.Generator) -> Numbers:
    """Multiply by a smooth field, a polynomial of order 3 with random coefficients, from 1 - `strength` to 1 + `strength` in the head.

    The coil is more sensitive to what is near it. Polynomial: Van Leemput et al., IEEE Trans Med Imaging 1999; 18: 885-896; range: BrainWeb.
    """
    down, right = (np.linspace(-1.0, 1.0, side) for side in picture.shape)
    powers = [(i, j) for i in range(4) for j in range(4 - i) if i + j]
    field = sum(c * np.outer(down**i, right**j) for c, (i, j) in zip(rng.uniform(-1, 1, len(powers)), powers, strict=True))
    head = picture > WHITE / 10
    low, high = (end(field[head] if head.any() else field) for end in (np.min, np.max))
    return np.asarray(picture * (1 + strength * np.clip((2 * field - low - high) / max(high - low, 1e-9), -1, 1)))


def gibbs(picture: Numbers, lines: float, _: np.random.Generator) -> Numbers:
    """Cut k-space off: keep its `lines` central lines in both directions, at most half of them, and fill with zeros.

    Edges ring: Czervionke et al., AJR 1988; 151: 1219-1228.
    """
    kept = [np.abs(_line_numbers(side)) < min(lines, side / 2) / 2 for side in picture.shape]
    return _magnitude(np.fft.fft2(picture) * np.outer(*kept))


def ghosting(picture: Numbers, strength: float, _: np.random.Generator) -> Numbers:
    """Weaken every `GHOSTS`th line of k-space by `strength`, but not the middle one: equidistant ghosts along the phase direction.

    Periodic motion, such as pulsation, changes the signal from line to line. Formula: Ghosting of torchio (Perez-Garcia et al., Comput Methods
    Programs Biomed 2021; 208: 106236). The phase direction is that of the columns, left to right in axial pictures.
    """
    number = _line_numbers(picture.shape[1])
    weakened = (number % GHOSTS == 0) & (number != 0)
    return _magnitude(np.fft.fft2(picture) * np.where(weakened, 1 - strength, 1.0))


def undersampling(picture: Numbers, acceleration: float, rng: np.random.Generator) -> Numbers:
    """Measure one of `acceleration` lines of k-space, of at most `MATRIX`: the middle and random others; fill with zeros.

    Mask: fastMRI (Zbontar et al., arXiv 1811.08839), 8 % of the lines in the middle at acceleration 4 (4 % at 8, so 16 % at 2). The lines of a higher
    acceleration are among those of a lower one.
    """
    number = _line_numbers(picture.shape[1])
    matrix = min(MATRIX, picture.shape[1])
    middle = round(matrix * 0.32 / acceleration)
    share = (matrix / acceleration - middle) / (matrix - middle)
    is_middle = np.argsort(np.argsort(np.abs(number), kind="stable")) < middle
    measured = (np.abs(number) < matrix / 2) & (is_middle | (rng.random(len(number)) < share))
    return _magnitude(np.fft.fft2(picture) * measured)


def rician_noise(picture: Numbers, strength: float, rng: np.random.Generator) -> Numbers:
    """Add Gaussian noise of deviation `strength`, as a fraction of white, to both channels, and take the magnitude.

    Gudbjartsson and Patz, Magn Reson Med 1995; 34: 910-914. Where there is no signal, the noise has a Rayleigh distribution and is never black.
    """
    real, imaginary = rng.standard_normal((2, *picture.shape)) * strength * WHITE
    return np.asarray(np.hypot(picture + real, imaginary))


def blur(picture: Numbers, strength: float, _: np.random.Generator) -> Numbers:
    """Convolve with a Gaussian of deviation `strength`, as a fraction of the larger side; pixels at the edge are repeated."""
    sigma = strength * max(picture.shape)
    reach = int(4 * sigma + 0.5)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    weights /= weights.sum()
    for _axis in range(2):  # rows, then columns
        wide = np.pad(picture, ((reach, reach), (0, 0)), mode="edge")
        picture = sum(weight * wide[start : start + len(picture)] for start, weight in enumerate(weights)).T
    return picture


def jpeg(picture: Numbers, quality: float, _: np.random.Generator) -> Numbers:
    """Compress as JPEG of a `quality` (1 to 95) and decode."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture.astype(np.uint8)).save(file, "JPEG", quality=int(quality))
    return np.asarray(Image.open(file), dtype=np.float64)


def streaks(picture: Numbers, views: float, _: np.random.Generator) -> Numbers:
    """Reconstruct from `views` projections over half a turn by filtered back-projection: streaks from edges, most from bone.

    Kak and Slaney, Principles of Computerized Tomographic Imaging (1988), chapter 3: parallel beams, the ramp filter of equation 61, rays as
    far apart as pixels, linear interpolation between them. Projection, filter and back-projection treat every pixel alike, so all views
    together are one convolution, with what a single pixel becomes.
    """
    rows, columns = picture.shape
    shape = (2 * rows, 2 * columns)  # the picture and as much black, so that nothing comes round from the other side
    spectrum = np.fft.rfft2(picture, shape) * _streak_transfer(rows, columns, round(views))
    return np.fft.irfft2(spectrum, shape)[:rows, :columns]


@lru_cache(maxsize=4)
def _streak_transfer(rows: int, columns: int, views: int) -> Numbers:
    """Return the Fourier transform of what a pixel becomes; the same for all pictures of a size."""
    # the ramp filter in space, so that its mean is right: 1/4 at 0, -1/(pi n)^2 at odd n
    reach = int(np.hypot(rows, columns)) + 2
    size = 1 << (2 * reach).bit_length()
    n = _line_numbers(size)
    ramp = np.where(n % 2 == 1, -1.0 / (np.pi * np.where(n == 0, 1, n)) ** 2, 0.0)
    ramp[0] = 0.25
    # between rays: its spectrum goes on periodically, and linear interpolation weakens it
    lines = np.arange(FINE * size // 2 + 1)
    frequency = lines / size
    between = np.fft.fft(ramp).real[lines % size] * np.sinc(frequency) ** 2
    # views lie symmetric about both axes, and so does the pixel: one quarter is enough
    down, right = np.arange(rows + 1.0)[:, None] * FINE, np.arange(columns + 1.0) * FINE
    quarter = np.zeros((rows + 1, columns + 1))
    for view in range(views // 2 + 1):
        cos, sin = np.cos(view * np.pi / views), np.sin(view * np.pi / views)
        # a pixel is a square, and its shadow as wide as it looks from there
        seen = between * np.sinc(frequency * cos) * np.sinc(frequency * sin)
        profile = np.fft.irfft(seen, FINE * size)[: reach * FINE] * FINE
        slope = np.diff(profile, append=0.0)
        start = profile - slope * np.arange(len(profile))
        for side in (cos, -cos)[: 1 + (0 < 2 * view < views)]:  # this view, and the one on the other side
            place = np.abs(right * side + down * sin)
            nearest = place.astype(np.intp)
            quarter += start[nearest] + slope[nearest] * place
    point = np.pad(quarter, ((0, rows - 1), (0, columns - 1)), mode="reflect") * np.pi / views
    return np.fft.rfft2(point).real


def _line_numbers(side: int) -> npt.NDArray[np.int64]:
    """Return the number of each line of k-space in the order of the Fourier transform, 0 in the middle of k-space."""
    return (np.arange(side) + side // 2) % side - side // 2


def _magnitude(spectrum: npt.NDArray[np.complex128]) -> Numbers:
    return np.abs(np.fft.ifft2(spectrum))


@dataclass(frozen=True)
class Degradation:
    """A way to degrade a picture.

    Attributes
    ----------
    change : callable
        From a picture, shape (rows, columns), 0 to 255, a strength and a generator of random numbers to the degraded picture.
    modalities : frozenset of str
        The modalities whose scanners do this; empty: it happens to any picture.
    strengths : tuple of float
        Of levels 1 and 2.
    """

    change: Callable[[Numbers, float, np.random.Generator], Numbers]
    modalities: frozenset[str]
    strengths: tuple[float, float]

    def applies_to(self, sequence: str) -> bool:
        """Return True if pictures of a sequence can be degraded so."""
        return not self.modalities or modality_of(sequence) in self.modalities


OF_MR, OF_CT, OF_ANY = frozenset({MR}), frozenset({CT}), frozenset[str]()
DEGRADATIONS = {
    # the field of BrainWeb's "40 %", and three times as much
    "bias_field": Degradation(bias_field, OF_MR, (0.2, 0.6)),
    # 240 mm in 128 lines are the coarsest matrix in clinical use; 80 lines: pixels of 3 mm
    "gibbs": Degradation(gibbs, OF_MR, (128, 80)),
    # the ends of torchio's default range
    "ghosting": Degradation(ghosting, OF_MR, (0.5, 1.0)),
    # half of fastMRI's 4, and 4; of its 8 with one coil and no reconstruction, nothing but the outline of the head is left
    "undersampling": Degradation(undersampling, OF_MR, (2, 4)),
    # BrainWeb's noise levels are 1, 3, 5, 7 and 9 %
    "rician_noise": Degradation(rician_noise, OF_MR, (0.05, 0.09)),
    # levels 1 and 3 of ImageNet-C (Hendrycks and Dietterich, ICLR 2019): 1 and 3 pixels of 224
    "blur": Degradation(blur, OF_ANY, (1 / 224, 3 / 224)),
    # Jin et al., IEEE Trans Image Process 2017; 26: 4509-4522: 7 and 20 times fewer than 1,000 views
    "streaks": Degradation(streaks, OF_CT, (143, 50)),
    # levels 1 and 4 of ImageNet-C
    "jpeg": Degradation(jpeg, OF_ANY, (25, 10)),
}


def degradation_named(name: str) -> Degradation:
    """Return a degradation; ConfigError if there is none of this name."""
    if name not in DEGRADATIONS:
        message = f"there is no degradation {name!r}; there are {', '.join(DEGRADATIONS)}"
        raise ConfigError(message)
    return DEGRADATIONS[name]


def seed_of(sha256: str, operator: str) -> int:
    """Return the seed for a picture and a degradation; both levels share it, so that level 2 is the artefact of level 1, stronger."""
    return int(hashlib.sha256(f"{sha256} {operator}".encode()).hexdigest()[:16], 16)


def degrade(picture: Grey, operator: str, level: int, *, seed: int, tiles: int = 1) -> Grey:
    """Degrade a picture.

    Parameters
    ----------
    picture : ndarray of uint8, shape (rows, columns) or (rows, columns, 3)
        A picture as models see it; the channels of a colour picture are degraded alike.
    operator : str
        A key of `DEGRADATIONS`.
    level : int
        0 (the picture unchanged), 1 (mild) or 2 (severe).
    seed : int
        Seed of the random numbers (`seed_of`).
    tiles : int
        Slices in the picture; each tile of a montage is degraded for itself.

    Returns
    -------
    ndarray of uint8, shape as before
        The same on every machine. Side letters and the black between tiles are as before.

    Raises
    ------
    ConfigError
        If there is no such degradation or level.
    """
    known = degradation_named(operator)
    if level not in LEVELS:
        message = f"there is no level {level} of the degradation {operator}; levels are {', '.join(map(str, LEVELS))}"
        raise ConfigError(message)
    if level == 0:
        return picture
    if picture.ndim == 3:
        channels = (degrade(picture[..., channel], operator, level, seed=seed, tiles=tiles) for channel in range(picture.shape[2]))
        return np.stack(list(channels), axis=-1)
    degraded = picture.copy()
    for number, box in enumerate(tile_boxes(picture.shape, tiles)):
        letters = find_letters(picture[box])
        scan = picture[box].astype(np.float64)
        for letter in letters:
            scan[letter] = 0
        changed = known.change(scan, known.strengths[level - 1], np.random.default_rng([seed, number]))
        degraded[box] = np.clip(np.rint(changed), 0, WHITE).astype(np.uint8)
        for letter in letters:
            degraded[box][letter] = picture[box][letter]
    return degraded
