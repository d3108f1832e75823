"""Small heads with known anatomy, motion and index order, for the tests of normalise and slices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import SimpleITK as sitk

from neuralmedbench.atlas.anatomy import packaged_brain, template_head
from neuralmedbench.config.pipeline import SEQUENCE_ORDER
from neuralmedbench.files.cases import read_case, write_case
from neuralmedbench.files.volumes import image_like
from neuralmedbench.records.case import CaseRecord, Sequence, Series
from normalise_case import main as normalise_case

LESION_MM = (38.0, 10.0, 22.0)
"""A sphere in the patient's LEFT hemisphere, LPS+."""
LESION_RADIUS_MM = 11.0
CE_GAIN, CE_OFFSET = 1.6, 25.0
"""What the scanner did to the values of T1 after contrast agent."""
GRIDS = {"2d": (2.0, 2.0, 5.0), "3d": (2.4, 2.4, 2.4), "sagittal": (5.0, 1.8, 1.8), "coronal": (1.8, 5.0, 1.8)}


@dataclass(frozen=True)
class Shot:
    """One scan of the head."""

    sequence: str
    acquisition: str = "2d"
    order: str = "LPS"
    turn_deg: tuple[float, float, float] = (0.0, 0.0, 0.0)
    shift_mm: tuple[float, float, float] = (0.0, 0.0, 0.0)
    tilt_deg: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """How the slices are turned against the scanner (an oblique scan); the head is not."""


@cache
def anatomy() -> tuple[sitk.Image, sitk.Image]:
    """The head (T1 grey values) and the lesion, on a 2 mm grid in template space."""
    head = template_head(2.0).pattern
    grid = sitk.PhysicalPointSource(sitk.sitkVectorFloat32, head.GetSize(), head.GetOrigin(), head.GetSpacing(), head.GetDirection())
    points = sitk.GetArrayFromImage(grid)
    inside = (((points - np.array(LESION_MM)) ** 2).sum(axis=-1) < LESION_RADIUS_MM**2).astype(np.float32)
    return head, image_like(inside, head)


def motion(shot: Shot) -> sitk.Euler3DTransform:
    """From points of the head to points of the scanner."""
    return sitk.Euler3DTransform((0.0, 17.0, 10.0), *np.radians(shot.turn_deg).tolist(), shot.shift_mm)


def scan(shot: Shot) -> sitk.Image:
    """Make a scan of the head, float32, in the index order that the shot asks for."""
    head, lesion = anatomy()
    spacing = np.array(GRIDS[shot.acquisition])
    extent = np.array([200.0, 220.0, 190.0])
    native = sitk.Image(np.round(extent / spacing).astype(int).tolist(), sitk.sitkFloat32)
    native.SetSpacing(spacing.tolist())
    native.SetDirection(sitk.Euler3DTransform((0.0, 0.0, 0.0), *np.radians(shot.tilt_deg).tolist()).GetMatrix())
    corner = np.array(native.GetDirection()).reshape(3, 3) @ (extent / 2 - spacing / 2)
    native.SetOrigin((np.array([0.0, 17.0, 15.0]) + shot.shift_mm - corner).tolist())
    back = motion(shot).GetInverse()
    grey = sitk.GetArrayFromImage(sitk.Resample(head, native, back))
    spot = sitk.GetArrayFromImage(sitk.Resample(lesion, native, back))
    voxels = contrast(shot.sequence, grey) * (1 - spot) + lesion_value(shot.sequence) * spot
    noise = np.random.default_rng(7).normal(0, 3, voxels.shape)
    return sitk.DICOMOrient(image_like((voxels + noise).astype(np.float32), native), shot.order)


def contrast(sequence: str, grey: np.ndarray) -> np.ndarray:
    """Grey values of a sequence from those of T1; scalp (230) stays bright, air and bone stay dark."""
    tissue = (grey > 45) & (grey < 226)
    if sequence == "CT":
        return np.where(tissue, 20 + grey / 12, np.where(grey >= 226, 40.0, np.where(grey > 8, 900.0, -1000.0)))
    if sequence == "T1w":
        return grey * 2
    if sequence == "ceT1w":  # the scanner chose another gain
        return CE_GAIN * grey * 2 + CE_OFFSET
    if sequence == "ADC":
        return np.where(tissue, 700 + 3 * (226 - grey), 0.0)
    weight = {"T2w": 1.0, "FLAIR": 0.6, "dwi": 0.8, "PDw": 0.4, "SWI": 0.5, "T2starw": 0.7}[sequence]
    return np.where(tissue, 40 + weight * 2 * (255 - grey), grey * 1.2)


def lesion_value(sequence: str) -> float:
    """Grey value of the lesion: the darkest spot of the brain in T1, ADC and susceptibility, the brightest elsewhere."""
    bright = {"ceT1w": 1400.0, "CT": 75.0, "T2w": 620.0, "FLAIR": 500.0, "dwi": 800.0, "PDw": 420.0}
    return {**bright, "T1w": 20.0, "ADC": 350.0, "SWI": 10.0, "T2starw": 10.0}[sequence]


def brain_of(shot: Shot, like: sitk.Image) -> np.ndarray:
    """The true brain on the grid of a scan, shape (Z, Y, X)."""
    return sitk.GetArrayFromImage(sitk.Resample(packaged_brain(), like, motion(shot).GetInverse())) > 20


def normalise(case: Path, out: Path) -> CaseRecord:
    """Normalise a case as the rule does, with a coarser bias field, because phantoms have none."""
    arguments = ["--case", str(case), "--reference-order", *SEQUENCE_ORDER, "--bias-grid-mm", "16", "--out", str(out / "case.json")]
    assert normalise_case(arguments) == 0
    return read_case(out / "case.json")


def write_shots(folder: Path, shots: list[Shot], benchmark: str = "demo", case_id: str = "case01") -> Path:
    """Write a de-identified case with one series per shot; give its case.json."""
    base = folder / f"sub-{case_id}"
    series = []
    for number, shot in enumerate(shots, start=1):
        path = base / "anat" / f"sub-{case_id}_run-{number}_{shot.sequence}.nii.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        sitk.WriteImage(sitk.Cast(scan(shot), sitk.sitkInt16), path.as_posix())
        modality = "CT" if "CT" in shot.sequence else "MR"
        entry = Series(
            series_id=f"series-{number:02d}",
            path=path.relative_to(base).as_posix(),
            modality=modality,
            sequence=Sequence(shot.sequence),
        )
        series.append(entry)
    write_case(
        base / "case.json",
        CaseRecord(benchmark=benchmark, case_id=case_id, patient_id=f"p-{case_id}", stage="deidentify", series=tuple(series)),
    )
    return base / "case.json"
