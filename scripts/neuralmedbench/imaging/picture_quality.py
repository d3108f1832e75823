"""Quality of a degraded picture: how far it is from the original, and how spread its light is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Grey = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.float64]
WHITE = 255.0


def quality_numbers(original: Grey, picture: Grey) -> dict[str, float]:
    """Measure a picture against its original.

    Parameters
    ----------
    original, picture : ndarray of uint8, shape (rows, columns) or (rows, columns, 3)
        Colour is measured by the mean of its channels.

    Returns
    -------
    dict of str to float
        `psnr_db` (peak signal-to-noise ratio; absent if both are equal), `ssim` (structural similarity, 1 if both are equal), and without a
        reference `entropy_focus` and `entropy_focus_original`: 0 if one pixel has all light, 1 if all have the same; ghosts, blur and noise
        raise it.
    """
    first, second = (one.mean(axis=-1).round().astype(np.uint8) if one.ndim == 3 else one for one in (original, picture))
    ratio = psnr(first, second)
    return ({} if ratio is None else {"psnr_db": ratio}) | {
        "ssim": ssim(first, second),
        "entropy_focus": entropy_focus(second),
        "entropy_focus_original": entropy_focus(first),
    }


def psnr(original: Grey, picture: Grey) -> float | None:
    """Return the peak signal-to-noise ratio in dB, of white against the root mean square error; None if the pictures are equal."""
    error = float(np.mean((original.astype(np.float64) - picture) ** 2))
    return 10 * float(np.log10(WHITE**2 / error)) if error else None


def ssim(original: Grey, picture: Grey) -> float:
    """Return the structural similarity (Wang et al., IEEE Trans Image Process 2004; 13: 600-612), mean over windows inside the picture."""
    first, second = original.astype(np.float64), picture.astype(np.float64)
    mean_1, mean_2 = _smooth(first), _smooth(second)
    spread_1, spread_2 = _smooth(first**2) - mean_1**2, _smooth(second**2) - mean_2**2
    together = _smooth(first * second) - mean_1 * mean_2
    stable_1, stable_2 = (0.01 * WHITE) ** 2, (0.03 * WHITE) ** 2
    likeness = (2 * mean_1 * mean_2 + stable_1) * (2 * together + stable_2)
    return float(np.mean(likeness / ((mean_1**2 + mean_2**2 + stable_1) * (spread_1 + spread_2 + stable_2))))


def _smooth(picture: Numbers) -> Numbers:
    """Average with a Gaussian window of 11 pixels and deviation 1.5, only where it is inside the picture; a smaller picture is one window."""
    for _axis in range(2):
        reach = min(5, (len(picture) - 1) // 2)
        weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / 1.5) ** 2)
        inside = len(picture) - 2 * reach
        parts = [weight * picture[start : start + inside] for start, weight in enumerate(weights / weights.sum())]
        picture = np.sum(parts, axis=0).T
    return picture


def entropy_focus(picture: Grey) -> float:
    """Return the entropy focus criterion (Atkinson et al., IEEE Trans Med Imaging 1997; 16: 903-910), scaled as MRIQC does; 1 for a black picture."""
    light = picture[picture > 0].astype(np.float64)
    if not light.size or picture.size == 1:
        return 1.0
    part = light / np.sqrt((light**2).sum())
    return float(-(part * np.log(part)).sum() / (np.sqrt(picture.size) * np.log(np.sqrt(picture.size))))
