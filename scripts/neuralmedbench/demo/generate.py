"""Make one simulated patient: head, scans, notes, record, answer, and the list of what was planted. No real person is in it."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from neuralmedbench.demo.brain import Brain, PhantomLesion, lesion_mask, make_brain, paint
from neuralmedbench.demo.cohort import Patient, PhantomRecordRow
from neuralmedbench.demo.dicom import SeriesFiles, write_keyed_series, write_localizer, write_screenshot
from neuralmedbench.demo.grid import BRAIN, HEAD, Volume
from neuralmedbench.demo.head import Labels, Tissue, make_head
from neuralmedbench.demo.pictures import LESION_MM2, cut_picture
from neuralmedbench.demo.scanner import PROTOCOLS, Pose, SliceStack, acquire, resample
from neuralmedbench.files.answer_key import NAME, write_answer_key
from neuralmedbench.files.cases import CaseRow
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.known_lesions import MASK_SUFFIX
from neuralmedbench.files.nifti import Volume as NiftiVolume
from neuralmedbench.files.nifti import write_nifti
from neuralmedbench.files.plain_pictures import write_grey
from neuralmedbench.files.raw_folder import RawFile, RawIndex, read_raw_index, write_raw_index
from neuralmedbench.records.answer_key import AnswerKey
from neuralmedbench.records.columns import RECORD_COLUMNS
from neuralmedbench.runtime.atomic_write import atomic_folder, write_text

SEED = 20_260_925
Marked = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Phantom:
    """One patient's head before scanning.

    Attributes
    ----------
    brain : Brain
        Tissue fractions.
    labels : ndarray of uint8, shape (Z, Y, X)
        Tissues of the rest of the head, on the grid `HEAD`.
    masks : list of (PhantomLesion, ndarray)
        Lesions with the fraction of each voxel that they replace, on the grid `BRAIN`.
    pose : Pose
        Position of the head in the scanner.
    """

    brain: Brain
    labels: Labels
    masks: list[tuple[PhantomLesion, Volume]]
    pose: Pose

    def ideal(self, sequence: str) -> Volume:
        """Return the noise-free signal of the whole head in one sequence, on the grid `HEAD`."""
        table = PROTOCOLS[sequence].lookup()
        signal = table[self.labels]
        window = HEAD.window(BRAIN)
        brain = self.brain
        rest = 1 - self.inside()
        inside = signal[window] * rest + table[Tissue.CSF] * brain.csf + table[Tissue.GM] * brain.gm + table[Tissue.WM] * brain.wm
        signal[window] = paint(inside, self.masks, sequence)
        return signal

    def inside(self) -> Volume:
        """Return the fraction of brain and fluid, from 0 to 1, on the grid `BRAIN`."""
        return self.brain.gm + self.brain.wm + self.brain.csf

    def lesion(self) -> Volume:
        """Return the fraction of main lesion (the one the answer is about), from 0 to 1, on the grid `BRAIN`."""
        main = np.zeros(BRAIN.shape, np.float32)
        for lesion, mask in self.masks:
            if lesion.main:
                main = np.maximum(main, mask)
        return main


def make_phantom(patient: Patient) -> Phantom:
    """Build a patient's head; the result depends on the patient alone."""
    rng = np.random.default_rng([SEED, patient.seed])
    # rotation up to 4 degrees, shift up to 3 mm; the head is about 5 % smaller than the template
    angles, shift = rng.uniform(-4, 4, 3), rng.uniform(-3, 3, 3)
    size = np.array([0.95, 0.93, 0.95]) + rng.uniform(-0.02, 0.02, 3)
    brain = make_brain(patient.shape, rng)
    labels = make_head(brain.gm + brain.wm + brain.csf > 0.5, rng)
    masks = [(lesion, lesion_mask(lesion, brain, patient.seed)) for lesion in patient.lesions]
    return Phantom(brain, labels, masks, Pose(_point(angles), _point(shift), _point(size)))


def _point(values: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    x, y, z = (round(float(value), 3) for value in values)
    return x, y, z


def scan_phantom(phantom: Phantom, patient: Patient) -> Iterator[tuple[str, SliceStack, Pose]]:
    """Scan every sequence of a patient; the head moves a little before each series but the first."""
    for number, sequence in enumerate(patient.series):
        rng = np.random.default_rng([SEED, patient.seed, number])
        pose = phantom.pose
        if number:
            pose = pose.moved(_point(rng.uniform(-0.8, 0.8, 3)), _point(rng.uniform(-0.8, 0.8, 3)))
        stack = acquire(phantom.ideal(sequence), PROTOCOLS[sequence], pose, rng, isotropic=sequence.endswith("-3D"))
        yield sequence, stack, pose


def main_lesion(phantom: Phantom) -> Marked:
    """Return the voxels, on the grid `BRAIN`, of the largest connected part of the main lesions; none if there is no such lesion."""
    mask = phantom.lesion() > 0.5
    labels, parts = ndimage.label(mask)
    return labels == 1 + int(np.argmax(ndimage.sum_labels(mask, labels, range(1, parts + 1)))) if parts else mask


def measure_lesion(phantom: Phantom) -> tuple[str, str, str]:
    """Measure the main lesion; it must exist.

    Returns
    -------
    size, position, extent : str
        Largest extent in mm, the centre as "x y z" in LPS+ mm of the scanner during the first series, and the widths along x, y and z in mm.
    """
    inside = np.argwhere(main_lesion(phantom))
    scale = np.array(phantom.pose.size[::-1])
    extent = ((inside.max(axis=0) - inside.min(axis=0) + 1) * scale)[::-1]
    z, y, x = (float(value) for value in inside.mean(axis=0) + np.array(BRAIN.low))
    place = phantom.pose.place((x, y, z))
    position, widths = (" ".join(f"{value:.1f}" for value in values) for values in (place, extent))
    return f"{extent.max():.0f}", position, widths


def lesion_volume(phantom: Phantom) -> NiftiVolume:
    """Return the voxels of the main lesion in the space of the first series; a small empty volume without one."""
    marked = np.pad(main_lesion(phantom), 1)
    inside = np.argwhere(marked)
    low, high = (inside.min(axis=0) - 1, inside.max(axis=0) + 2) if len(inside) else (np.zeros(3, int), np.full(3, 2))
    part = marked[low[0] : high[0], low[1] : high[1], low[2] : high[2]].T
    x, y, z = (float(value) for value in (low - 1 + np.array(BRAIN.low))[::-1])
    affine = np.eye(4)
    affine[:3, :3], affine[:3, 3] = phantom.pose.matrix(), phantom.pose.place((x, y, z))
    affine[:2] *= -1  # NIfTI is RAS+
    return NiftiVolume(part.astype(np.uint8), affine)


FURTHER_ROWS = (
    PhantomRecordRow(variable="health plan", value="{plan}"),
    PhantomRecordRow(variable="sample label", value="{trial}"),
    PhantomRecordRow(variable="brought by", value="{relative}"),
    PhantomRecordRow(variable="earlier scan", value="{dotted}"),
)
"""Rows of every patient's record that contain a name, a number or a date."""
ESTABLISHED = "simulated: the pathology was put into the phantom by the generator"


def generate_case(patient: Patient, case_id: str, patient_id: str, out: Path, *, answer: Path) -> None:
    """Write all files of one invented patient.

    Parameters
    ----------
    patient : Patient
        The patient.
    case_id, patient_id : str
        Pseudonyms.
    out : Path
        Folder; its content is replaced.
    answer : Path
        Output file of the answer, with the lesion mask beside it; both are not private, so they are kept apart from the rest.

    Notes
    -----
    Below `out`: `dicom/`, `notes/`, `record.csv`, `slices/` with `slices.json`, `planted.json`, `answer_key.json`, `files.json`.
    """
    # the folder appears only when everything in it is written
    phantom = make_phantom(patient)
    with atomic_folder(out) as folder:
        written, pictures = _write_scans(folder, phantom, patient)
        notes = _write_notes(folder, patient)
        record = _write_record(folder, patient)
        write_answer_key(folder / NAME, _answer_key(case_id, patient, written))
        write_json(folder / "slices" / "slices.json", pictures)
        write_json(folder / "planted.json", patient.planted(), private=True)
        index = RawIndex(
            case_id=case_id,
            patient_id=patient_id,
            files=tuple(_listed(folder, path) for series in written for path in series.files),
            notes=tuple(_listed(folder, path) for path in notes),
            record=_listed(folder, record),
        )
        write_raw_index(folder / "files.json", index)
    write_nifti(answer.with_name(f"{case_id}{MASK_SUFFIX}"), lesion_volume(phantom))
    write_json(answer, {"case_id": case_id} | _answer(phantom, patient))


def case_row(patient: Patient, key: bytes) -> CaseRow:
    """Make a simulated patient and return its row of the case table."""
    case_id, patient_id = patient.case_id(key), patient.patient_id(key)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / case_id
        generate_case(patient, case_id, patient_id, out, answer=Path(folder) / "answer.json")
        digest = read_raw_index(out / "files.json").source_sha256
    return CaseRow(case_id=case_id, patient_id=patient_id, source_sha256=digest, sequence_overrides={}, exclude="")


def _listed(folder: Path, path: Path) -> RawFile:
    return RawFile(path=path.relative_to(folder).as_posix(), sha256=sha256_of(path))


def _write_scans(folder: Path, phantom: Phantom, patient: Patient) -> tuple[list[SeriesFiles], list[dict[str, Any]]]:
    files: list[SeriesFiles] = []
    pictures: list[dict[str, Any]] = []
    (folder / "slices").mkdir()
    for number, (sequence, stack, pose) in enumerate(scan_phantom(phantom, patient), start=1):
        protocol = PROTOCOLS[sequence]
        target = _series_folder(folder, number, protocol.description)
        files.append(
            write_keyed_series(target, patient, number, protocol, stack, burned=sequence == patient.burned_series, graphics=number == 1)
        )
        # pictures for the breadth benchmark, from this sequence
        cuts = [cut for cut in patient.cuts if cut.sequence == sequence]
        if cuts:
            # masks of brain and lesion on the voxels of the scan
            brain, lesion = (resample(mask, pose, stack.grid) > 0.4 for mask in (phantom.inside(), phantom.lesion()))
        for cut in cuts:
            picture, area = cut_picture(stack, brain, lesion, pose, cut)
            name = f"picture-{len(pictures) + 1:02d}.png"
            write_grey(folder / "slices" / name, picture)
            # a disease of the whole brain shows on every slice
            shows = area >= LESION_MM2 if patient.lesions_shown else patient.diagnosis_class != "normal"
            pictures.append(
                {
                    "file": name,
                    "modality": "CT" if sequence == "CT" else "MRI",
                    "sequence": sequence.removesuffix("-3D"),
                    "plane": cut.plane,
                    "shows_lesion": shows,
                }
            )
    # the screenshot or localizer is the last series
    if patient.extra:
        number = len(patient.series) + 1
        write = {"localizer": write_localizer, "screenshot": write_screenshot}[patient.extra]
        files.append(write(_series_folder(folder, number, patient.extra.upper()), patient, number, phantom.ideal(patient.series[0])))
    return files, pictures


def _series_folder(folder: Path, number: int, description: str) -> Path:
    target = folder / "dicom" / f"{number:02d}_{description.replace(' ', '_')}"
    target.mkdir(parents=True)
    return target


def _write_notes(folder: Path, patient: Patient) -> list[Path]:
    paths = []
    for number, note in enumerate(patient.written(), start=1):
        path = folder / "notes" / f"{patient.identity.family.lower().replace(' ', '')}_note_{number}.txt"
        write_text(path, note)
        paths.append(path)
    return paths


def _write_record(folder: Path, patient: Patient) -> Path:
    path = folder / "record.csv"
    words = patient.identity.words()
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("patient", *RECORD_COLUMNS))
        for row in (*patient.record, *FURTHER_ROWS):
            writer.writerow([patient.identity.mrn, row.variable, row.value.format(**words), row.unit, row.days_from_scan])
    return path


def _answer_key(case_id: str, patient: Patient, written: list[SeriesFiles]) -> AnswerKey:
    """Return what must be removed from the case, and what must be kept."""
    words = patient.identity.words()
    rows = (*patient.record, *FURTHER_ROWS)
    # cells with placeholders must go; an age only if it is over 89
    stay = [f"{row.variable}={row.value}" for row in patient.record if "{" not in row.value]
    go = {row.value.format(**words) for row in rows if "{" in row.value and row.variable != "age"}
    return AnswerKey(
        case_id=case_id,
        series=tuple(series.key for series in written),
        notes=tuple(key for _, key in patient.keyed_notes()),
        record_go=tuple(sorted({*patient.planted(), *go, *([words["age"]] if patient.identity.age > 89 else ())})),
        record_stay=tuple(stay),
        strings=tuple(patient.planted()),
    )


def _answer(phantom: Phantom, patient: Patient) -> dict[str, str]:
    """Return the row of answers.csv, without the case id."""
    answer = patient.answer
    size, position, extent = measure_lesion(phantom) if patient.focal else ("", "", "")
    return {
        "diagnosis": patient.diagnosis,
        "icd10": answer.icd10,
        "aliases": " | ".join(answer.aliases),
        "differentials": " | ".join(answer.differentials),
        "findings": " | ".join(answer.findings),
        "findings_complete": "true",
        "lesion_location": answer.lesion_location,
        "lesion_side": answer.lesion_side,
        "lesion_behaviour": "; ".join(f"{sequence}={signal}" for sequence, signal in answer.lesion_behaviour.items()),
        "lesion_size_mm": size,
        "lesion_position_mm": position,
        "lesion_extent_mm": extent,
        "rationale": " | ".join(answer.rationale),
        "must_not": " | ".join(answer.must_not),
        "harmful": " | ".join(answer.harmful),
        "established": ESTABLISHED,
        "level": patient.level,
        "turn_leaders": " | ".join(answer.turn_leaders),
        "essential": " | ".join(answer.essential),
    }
