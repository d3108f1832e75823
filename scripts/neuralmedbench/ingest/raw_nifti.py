"""Raw NIfTI files: what they are by their name and voxels, and diffusion series turned into one picture of diffusion."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.ingest.sequences import Label, Physics, label_sequence, plain_words

MASK = re.compile(r"\b(?:mask|brainmask|seg|segmentation|label|labels|roi|lesion|dseg|probseg|\w*mask)\b")
CT_WORDS = re.compile(r"\b(?:ct|cta|cect|ncct)\b")
AIR_HU = -500
"""MR never gets as dark as this, CT is as dark as this wherever there is air."""
MAX_MASK_VALUES = 8
B0 = 50.0
"""Below this b-value in s/mm2 an image is not diffusion weighted."""


def is_mask(words: str, voxels: npt.NDArray[Any]) -> bool:
    """Whether a volume is a mask or a label map: by its name, or by a handful of whole values starting at 0."""
    sample = voxels[::2, ::2, ::2]
    if MASK.search(words) or (sample.size and sample.min() == sample.max()):
        return True
    values = np.unique(sample[::2] if sample.size > 4_000_000 else sample)
    return bool(len(values) <= MAX_MASK_VALUES and values[0] >= 0 and np.array_equal(values, np.round(values)))


def label_nifti(name: str, voxels: npt.NDArray[Any]) -> tuple[str, Label]:
    """Modality and kind of a NIfTI file by the words of its name; Hounsfield units tell a CT without a name.

    Parameters
    ----------
    name : str
        File name without suffix, for example `sub-01_ce-gadolinium_T1w`.
    voxels : ndarray
        Its voxels.

    Returns
    -------
    tuple of str and Label
        `MR` or `CT`, and the label; unknown when the name says nothing.
    """
    words = plain_words(name)
    modality = "CT" if CT_WORDS.search(words) or float(voxels.min()) < AIR_HU else "MR"
    return modality, label_sequence(modality, words, Physics())


def trace_image(voxels: npt.NDArray[Any], b_values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float32], float]:
    """Turn a diffusion series into the picture that is read: the trace of the strongest weighting.

    Parameters
    ----------
    voxels : ndarray, shape (X, Y, Z, N)
        One volume a gradient.
    b_values : ndarray, shape (N,)
        Diffusion weighting in s/mm2.

    Returns
    -------
    tuple of ndarray (X, Y, Z) and float
        Geometric mean over the gradients of the strongest weighting, which does not depend on the direction of fibres, and its b-value.

    Raises
    ------
    DataError
        If b-values and volumes do not fit, or nothing is weighted.
    """
    if voxels.ndim != 4 or voxels.shape[3] != len(b_values):
        message = f"{len(b_values)} b-values do not fit the volumes of a diffusion series"
        raise DataError(message)
    strongest = float(b_values.max())
    if strongest < B0:
        message = "a diffusion series without diffusion weighting (all b-values near 0)"
        raise DataError(message)
    chosen = np.abs(b_values - strongest) <= max(0.05 * strongest, 20)
    logs = np.log(np.maximum(voxels[..., chosen].astype(np.float32), 1e-3)).mean(axis=3)
    return np.exp(logs).astype(np.float32), strongest


def read_b_values(path: Path) -> npt.NDArray[np.float64]:
    """Read a `.bval` file; DataError when it does not hold numbers."""
    try:
        return np.array([float(part) for part in path.read_text(encoding="ascii").split()])
    except (ValueError, UnicodeDecodeError):
        message = "the b-values beside a diffusion series are not numbers"
        raise DataError(message) from None
