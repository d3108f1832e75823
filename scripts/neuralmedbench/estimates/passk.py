"""pass@k from n samples, without bias."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def pass_at_k(samples: Ints, passes: Ints, k: int) -> Floats:
    """Probability that at least one of k samples passes, drawn without replacement from those that were made.

    Parameters
    ----------
    samples : ndarray of int, shape (items,)
        Samples n of each item, at least `k`.
    passes : ndarray of int, shape (items,)
        Samples c of each item that passed, 0 to n.
    k : int
        Samples drawn, at least 1.

    Returns
    -------
    ndarray of float, shape (items,)
        1 - C(n - c, k) / C(n, k), written as a product so that it cannot overflow.

    Raises
    ------
    ValueError
        If k is below 1 or above n, or c is not within 0 to n.

    Examples
    --------
    >>> pass_at_k(np.array([5, 5, 5]), np.array([0, 1, 5]), 1)
    array([0. , 0.2, 1. ])
    """
    if k < 1 or (samples < k).any():
        message = f"pass@{k} needs at least {max(k, 1)} samples of every item"
        raise ValueError(message)
    if ((passes < 0) | (passes > samples)).any():
        message = "an item has fewer passing samples than 0 or more than were made"
        raise ValueError(message)
    drawn = np.arange(k)
    failing = np.clip((samples - passes)[:, None] - drawn, 0, None) / (samples[:, None] - drawn)
    return np.asarray(1.0 - failing.prod(axis=1), dtype=np.float64)
