"""In which order the scans of a case lose their faces: first those whose fit the others can follow."""

from __future__ import annotations

from collections.abc import Sequence as Several
from math import inf
from pathlib import Path

from neuralmedbench.files import dicom
from neuralmedbench.records.case import Sequence, Series

SLAB_MM = 120.0
"""A scan whose slices span less shows too little of a head to lend its fit."""
LIKE_THE_TEMPLATE = (Sequence.T1W, Sequence.CE_T1W)


def in_turn(series: Several[Series]) -> list[Series]:
    """Order the scans of a case.

    Parameters
    ----------
    series : sequence of Series
        The case's series, labelled.

    Returns
    -------
    list of Series
        Whole heads before slabs and maps; among them T1 first, whose contrast is the template's, and which is fitted best.
    """
    return sorted(series, key=_rank)


def _rank(series: Series) -> tuple[bool, bool, bool]:
    slices, spacing = series.quality.get("slices", inf), series.quality.get("spacing_mm", inf)
    return series.sequence is Sequence.ADC, slices * spacing < SLAB_MM, series.sequence not in LIKE_THE_TEMPLATE


def frame_of(raw: Path) -> str:
    """Tell the frame of reference of raw DICOM files, to compare it with others and never to write it.

    Parameters
    ----------
    raw : Path
        Folder of the files of one series; anything else has no frame.

    Returns
    -------
    str
        FrameOfReferenceUID of the first file; empty where nothing says it.
    """
    files = sorted(raw.glob("*.dcm"))
    return dicom.text(dicom.read_header(files[0].read_bytes()), "FrameOfReferenceUID") if files else ""
