"""What a DICOM header says about the kind of its scan: its words, its physics, and the label that both give."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neuralmedbench.files import dicom
from neuralmedbench.ingest.sequences import Label, Physics, label_sequence
from neuralmedbench.ingest.words import plain_words

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

B_VALUES = {"siemens": (0x0019, 0x100C), "philips": (0x2001, 0x1003), "ge": (0x0043, 0x1039), "uih": (0x0065, 0x1009)}
"""Private elements that hold the b-value, by the first letters of the manufacturer."""
GE_OFFSET = 100_000
"""GE adds 1e9 to the b-value of some software versions: what lies above this is no b-value."""


def label_of_header(header: Dataset, weights: Iterable[float | None] = ()) -> Label:
    """Kind of the series that a header belongs to (see `sequences.label_sequence`); `weights` are the b-values of all its images."""
    physics = physics_of(header)
    physics = replace(physics, b_value=max((weight for weight in (*weights, physics.b_value) if weight is not None), default=None))
    description, protocol, name = (plain_words(dicom.text(header, word)) for word in ("SeriesDescription", "ProtocolName", "SequenceName"))
    types = frozenset(part.upper().replace("_", " ") for part in dicom.texts(header, "ImageType"))
    return label_sequence(dicom.text(header, "Modality"), description, physics, f"{protocol} {name}".strip(), types)


def physics_of(header: Dataset) -> Physics:
    """Collect timing, diffusion weighting and agent of a header."""
    return Physics(
        repetition_ms=dicom.number(header, "RepetitionTime"),
        echo_ms=dicom.number(header, "EchoTime"),
        inversion_ms=dicom.number(header, "InversionTime"),
        b_value=b_value_of(header),
        agent=dicom.text(header, "ContrastBolusAgent"),
        technique=frozenset(dicom.texts(header, "ScanningSequence")),
        flip_deg=dicom.number(header, "FlipAngle"),
    )


def b_value_of(header: Dataset) -> float | None:
    """Diffusion weighting in s/mm2: of the standard's element, or of the vendor's private one (Siemens, Philips, GE, UIH)."""
    standard = dicom.number(header, "DiffusionBValue")
    if standard is not None:
        return standard
    maker = dicom.text(header, "Manufacturer").lower()
    known = [place for name, place in B_VALUES.items() if maker.startswith(name)]
    # a maker's number means something else in the header of another maker
    for group, number in known or ([] if maker else B_VALUES.values()):
        try:
            found = _number(header[group, number].value)
        except Exception:  # absent, or of another shape: the header does not tell
            continue
        if 0 <= found % GE_OFFSET < 20_000:
            return found % GE_OFFSET
    return None


def _number(raw: Any) -> float:
    """Read the first number of a private element, whose kind of value may have been lost on the way (`UN`)."""
    if isinstance(raw, bytes):
        try:
            return float(raw.decode("ascii").strip("\0 ").split("\\")[0])
        except ValueError:
            return float(struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0])
    return float(str(raw).split("\\")[0] if isinstance(raw, int | float | str) else raw[0])
