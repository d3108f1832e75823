"""Raw NIfTI files: what they are by their name, their sidecar and their voxels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.files.nifti import Volume
from neuralmedbench.ingest.bids import label_bids
from neuralmedbench.ingest.diffusion import read_b_values, trace_image
from neuralmedbench.ingest.sequences import Physics, SequenceLabel, label_sequence
from neuralmedbench.ingest.words import plain_words
from neuralmedbench.records.case import Sequence

MASK = re.compile(r"\b(?:mask|brainmask|seg|segmentation|label|labels|roi|lesion|dseg|probseg|\w*mask)\b")
CT_WORDS = re.compile(r"\b(?:ct|cta|cect|ncct)\b")
WHO = re.compile(r"^(?:(?:sub|ses)(?:-[A-Za-z0-9+]+|[_ ]?\d[A-Za-z0-9]*)_)+", re.IGNORECASE)
"""Subject and session at the start of a name: a `sub` is not a subtraction."""
AIR_HU = -500
"""MR never gets as dark as this, CT is as dark as this wherever there is air."""
MAX_MASK_VALUES = 8


def check_voxels(voxels: npt.NDArray[Any]) -> None:
    """Refuse a volume that shows nothing or holds voxels that are no numbers."""
    if voxels.dtype.kind == "f" and (bad := int(voxels.size - np.isfinite(voxels).sum())):
        message = (
            f"{bad} of {voxels.size} voxels are no numbers (NaN or infinite); write 0 where they are background and list the cases again"
        )
        raise DataError(message)
    if voxels.min() == voxels.max():
        message = "all voxels are equal; the scan shows nothing"
        raise DataError(message)


def is_mask(words: str, voxels: npt.NDArray[Any]) -> bool:
    """Whether a volume is a mask or a label map: by its name, or by a handful of whole values starting at 0."""
    if MASK.search(words):
        return True
    sample = voxels[::2, ::2, ::2]
    values = np.unique(sample[::2] if sample.size > 4_000_000 else sample)
    return bool(len(values) <= MAX_MASK_VALUES and values[0] >= 0 and np.array_equal(values, np.round(values)))


def label_nifti(
    name: str, voxels: npt.NDArray[Any], sidecars: Iterable[Path] = (), *, by_a_person: bool = False
) -> tuple[str, SequenceLabel]:
    """Modality and kind of a NIfTI file by the words of its name; Hounsfield units tell a CT without a name.

    `name`: file name without suffix, for example `sub-01_ce-gadolinium_T1w`. A BIDS name is read by its entities and suffix. Returns: `MR`
    or `CT`, and the label; unknown when neither name nor sidecar says anything. Raises DataError if it is a mask, or a sidecar is no JSON.
    """
    words = plain_words(WHO.sub("", name))
    if not by_a_person and is_mask(words, voxels):
        message = "a mask, not a scan"
        raise DataError(message)
    modality = "CT" if CT_WORDS.search(words) or float(voxels.min()) < AIR_HU else "MR"
    texts, physics = read_sidecars(sidecars)
    return modality, label_bids(name, modality, physics) or label_sequence(modality, words, physics, texts)


def read_sidecars(paths: Iterable[Path]) -> tuple[str, Physics]:
    """Give the words and the physics (ms) of BIDS sidecars, whose times are in s; DataError when one is no JSON object.

    Of several the later wins, key by key: a scan inherits what its own sidecar does not say.
    """
    fields: dict[str, Any] = {}
    for path in paths:
        fields |= _read_object(path)
    seconds = [fields.get(key) for key in ("RepetitionTime", "EchoTime", "InversionTime")]
    repetition, echo, inversion = (1000.0 * value if isinstance(value, int | float) else None for value in seconds)
    flip, agent, technique = fields.get("FlipAngle"), fields.get("ContrastBolusIngredient"), fields.get("ScanningSequence")
    physics = Physics(
        repetition_ms=repetition,
        echo_ms=echo,
        inversion_ms=inversion,
        agent=agent if isinstance(agent, str) else "",
        technique=frozenset(re.split(r"[\\_, ]+", technique)) if isinstance(technique, str) else frozenset(),
        flip_deg=float(flip) if isinstance(flip, int | float) else None,
    )
    texts = [fields.get(key) for key in ("SeriesDescription", "ProtocolName", "SequenceName")]
    return plain_words(*(value for value in texts if isinstance(value, str))), physics


def _read_object(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        message = "the sidecar beside a scan is not a JSON object"
        raise DataError(message)
    return fields


def volume_3d(volume: Volume, sequence: Sequence, gradients: Path | None, words: str) -> tuple[Volume, float | None]:
    """Give the 3-D volume of a NIfTI file, and its b-value.

    `gradients`: the `.bval` beside it. `words`: `plain_words` of its name. Returns: Of a diffusion series the trace of the strongest
    weighting. Raises DataError if it is a series of volumes and no diffusion scan with b-values.
    """
    if volume.voxels.ndim == 4:
        if sequence is not Sequence.DWI or gradients is None:
            message = f"a series of {volume.voxels.shape[3]} volumes without b-values"
            raise DataError(message)
        voxels, b_value = trace_image(volume.voxels, read_b_values(gradients))
        return Volume(voxels, volume.affine), b_value
    if sequence is not Sequence.DWI:
        return volume, None
    if gradients is not None and len(known := read_b_values(gradients)) == 1:
        return volume, float(known[0])
    return volume, 0.0 if "b0" in words.replace("b 0", "b0") else None
