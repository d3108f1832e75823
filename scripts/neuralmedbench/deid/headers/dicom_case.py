"""The scans of a case as DICOM files that identify nobody: headers cleaned, text hidden and the face gone in their pixels."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

from neuralmedbench.deid.burned_in.hide import count_text, has_suspect_header, hide_text
from neuralmedbench.deid.faces.deface import deface
from neuralmedbench.deid.faces.locate import Head
from neuralmedbench.deid.faces.turn import frame_of, in_turn
from neuralmedbench.deid.headers.cleaner import HeaderCleaner
from neuralmedbench.deid.headers.dicom_stack import blank, put_pixels, stack_images
from neuralmedbench.deid.headers.options import OF_PIXELS, declare
from neuralmedbench.deid.headers.rules import HeaderRules
from neuralmedbench.deid.headers.series import write_dicom
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files import dicom
from neuralmedbench.files.nifti import Volume
from neuralmedbench.records.case import CaseRecord, Sequence

ONLY_BIDS = "not plain DICOM images of one volume (it came as NIfTI, or was converted when it was read): --format bids gives it"


def clean_dicom_series(
    source: Path, target: Path, rules: HeaderRules, checks: Counter[str], *, is_map: bool = False, heads: list[Head] | None = None
) -> None:
    """Write the files of one series without what identifies a patient, in the order of their positions.

    Parameters
    ----------
    source, target : Path
        Folder of the raw files, one image each, and new folder for `000001.dcm`...
    rules : HeaderRules
        Key, pseudonym, dates and options.
    checks : Counter
        Counts what was done: `header_*` as in `headers.clean_header`, `dicom_files_cleaned`, `dicom_images_changed`, `burned_in_*` as in
        `hidden_text.count_text`, `faces_removed`, and `deface_*` for each flag of `deface`.
    is_map : bool
        As for `deface`.
    heads : list of Head, optional
        Other scans of the same case, as for `deface`; this one is added.

    Raises
    ------
    DataError
        If the images are no stack, or cannot be unpacked: nothing could be said about their faces.
    DeidentificationError
        If a face cannot be located, text cannot be hidden, or a file cannot be written.
    """
    stack = stack_images([dicom.read_dicom(path) for path in sorted(source.glob("*.dcm"))])
    hidden = hide_text(stack.volume.voxels, 2, suspect=has_suspect_header(stack.images[0]))
    known = [] if heads is None else heads
    volume = Volume(hidden.voxels, stack.volume.affine)
    defaced = deface(volume, is_map=is_map, heads=known, name=target.name, frame=frame_of(source))
    known.extend([defaced.head] if defaced.head else [])
    stored = blank(stack, hidden.found.mask | defaced.mask)
    cleaner, counts = HeaderCleaner(rules), Counter[str]()
    target.mkdir(parents=True)
    for number, (image, plane) in enumerate(zip(stack.images, stored, strict=True), start=1):
        changed = not bool((image.pixel_array == plane).all())
        counts.update({f"header_{name}": count for name, count in cleaner.clean(image).items()})
        put_pixels(image, plane)  # of every image: bytes after its pixels, unused bits and comments of a codec would stay in the old ones
        image.BurnedInAnnotation = "NO"
        declare(image, rules.held | OF_PIXELS)
        write_dicom(target / f"{number:06d}.dcm", image, f"file {number} of {len(stack.images)} of a series")
        counts["dicom_images_changed"] += changed
    counts["dicom_files_cleaned"] += len(stack.images)
    counts["faces_removed"] += bool(defaced.mask.any())
    counts.update(f"deface_{flag}" for flag in defaced.flags)
    checks.update(counts)
    count_text(checks, hidden.found, "hide", "series")


def clean_dicom_case(case: CaseRecord, source: Path, out: Path, rules: HeaderRules, checks: Counter[str]) -> dict[str, str]:
    """Write the series of a case as `out`/<series_id>/000001.dcm...

    Parameters
    ----------
    case : CaseRecord
        The ingested case.
    source, out : Path
        Its folder, and the folder of the cleaned case.
    rules : HeaderRules
        Key, pseudonym, dates and options.
    checks : Counter
        Counts what was done.

    Returns
    -------
    dict of str to str
        By series id, why a series was left out; a series that cannot be defaced is never written.

    Raises
    ------
    DataError
        If no series is left.
    """
    left_out: dict[str, str] = {}
    heads: list[Head] = []
    for series in in_turn(case.series):
        raw, target = source / series.path, out / series.series_id
        if not raw.is_dir():
            left_out[series.series_id] = ONLY_BIDS
            continue
        try:
            clean_dicom_series(raw, target, rules, checks, is_map=series.sequence is Sequence.ADC, heads=heads)
        except (DataError, DeidentificationError) as error:
            left_out[series.series_id] = str(error)
            shutil.rmtree(target, ignore_errors=True)
    if len(left_out) == len(case.series):
        message = f"no series can be given as DICOM: {next(iter(left_out.values()))}"
        raise DataError(message)
    return left_out
