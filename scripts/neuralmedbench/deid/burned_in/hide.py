"""Hide text burned into a series or picture and check the result, or drop the series or picture."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.find import BurnedInText, Words, find_burned_in, hide_burned_in
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files import dicom

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

Voxels = npt.NDArray[Any]
Policy = Literal["hide", "drop"]
PicturePolicy = Literal["hide", "drop", "keep"]
OUTCOMES: dict[PicturePolicy, str] = {"hide": "hidden", "drop": "dropped", "keep": "kept"}
PASSES = 2
THICKER = 1.15
"""Minimum ratio of slice distance to pixel size by which the slice axis is recognised."""
SUSPECT_TYPES = frozenset({"SECONDARY", "SCREEN SAVE", "OTHER"})
SCREENSHOTS = "1.2.840.10008.5.1.4.1.1.7"


class TextFoundError(DataError):
    """Raised for a series or picture that is dropped because text is burned into it."""


@dataclass(frozen=True)
class HiddenText:
    """A scan or a picture without burned-in text.

    Attributes
    ----------
    voxels : ndarray
        Shape and dtype as before.
    burned_in : BurnedInText
        The hidden text.
    """

    voxels: Voxels
    burned_in: BurnedInText


def hide_text(
    voxels: Voxels, slice_axis: int | None = 2, *, suspect: bool = False, words: Words | None = None, policy: Policy = "hide"
) -> HiddenText:
    """Hide burned-in text, and search again.

    `voxels`: one series, shape (X, Y, Z), any real dtype; not changed. `slice_axis`, `suspect`, `words`: as for `find_burned_in`. `policy`:
    with `drop` text is only detected, and the caller drops the series. Returns the same array if nothing was hidden. Raises
    DeidentificationError if text is still detected after it was hidden.
    """
    burned_in = find_burned_in(voxels, slice_axis, suspect=suspect, words=words)
    if policy == "drop":
        return HiddenText(voxels, burned_in)
    for _ in range(PASSES):
        if not burned_in:
            return HiddenText(voxels, burned_in)
        clean = hide_burned_in(voxels, burned_in)
        left = find_burned_in(clean, slice_axis, suspect=suspect, hidden=burned_in.mask)
        if not left:
            return HiddenText(clean, burned_in)
        evidence = dict(Counter(burned_in.evidence) + Counter(left.evidence))
        burned_in = BurnedInText(burned_in.mask | left.mask, (*burned_in.boxes, *left.boxes), evidence, burned_in.ocr)
    message = "text remains in the pixels after it was hidden: look at the scan, and exclude the case or its series"
    raise DeidentificationError(message)


def count_text(checks: Counter[str], burned_in: BurnedInText, policy: PicturePolicy, kind: Literal["series", "pictures"]) -> None:
    """Count one series or picture in the checks.

    Adds to `checks`: `burned_in_<kind>_searched`, `..._hidden`, `..._dropped` or `..._kept`, `burned_in_single_marks` (side markers and the
    like, also hidden), and, if a second opinion was needed, `..._read_by_ocr`, or `..._without_ocr` if tesseract is not installed.
    """
    checks[f"burned_in_{kind}_searched"] += 1
    checks[f"burned_in_{kind}_{OUTCOMES[policy]}"] += bool(burned_in)
    checks["burned_in_single_marks"] += burned_in.evidence.get("single_marks", 0)
    if burned_in.ocr is not None:
        checks[f"burned_in_{kind}_{'read_by' if burned_in.ocr else 'without'}_ocr"] += 1


def reported_checks(checks: Counter[str], subjects: str) -> dict[str, int]:
    """Sort checks, and leave out those that depend on the machine unless the data are of patients.

    `subjects`: `patient`, `public` or `phantom`. For the last two, the use of tesseract is not recorded, so that records reproduced without it
    differ only where a picture differs.
    """
    return {name: checks[name] for name in sorted(checks) if subjects == "patient" or not name.endswith("_ocr")}


def has_suspect_header(header: Dataset) -> bool:
    """Return True if a raw header suggests burned-in text; called before headers are cleaned.

    Criteria: BurnedInAnnotation YES, a secondary capture, a converted or digitised picture, a derived image that is not primary, 8 bits.
    Ingest excludes the clearest of these; the others are also read by tesseract.
    """
    types = set(dicom.texts(header, "ImageType"))
    return (
        dicom.text(header, "BurnedInAnnotation").upper() == "YES"
        or dicom.text(header, "SOPClassUID").startswith(SCREENSHOTS)
        or bool(dicom.text(header, "ConversionType"))
        or bool(types & SUSPECT_TYPES)
        or dicom.number(header, "BitsStored") == 8
    )


def stacked_along(shape: tuple[int, ...], affine: npt.NDArray[np.float64], files: int | None = None) -> int | None:
    """Return the axis along which the slices of a converted scan are stacked; None if unknown.

    `affine`: shape (4, 4), voxel to mm. `files`: number of DICOM files of the series.

    Examples
    --------
    >>> stacked_along((240, 208, 30), np.diag([1.0, 1.0, 5.0, 1.0]))
    2
    """
    fitting = [axis for axis, side in enumerate(shape[:3]) if side == files]
    if len(fitting) == 1:
        return fitting[0]
    sizes = np.linalg.norm(affine[:3, :3], axis=0)
    thick = int(np.argmax(sizes))
    return thick if sizes[thick] >= THICKER * np.delete(sizes, thick).max() else None
