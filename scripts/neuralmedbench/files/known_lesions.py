"""Read what is known of the lesion of a case: its place, for oracle slices, and its voxels."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.records.case import VoxelSizes

MASK_SUFFIX = ".nii.gz"


@dataclass(frozen=True)
class KnownLesion:
    """Position and size of the lesion of a case.

    Attributes
    ----------
    position_mm : tuple of float
        Its centre in the space of the reference, (x, y, z), LPS+.
    size_mm : float
        Its largest diameter; 0 if unknown.
    extent_mm : tuple of float or None
        Its widths along x, y and z, if its voxels give the place.
    """

    position_mm: tuple[float, float, float]
    size_mm: float
    extent_mm: tuple[float, float, float] | None = None


def read_known_lesion(config: Path, benchmark: str, case_id: str) -> KnownLesion | None:
    """Look up the lesion of a case: in the answers table, else by its marked voxels.

    Parameters
    ----------
    config : Path
        The folder `config/`; the benchmark's YAML file names the table and the masks, so that their paths get into no log.
    benchmark, case_id : str
        Names of benchmark and case.

    Returns
    -------
    KnownLesion or None
        None if the table has no row for the case, or neither a position nor a mask gives the place.

    Raises
    ------
    ConfigError
        If the benchmark has no answers table, or it cannot be read.
    DataError
        If the position is not three numbers, or the size not a number; as in `read_lesion_mask`.
    """
    from neuralmedbench.files.yaml_text import load_yaml

    settings = load_yaml((config / "benchmarks" / f"{benchmark}.yaml").read_text(encoding="utf-8"))
    try:
        with Path(settings["answers"]).open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.DictReader(file) if (row.get("case_id") or "").strip() == case_id]
    except (UnicodeDecodeError, csv.Error) as error:
        message = f"{benchmark}: the answers table is not a CSV file in UTF-8 ({type(error).__name__}); save it as CSV UTF-8"
        raise ConfigError(message) from None
    except (KeyError, TypeError, OSError):
        message = (
            f"{benchmark}: slices at the lesion are asked for, and there is no answers table to read positions from; name it as `answers`"
        )
        raise ConfigError(message) from None
    words = (rows[0].get("lesion_position_mm") or "").split() if rows else []
    if not words:
        masks = settings.get("lesion_masks") if rows else None
        mask = read_lesion_mask(Path(masks), case_id, settings.get("voxel_sizes")) if masks else None
        return mask.place if mask else None
    try:
        x, y, z = (float(word) for word in words)
        return KnownLesion((x, y, z), float((rows[0].get("lesion_size_mm") or "").strip() or 0.0))
    except ValueError:
        message = "the answers table: lesion_position_mm is three numbers and lesion_size_mm one, in mm; correct the row of this case"
        raise DataError(message) from None


@dataclass(frozen=True)
class LesionMask:
    """Marked voxels of a lesion.

    Attributes
    ----------
    voxels : ndarray of bool, shape (X, Y, Z)
        True in the lesion; no larger than the lesion.
    affine : ndarray of float, shape (4, 4)
        From voxels to the space of the reference, LPS+ in mm.
    """

    voxels: npt.NDArray[np.bool_]
    affine: npt.NDArray[np.float64]

    @cached_property
    def centres_mm(self) -> npt.NDArray[np.float64]:
        """The middles of the marked voxels, shape (N, 3)."""
        return np.asarray(np.argwhere(self.voxels) @ self.affine[:3, :3].T + self.affine[:3, 3])

    @property
    def place(self) -> KnownLesion:
        """The middle and the widths of the marked voxels."""
        half = np.abs(self.affine[:3, :3]).sum(axis=1) / 2
        low, high = self.centres_mm.min(axis=0) - half, self.centres_mm.max(axis=0) + half
        x, y, z = ((low + high) / 2).tolist()
        width, depth, height = (high - low).tolist()
        return KnownLesion((x, y, z), max(width, depth, height), (width, depth, height))


def read_lesion_mask(folder: Path, case_id: str, sizes: VoxelSizes | None = None) -> LesionMask | None:
    """Read the marked voxels of a case from `<folder>/<case_id>.nii.gz`; every voxel that is not 0 is marked.

    `sizes`: statement that counts in a header whose voxel sizes differ.

    Returns
    -------
    LesionMask or None
        None if the case has no such file, or it marks nothing.

    Raises
    ------
    DataError
        If the file is not a volume of one value a voxel.
    """
    from neuralmedbench.files.nifti import LPS_TO_RAS, read_nifti

    path = folder / f"{case_id}{MASK_SUFFIX}"
    if not path.is_file():
        return None
    try:
        volume = read_nifti(path, "the lesion mask", sizes)
    except DataError as error:
        message = f"the lesion mask of case {case_id}: {error}"
        raise DataError(message) from None
    if volume.voxels.ndim != 3:
        message = f"the lesion mask of case {case_id}: expected one volume, found {volume.voxels.shape[3]}; store the mask of the main lesion alone"
        raise DataError(message)
    marked = np.nan_to_num(volume.voxels) != 0
    if not marked.any():
        return None
    ends = [np.flatnonzero(marked.any(axis=others))[[0, -1]] for others in ((1, 2), (0, 2), (0, 1))]
    first = np.eye(4)
    first[:3, 3] = [low for low, _ in ends]
    (x1, x2), (y1, y2), (z1, z2) = ((int(low), int(high) + 1) for low, high in ends)
    return LesionMask(marked[x1:x2, y1:y2, z1:z2], np.diag([*LPS_TO_RAS, 1.0]) @ volume.affine @ first)
