"""The dcm2niix program: DICOM series to NIfTI, run so that nothing of a header ends in a file name or in its output."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.runtime.storage import LEAST_ROOM_BYTES, disk_full, has_room

TIMEOUT_S = 900
OVERLAY = "_ROI"
"""In the names of masks that the program makes of overlays (groups 6000 to 601E)."""
FULL_DISK = (b"disk full", b"unable to write")
"""Words in which the program says that it could not write; its exit code is the same for damaged files."""


@dataclass(frozen=True)
class Converted:
    """What dcm2niix made of one series: the image, and the files that it wrote beside it (None when it wrote none)."""

    image: Path
    sidecar: Path | None
    bval: Path | None


@cache
def find_dcm2niix() -> str:
    """Find the program: in the package of that name, beside the Python interpreter, or on the search path.

    Raises
    ------
    ConfigError
        If it is nowhere.
    """
    try:
        import dcm2niix

        packaged = str(dcm2niix.bin)
    except (ImportError, AttributeError):
        packaged = ""
    beside = str(Path(sys.executable).with_name("dcm2niix"))
    for candidate in (packaged, beside, shutil.which("dcm2niix") or ""):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    message = "the program dcm2niix is not installed; install the package of that name (requirements.lock)"
    raise ConfigError(message)


def convert(series: Path, folder: Path, *, as_stacked: bool = False) -> list[Converted]:
    """Convert the DICOM files of one series.

    Parameters
    ----------
    series : Path
        Folder that holds the files of one series and nothing else.
    folder : Path
        Empty folder for the results, `image*.nii` uncompressed.
    as_stacked : bool
        Give the slices as they were stacked even where the program made a corrected version.

    Returns
    -------
    list of Converted
        The images in the order of their names. Versions with an even spacing (`_Eq`) or without gantry tilt (`_Tilt`) take the
        place of the images they were made from. What somebody drew over the slices (overlays, which the program writes beside them) is no
        scan and is left out.

    Raises
    ------
    ConfigError
        If the program is not installed.
    DataError
        If nothing could be converted.
    OSError
        If the disk is full: that says nothing about the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # `-g i` ignores a defaults file in the home folder; `-f image` keeps header words out of names; `-w 2` never overwrites
    # `-m y` keeps slices of different exposure together: positions decide about geometry in any case
    options = ["-g", "i", "-b", "y", "-ba", "y", "-z", "n", "-m", "y", "-w", "2", "-f", "image", "-o"]
    try:
        # its output names files and header values: it is shown to nobody
        done = subprocess.run([find_dcm2niix(), *options, str(folder), str(series)], check=False, capture_output=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        message = f"dcm2niix did not finish a series in {TIMEOUT_S} s; look at its files"
        raise DataError(message) from None
    said = (done.stdout + done.stderr).lower()
    if any(words in said for words in FULL_DISK) or not has_room(folder, LEAST_ROOM_BYTES):
        raise disk_full()
    images = [image for image in sorted(folder.glob("*.nii")) if OVERLAY not in image.stem]
    corrected = [image for image in images if "_Eq" in image.stem or "_Tilt" in image.stem]
    chosen = [image for image in images if image not in corrected] if as_stacked else corrected[-1:] or images
    if not chosen:
        message = "dcm2niix made no image of a series (unknown compression, or damaged files)"
        raise DataError(message)
    return [Converted(image, *(_beside(image, suffix) for suffix in (".json", ".bval"))) for image in chosen]


def _beside(image: Path, suffix: str) -> Path | None:
    path = image.with_suffix(suffix)
    return path if path.exists() else None
