"""Convert DICOM series to NIfTI with dcm2niix, so that no header value gets into file names or visible output."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.nifti import TooManyVoxelsError, Volume, read_nifti
from neuralmedbench.runtime.storage import LEAST_ROOM_BYTES, disk_full, has_room

TIMEOUT_S = 900
MAX_MEMORY_KIB = 2_000_000
BOUNDED = ("/bin/sh", "-c", 'ulimit -v "$0" 2>&-; exec "$@"', str(MAX_MEMORY_KIB))
"""Limits the memory of the program, which trusts the sizes in compressed images; macOS has no such limit and goes on without."""
OVERLAY = "_ROI"
"""Part of the names of masks that the program makes from overlays (groups 6000 to 601E)."""
FULL_DISK = (b"disk full", b"unable to write")
"""The program's messages on a full disk; its exit code is the same for damaged files."""
NO_VOLUME = "dcm2niix made no volume of a series: the positions, orientations or sizes of its images do not fit together"


@dataclass(frozen=True)
class ConversionOutput:
    """Output of dcm2niix for one series: the image, and its sidecar and b-values, or None."""

    image: Path
    sidecar: Path | None
    bval: Path | None

    def read(self) -> Volume:
        """Read the image; DataError if the converter made no volume of the files of the series."""
        try:
            return read_nifti(self.image, "a converted series")
        except TooManyVoxelsError:
            raise
        except DataError:  # the message speaks of NIfTI, but the user's files are DICOM
            raise DataError(NO_VOLUME) from None


@cache
def find_dcm2niix() -> str:
    """Find the program in the package of that name, beside the Python interpreter, or on the search path; ConfigError without it."""
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


def convert(series: Path, folder: Path, *, as_stacked: bool = False) -> list[ConversionOutput]:
    """Convert the DICOM files of one series.

    Parameters
    ----------
    series : Path
        Folder with the files of one series only.
    folder : Path
        Empty folder for the results, `image*.nii` uncompressed.
    as_stacked : bool
        True to return the slices as acquired even if the program wrote a corrected version.

    Returns
    -------
    list of ConversionOutput
        The images, sorted by name. A version with even spacing (`_Eq`) or without gantry tilt (`_Tilt`) replaces its original. Masks from
        overlays are left out.

    Raises
    ------
    ConfigError
        If the program is not installed.
    DataError
        If nothing could be converted.
    OSError
        If the disk is full, which is no fault of the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # `-g i` ignores a defaults file in the home folder; `-f image` keeps header words out of names; `-w 2` never overwrites
    # `-m y` keeps slices of different exposure together: geometry is checked by positions anyway
    options = ["-g", "i", "-b", "y", "-ba", "y", "-z", "n", "-m", "y", "-w", "2", "-f", "image", "-o"]
    try:
        # its output contains file names and header values, and is never shown
        done = subprocess.run(
            [*BOUNDED, find_dcm2niix(), *options, str(folder), str(series)], check=False, capture_output=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        message = f"dcm2niix did not finish a series in {TIMEOUT_S} s; look at its files"
        raise DataError(message) from None
    output = (done.stdout + done.stderr).lower()
    if any(words in output for words in FULL_DISK) or not has_room(folder, LEAST_ROOM_BYTES):
        raise disk_full()
    images = [image for image in sorted(folder.glob("*.nii")) if OVERLAY not in image.stem]
    corrected = [image for image in images if "_Eq" in image.stem or "_Tilt" in image.stem]
    chosen = [image for image in images if image not in corrected] if as_stacked else corrected[-1:] or images
    if not chosen:
        message = (
            "dcm2niix made no image of a series (unknown compression, damaged files, or images that are larger than their headers say)"
        )
        raise DataError(message)
    return [ConversionOutput(image, *(_companion(image, suffix) for suffix in (".json", ".bval"))) for image in chosen]


def convert_largest(series: Path, folder: Path, *, as_stacked: bool = False) -> tuple[Volume, ConversionOutput]:
    """Convert one series as `convert` does; return its largest volume, which is the scan if the program split the series, and its files.

    DataError also if all images are empty files.
    """
    results = [result for result in convert(series, folder, as_stacked=as_stacked) if result.image.stat().st_size]
    if not results:
        raise DataError(NO_VOLUME)
    return max(((result.read(), result) for result in results), key=lambda one: one[0].voxels.size)


def _companion(image: Path, suffix: str) -> Path | None:
    """Return the file of the same name with another suffix, or None."""
    path = image.with_suffix(suffix)
    return path if path.exists() else None
