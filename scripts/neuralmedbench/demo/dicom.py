"""Write a simulated study as DICOM series with planted, invented identifiers: the scans, and a screenshot or a localizer."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydicom import dcmread
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.uid import UID, CTImageStorage, ExplicitVRLittleEndian, MRImageStorage, SecondaryCaptureImageStorage, generate_uid

from neuralmedbench.demo.cohort import Patient
from neuralmedbench.demo.grid import HEAD, Volume
from neuralmedbench.demo.identity import PhantomIdentity
from neuralmedbench.demo.plant_identifiers import burn_in, plant_graphics, plant_header_values, tag_rules
from neuralmedbench.demo.scanner import Protocol, SliceStack
from neuralmedbench.records.answer_key import PixelBox, SeriesKey

START = dt.time(9, 12, 30)
PRIVATE_GROUP, PRIVATE_CREATOR = 0x0029, "DEMO PHANTOM HEADER"
PRIVATE_UID = UID("1.2.826.0.1.3680043.10.543.9")
CT_INTERCEPT = -1024
OF_SLICE = ("SOPInstanceUID", "InstanceNumber", "AcquisitionTime", "ContentTime", "ImagePositionPatient", "SliceLocation", "PixelData")
"""Elements that differ between the files of a series."""


@dataclass(frozen=True)
class SeriesFiles:
    """A series on disk: its files in slice order, and the key of what must be removed and kept."""

    files: list[Path]
    key: SeriesKey


def write_keyed_series(
    folder: Path, patient: Patient, number: int, protocol: Protocol, stack: SliceStack, *, burned: bool = False, graphics: bool = False
) -> SeriesFiles:
    """Write one series into an existing folder: isotropic stacks as sagittal slices, others as axial ones.

    `burned` burns name and record number into a corner of every slice; `graphics` adds an overlay plane and an icon with both (a converter
    makes a separate volume of an overlay).
    """
    header = series_header(patient, number, protocol.description)
    is_ct = protocol.is_ct
    header.SOPClassUID = CTImageStorage if is_ct else MRImageStorage
    header.Modality = "CT" if is_ct else "MR"
    header.ImageType = list(protocol.image_type)
    for keyword, value in protocol.tags.items():
        setattr(header, keyword, value)
    # CT stores Hounsfield units with an offset of 1024; 40/80 is the brain window
    if is_ct:
        header.RescaleIntercept, header.RescaleSlope = CT_INTERCEPT, 1
        header.WindowCenter, header.WindowWidth = 40, 80
    else:
        header.MagneticFieldStrength, header.ImagingFrequency = 3.0, 123.25
        header.NumberOfAverages, header.PixelBandwidth = 1, 200
        header.ImagedNucleus = "1H"
    header.PatientPosition = "HFS"
    header.FrameOfReferenceUID = generate_uid(entropy_srcs=["neuralmedbench demo", patient.key, "frame"])
    # geometry of the planes
    planes, positions, spacing, thickness, orientation = _planes(stack)
    header.PixelSpacing, header.SliceThickness, header.ImageOrientationPatient = list(spacing), thickness, orientation
    if not is_ct:
        header.SpacingBetweenSlices = thickness
    stored = (planes - CT_INTERCEPT if is_ct else planes).astype("<u2")
    describe_pixels(header, stored.shape[1:], bits=12 if not is_ct else 16)
    # identifiers in the header's graphics and in the pixels
    if graphics:
        plant_graphics(header, patient.identity, (stored.shape[1], stored.shape[2]))
    boxes: tuple[PixelBox, ...] = ()
    if burned:
        stored, box = burn_in(stored, patient.identity)
        boxes = (box,)
    # one header for all slices; the elements in OF_SLICE change from file to file
    paths: list[Path] = []
    encoded: Dataset | None = None
    for index, (plane, position) in enumerate(zip(stored, positions, strict=True)):
        header.ImagePositionPatient = [float(place) for place in position]
        header.SliceLocation = float(position[0] if orientation[2] == 0 and orientation[5] == -1 else position[2])
        is_2d = header.get("MRAcquisitionType", "2D") == "2D"
        number_slice(header, patient, number, index, seconds=(number * 240) + (0.11 * index if is_2d else 0))
        header.PixelData = plane.tobytes()
        paths.append(save(header, folder, patient.identity, index, encoded=encoded))
        if encoded is None:
            encoded = read_encoded(paths[0])
    return SeriesFiles(paths, series_key(header, patient, protocol.description, paths, boxes=boxes))


def series_key(
    header: Dataset, patient: Patient, description: str, files: list[Path], *, boxes: tuple[PixelBox, ...] = (), kept: bool = True
) -> SeriesKey:
    """Return the answer key of a series that was just written; `header` is that of its last file."""
    return SeriesKey(
        series_uid=str(header.SeriesInstanceUID),
        kept=kept,
        files=len(files),
        rules=tag_rules(header, patient.identity, description, kept=kept),
        boxes=boxes,
    )


def series_header(patient: Patient, number: int, description: str) -> Dataset:
    """Return the elements that all files of a series share: people, institution, device, study, series and dates."""
    identity = patient.identity
    person = f"{identity.family}^{identity.given}"
    ds = Dataset()
    # patient; ISO_IR 192 is UTF-8
    ds.SpecificCharacterSet = "ISO_IR 192"
    ds.PatientName = f"{person}={identity.original_script.replace(' ', '^')}" if identity.original_script else person
    ds.PatientID, ds.OtherPatientIDs = identity.mrn, identity.other_id
    ds.PatientBirthDate, ds.PatientSex, ds.PatientAge = f"{identity.born():%Y%m%d}", identity.sex, f"{identity.age:03d}Y"
    ds.PatientAddress, ds.PatientTelephoneNumbers = f"{identity.street}, {identity.town}", identity.phone
    ds.PatientComments = f"{identity.given} {identity.family} asks to be called on {identity.phone}"
    ds.AdditionalPatientHistory = f"Known here since a visit of {identity.given} {identity.family} to {identity.physician}"
    # people, institution, device and study
    ds.ReferringPhysicianName, ds.OperatorsName = "^".join(reversed(identity.physician.split(" ", 1))), identity.operator
    ds.InstitutionName, ds.InstitutionAddress = identity.hospital, identity.hospital_address
    ds.StationName, ds.DeviceSerialNumber = identity.station, identity.serial
    ds.Manufacturer, ds.ManufacturerModelName = "SIEMENS", "Phantom"
    ds.StudyDescription = f"HEAD {identity.family.upper()}"
    ds.AccessionNumber, ds.StudyID = identity.accession, identity.accession[-5:]
    ds.StudyInstanceUID = patient.study_uid
    ds.SeriesInstanceUID = generate_uid(entropy_srcs=["neuralmedbench demo", patient.key, "series", str(number)])
    ds.SeriesNumber, ds.SeriesDescription, ds.ProtocolName = number, description, description
    # dates and times
    day = f"{identity.scanned:%Y%m%d}"
    ds.StudyDate = ds.SeriesDate = ds.AcquisitionDate = ds.ContentDate = day
    ds.StudyTime, ds.SeriesTime = f"{START:%H%M%S}.000000", _clock(number * 240)
    # identifiers in a nested sequence and in a private block
    request = Dataset()
    request.RequestedProcedureDescription = f"Head scan of {identity.given} {identity.family}, {identity.mrn}"
    request.ScheduledProcedureStepDescription = "Head scan"
    ds.RequestAttributesSequence = Sequence([request])
    block = ds.private_block(PRIVATE_GROUP, PRIVATE_CREATOR, create=True)
    block.add_new(0x01, "LO", f"{identity.family.upper()} {identity.mrn}")
    block.add_new(0x02, "DA", day)
    plant_header_values(ds, identity, number)
    return ds


def _planes(
    stack: SliceStack,
) -> tuple[npt.NDArray[np.int16], list[tuple[float, float, float]], tuple[float, float], float, list[int]]:
    """Return planes in slice order with their positions, pixel spacing, thickness and orientation."""
    x0, y0, z0 = stack.grid.origin
    dx, dy, dz = stack.grid.spacing
    depth, _, width = stack.voxels.shape
    if dz > dx:  # axial
        positions = [(x0, y0, z0 + dz * index) for index in range(depth)]
        return stack.voxels, positions, (dy, dx), dz, [1, 0, 0, 0, 1, 0]
    # rows from top to bottom, columns from front to back, slices from the patient's left to the right
    sagittal = np.ascontiguousarray(stack.voxels[::-1].transpose(2, 0, 1)[::-1])
    top = z0 + dz * (depth - 1)
    positions = [(x0 + dx * (width - 1 - index), y0, top) for index in range(width)]
    return sagittal, positions, (dz, dy), dx, [0, 1, 0, 0, 0, -1]


def describe_pixels(header: Dataset, shape: tuple[int, ...], *, bits: int) -> None:
    """Set the elements that describe how the pixels are stored."""
    header.SamplesPerPixel, header.PhotometricInterpretation = 1, "MONOCHROME2"
    header.Rows, header.Columns = shape
    header.BitsAllocated, header.BitsStored, header.HighBit, header.PixelRepresentation = 16, bits, bits - 1, 0


def number_slice(header: Dataset, patient: Patient, number: int, index: int, *, seconds: float) -> None:
    """Set number, UID and time of a slice (`seconds` after the start of the study)."""
    header.SOPInstanceUID = generate_uid(entropy_srcs=["neuralmedbench demo", patient.key, "image", str(number), str(index)])
    header.InstanceNumber, header.AcquisitionNumber = index + 1, 1
    header.AcquisitionTime = header.ContentTime = _clock(seconds)


def _clock(seconds: float) -> str:
    moment = dt.datetime.combine(dt.date(2000, 1, 1), START) + dt.timedelta(seconds=round(seconds, 2))
    return f"{moment:%H%M%S.%f}"


def read_encoded(path: Path) -> Dataset:
    """Read the first file of a series for `save`; its elements stay encoded."""
    return dcmread(path)


def save(header: Dataset, folder: Path, identity: PhantomIdentity, index: int, *, encoded: Dataset | None = None) -> Path:
    """Write one file; its name begins with the patient's name, as in exports.

    `encoded` is the first file of the series: the elements that all files share are not encoded again, which takes nearly all of the time.
    """
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = header.SOPClassUID
    meta.MediaStorageSOPInstanceUID = header.SOPInstanceUID
    meta.SourceApplicationEntityTitle = identity.station
    meta.PrivateInformationCreatorUID, meta.PrivateInformation = PRIVATE_UID, f"{identity.family} {identity.mrn} ".encode()
    written = header
    if encoded is not None:
        written = encoded
        for keyword in OF_SLICE:
            written[keyword] = header[keyword]
    written.file_meta, written.preamble = meta, f"{identity.family} {identity.mrn}".encode().ljust(128, b"\0")
    path = folder / f"{identity.family.upper().replace(' ', '')}_{index + 1:04d}.dcm"
    written.save_as(path, enforce_file_format=True)
    return path


SCREEN_MM = 10
"""Position of the slice on the screenshot, MNI z in mm."""


def write_screenshot(folder: Path, patient: Patient, number: int, ideal: Volume) -> SeriesFiles:
    """Write a secondary capture with the patient's name burned into its pixels; de-identification must reject it.

    Parameters
    ----------
    folder, patient, number
        As in :func:`write_keyed_series`.
    ideal : ndarray of float32, shape (Z, Y, X), LPS+
        Signal on the grid `HEAD`, of which the screenshot shows one slice.
    """
    from PIL import Image, ImageDraw, ImageFont

    # one slice, enlarged twofold, with the name in yellow
    plane = np.clip(ideal[SCREEN_MM - HEAD.low[0]] * 2, 0, 255).astype(np.uint8)
    picture = Image.fromarray(plane).resize((plane.shape[1] * 2, plane.shape[0] * 2)).convert("RGB")
    text = f"{patient.identity.family.upper()}, {patient.identity.given}  {patient.identity.mrn}"
    ImageDraw.Draw(picture).text((8, 8), text, fill=(255, 255, 0), font=ImageFont.load_default_imagefont())
    header = series_header(patient, number, "SCREENSHOT")
    header.SOPClassUID, header.Modality, header.ConversionType = SecondaryCaptureImageStorage, "OT", "WSD"
    header.ImageType, header.BurnedInAnnotation = ["DERIVED", "SECONDARY", "SCREEN SAVE"], "YES"
    header.SamplesPerPixel, header.PhotometricInterpretation, header.PlanarConfiguration = 3, "RGB", 0
    header.Rows, header.Columns = picture.height, picture.width
    header.BitsAllocated, header.BitsStored, header.HighBit, header.PixelRepresentation = 8, 8, 7, 0
    number_slice(header, patient, number, 0, seconds=number * 240)
    header.PixelData = picture.tobytes()
    paths = [save(header, folder, patient.identity, 0)]
    return SeriesFiles(paths, series_key(header, patient, "", paths, kept=False))


def write_localizer(folder: Path, patient: Patient, number: int, ideal: Volume) -> SeriesFiles:
    """Write a localizer: one sagittal, one coronal and one axial slice in one series.

    Parameters
    ----------
    folder, patient, number
        As in :func:`write_keyed_series`.
    ideal : ndarray of float32, shape (Z, Y, X), LPS+
        Signal on the grid `HEAD`.
    """
    z, y, x = (-low for low in HEAD.low)
    low_z, low_y, low_x = (float(low) for low in HEAD.low)
    top = low_z + HEAD.shape[0] - 1
    # sagittal, coronal and axial slice through the origin: pixels, ImageOrientationPatient, ImagePositionPatient
    views = (
        (ideal[::-1, :, x], [0, 1, 0, 0, 0, -1], [0.0, low_y, top]),
        (ideal[::-1, y, :], [1, 0, 0, 0, 0, -1], [low_x, 0.0, top]),
        (ideal[z], [1, 0, 0, 0, 1, 0], [low_x, low_y, 0.0]),
    )
    header = series_header(patient, number, "LOCALIZER")
    header.SOPClassUID, header.Modality, header.ImageType = MRImageStorage, "MR", ["ORIGINAL", "PRIMARY", "M", "NORM"]
    header.ScanningSequence, header.SequenceVariant, header.MRAcquisitionType, header.SequenceName = "GR", "SP", "2D", "*fl2d1"
    header.RepetitionTime, header.EchoTime, header.FlipAngle, header.MagneticFieldStrength = 8.6, 4.0, 20.0, 3.0
    header.PatientPosition, header.PixelSpacing, header.SliceThickness = "HFS", [1.0, 1.0], 7.0
    header.FrameOfReferenceUID = generate_uid(entropy_srcs=["neuralmedbench demo", patient.key, "frame"])
    paths = []
    for index, (view, orientation, position) in enumerate(views):
        header.ImageOrientationPatient, header.ImagePositionPatient = orientation, position
        plane = np.ascontiguousarray(np.rint(4 * view)).astype("<u2")
        describe_pixels(header, plane.shape, bits=12)
        number_slice(header, patient, number, index, seconds=number * 240 + index)
        header.PixelData = plane.tobytes()
        paths.append(save(header, folder, patient.identity, index))
    return SeriesFiles(paths, series_key(header, patient, "", paths, kept=False))
