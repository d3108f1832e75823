"""Tiny scans with planted identifiers: DICOM series and NIfTI files made in a moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.raw_index import RawFile, RawIndex, write_raw_index

KEY = b"a key of the tests, long enough"
PLANTED = (
    "Vandermeer", "Johanna", "48213371", "Hoogland", "Oosterhaven", "OGHMR02", "SN-66120", "A20310417", "Lindenlaan", "555 0148",
    "Brandsma", "19590914", "Accountant", "Sequoia",
)  # fmt: skip
NOTE = """Oosterhaven General Hospital. Patient: Johanna Vandermeer, MRN 48213371, born 14/09/1959.
Seen on 14 March 2031 by Dr Maarten Hoogland. NIHSS 16, b=1000, no Babinski. She is 94 years old and was well on 13/03/2031.
Lives at Lindenlaan 27, Oosterhaven, telephone +31 20 555 0148, j.vandermeer@example.org.
"""
RECORD = "patient,variable,value,unit,days_from_scan\n48213371,age,94,years,0\n48213371,NIHSS,16,points,0\n48213371,referring physician,Dr Hoogland,,0\n"


def head_voxels(shape: tuple[int, int, int] = (48, 56, 20), *, face: bool = True) -> np.ndarray:
    """An egg with a bright shell on a (X, Y, Z) grid in RAS+; enough for everything but a fit of the template."""
    x, y, z = np.meshgrid(*(np.linspace(-1, 1, side) for side in shape), indexing="ij")
    distance = np.sqrt((x / 0.75) ** 2 + (y / 0.85) ** 2 + (z / 0.9) ** 2)
    voxels = np.where(distance < 0.8, 500, 0) + np.where((distance >= 0.8) & (distance < 1), 900, 0)
    if face:
        voxels[(np.abs(x) < 0.2) & (y > 0.7) & (z < 0)] = 800
    voxels = np.where(voxels > 0, voxels + np.round(40 * x + 30 * y + 20 * z), 0)  # tissue is never of one value, as a mask is
    voxels[: shape[0] // 4, shape[1] // 2, shape[2] // 2] = 1500  # a mark on the patient's left
    return voxels.astype(np.int16)


def write_dicom_series(folder: Path, *, slices: int = 20, number: int = 1, spacing: float = 7.0, **tags: Any) -> list[Path]:
    """Write an axial series with identifiers planted in every place that a header has."""
    import pydicom
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.sequence import Sequence
    from pydicom.uid import ExplicitVRLittleEndian, generate_uid

    folder.mkdir(parents=True, exist_ok=True)
    voxels = head_voxels((48, 56, slices))
    study = tags.pop("StudyInstanceUID", generate_uid(entropy_srcs=["study", str(tags.get("PatientID", ""))]))
    series = generate_uid(entropy_srcs=["series", str(number), study])
    paths = []
    for index in range(slices):
        dataset = Dataset()
        dataset.SOPClassUID, dataset.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.4", generate_uid(entropy_srcs=[series, str(index)])
        dataset.StudyInstanceUID, dataset.SeriesInstanceUID = study, series
        dataset.FrameOfReferenceUID = generate_uid(entropy_srcs=["frame", study])
        dataset.PatientID, dataset.PatientName, dataset.PatientBirthDate = "48213371", "Vandermeer^Johanna=山田^太郎", "19590914"
        dataset.PatientAge, dataset.PatientSex, dataset.Occupation = "094Y", "F", "Accountant"
        dataset.PatientAddress, dataset.PatientTelephoneNumbers = "Lindenlaan 27, Oosterhaven", "+31 20 555 0148"
        dataset.StudyDate = dataset.SeriesDate = dataset.AcquisitionDate = dataset.ContentDate = "20310314"
        dataset.StudyTime = dataset.AcquisitionTime = f"0912{index:02d}"
        dataset.InstitutionName, dataset.StationName, dataset.DeviceSerialNumber = "Oosterhaven General Hospital", "OGHMR02", "SN-66120"
        dataset.ReferringPhysicianName, dataset.OperatorsName, dataset.AccessionNumber = "Hoogland^Maarten", "Brandsma^Sietske", "A20310417"
        dataset.StudyDescription = "HEAD VANDERMEER"
        dataset.SeriesDescription = dataset.ProtocolName = "T1_SE_TRA Vandermeer"
        dataset.ImageComments = "Sequoia"
        dataset.SpecificCharacterSet = "ISO_IR 192"
        dataset.Modality, dataset.ImageType, dataset.Manufacturer = "MR", ["ORIGINAL", "PRIMARY", "M", "ND"], "SIEMENS"
        dataset.RepetitionTime, dataset.EchoTime, dataset.MRAcquisitionType, dataset.ScanningSequence = 500, 9, "2D", "SE"
        request = Dataset()
        request.RequestedProcedureDescription = "Head of Johanna Vandermeer"
        request.ScheduledProcedureStepID = "48213371"
        dataset.RequestAttributesSequence = Sequence([request])
        block = dataset.private_block(0x0029, "VANDERMEER HEADER", create=True)
        block.add_new(1, "LO", "Vandermeer 48213371")
        dataset.SeriesNumber, dataset.InstanceNumber = number, index + 1
        dataset.ImageOrientationPatient, dataset.ImagePositionPatient = [1, 0, 0, 0, 1, 0], [-84.0, -98.0, -70 + spacing * index]
        dataset.SliceThickness, dataset.SpacingBetweenSlices, dataset.PixelSpacing = 7.0, 7.0, [3.5, 3.5]
        dataset.Rows, dataset.Columns, dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 56, 48, 1, "MONOCHROME2"
        dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation = 16, 12, 11, 0
        dataset.PixelData = np.ascontiguousarray(voxels[::-1, ::-1, index].T).astype("<u2").tobytes()
        for keyword, value in tags.items():
            setattr(dataset, keyword, value)
        dataset.file_meta = FileMetaDataset()
        dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
        dataset.file_meta.MediaStorageSOPClassUID, dataset.file_meta.MediaStorageSOPInstanceUID = (
            dataset.SOPClassUID,
            dataset.SOPInstanceUID,
        )
        dataset.file_meta.SourceApplicationEntityTitle = "OGHMR02"
        path = folder / f"VANDERMEER_{number:02d}_{index:03d}.dcm"
        pydicom.dcmwrite(path, dataset, enforce_file_format=True)
        paths.append(path)
    return paths


def write_nifti_file(path: Path, voxels: np.ndarray, *, description: str = "Vandermeer", code: int = 1, spacing: float = 3.5) -> Path:
    """Write a NIfTI file with an identifier in each text field of its header."""
    import nibabel

    image = nibabel.Nifti1Image(voxels, np.diag([spacing, spacing, 7.0, 1.0]))
    image.header["descrip"] = image.header["aux_file"] = image.header["intent_name"] = image.header["db_name"] = description[:15]
    image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"48213371 Vandermeer"))
    image.set_sform(image.affine, code=code)
    image.set_qform(image.affine, code=code)
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(image, path)
    return path


def write_index(folder: Path, files: list[Path], notes: tuple[Path, ...] = (), record: Path | None = None) -> Path:
    """Write the private index of a case."""

    def entry(path: Path) -> RawFile:
        return RawFile(path=path.as_posix(), sha256=sha256_of(path))

    index = RawIndex(
        case_id="c0ffee", patient_id="beef00000001", files=tuple(entry(path) for path in files),
        notes=tuple(entry(path) for path in notes), record=entry(record) if record else None,
    )  # fmt: skip
    write_raw_index(folder / "files.json", index)
    return folder / "files.json"


def write_config(folder: Path, source: Path, **settings: str) -> Path:
    """Write a configuration of one benchmark `mine` with a key."""
    (folder / "benchmarks").mkdir(parents=True, exist_ok=True)
    (folder / "key").write_bytes(KEY)
    lines = {
        "title": "Mine",
        "kind": "scans",
        "axis": "depth",
        "source": source.as_posix(),
        "key_file": (folder / "key").as_posix(),
        **settings,
    }
    (folder / "benchmarks" / "mine.yaml").write_text("".join(f"{key}: {value}\n" for key, value in lines.items()), encoding="utf-8")
    return folder


@pytest.fixture
def flat_deface(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the face on: the tiny heads have none, and the fit of the template is tested on its own."""
    from neuralmedbench.deid import one_scan
    from neuralmedbench.deid.faces.deface import Defaced

    monkeypatch.setattr(
        one_scan, "deface", lambda volume, **_: Defaced(volume, (), {"face_removed": 0.0}, np.zeros(volume.voxels.shape, bool))
    )
