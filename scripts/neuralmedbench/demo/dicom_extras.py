"""Files of a study that are no scan: a screenshot and a localizer. Both carry planted identifiers; ingest has to set them aside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pydicom.uid import MRImageStorage, SecondaryCaptureImageStorage, generate_uid

from neuralmedbench.demo.cohort import Patient
from neuralmedbench.demo.dicom import SeriesFiles, describe_pixels, number_slice, save, series_header, series_key
from neuralmedbench.demo.grid import HEAD, Volume

SCREEN_MM = 10
"""Height of the slice on the screenshot, MNI z in mm."""


def write_screenshot(folder: Path, patient: Patient, number: int, ideal: Volume) -> SeriesFiles:
    """Write a secondary capture with the patient's name burned into its pixels: de-identification must not let it pass.

    Parameters
    ----------
    folder, patient, number
        As in :func:`write_series`.
    ideal : ndarray of float32, shape (Z, Y, X), LPS+
        Signal on the grid `HEAD`; the screen showed one slice of it.
    """
    from PIL import Image, ImageDraw, ImageFont

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
        As in :func:`write_series`.
    ideal : ndarray of float32, shape (Z, Y, X), LPS+
        Signal on the grid `HEAD`.
    """
    z, y, x = (-low for low in HEAD.low)
    low_z, low_y, low_x = (float(low) for low in HEAD.low)
    top = low_z + HEAD.shape[0] - 1
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
