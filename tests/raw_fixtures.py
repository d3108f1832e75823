"""Raw scans as scanners and archives write them: plain and multi-frame DICOM, compressed, tilted, in odd places."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deid_fixtures import write_index
from neuralmedbench.files.cases import read_case
from neuralmedbench.records.case import CaseRecord

AXIAL, SAGITTAL, CORONAL = (1, 0, 0, 0, 1, 0), (0, 1, 0, 0, 0, -1), (1, 0, 0, 0, 0, -1)
MR, ENHANCED_MR = "1.2.840.10008.5.1.4.1.1.4", "1.2.840.10008.5.1.4.1.1.4.1"
CT, ENHANCED_CT = "1.2.840.10008.5.1.4.1.1.2", "1.2.840.10008.5.1.4.1.1.2.1"
PIXEL_MM = 4.0


@dataclass(frozen=True)
class Stack:
    """How the slices of a made-up series lie.

    Attributes
    ----------
    slices : int
        How many.
    spacing_mm : float
        Distance of their positions along the normal.
    orientation : tuple of float
        ImageOrientationPatient.
    shear_mm : float
        What each slice is moved along its columns against the one before: the gantry's tilt.
    """

    slices: int = 8
    spacing_mm: float = 5.0
    orientation: tuple[float, ...] = AXIAL
    shear_mm: float = 0.0

    def positions(self) -> list[list[float]]:
        """ImagePositionPatient of every slice."""
        row, column = np.array(self.orientation[:3]), np.array(self.orientation[3:])
        normal = np.cross(row, column)
        start = -60 * row - 60 * column
        step = self.spacing_mm * normal + self.shear_mm * column
        return [[float(place) for place in start + step * number] for number in range(self.slices)]


def ball(slices: int, rows: int = 32, columns: int = 28) -> npt.NDArray[np.uint16]:
    """A ball with a mark on one side and different values in every slice, shape (slices, rows, columns)."""
    z, y, x = np.meshgrid(*(np.linspace(-1, 1, side) for side in (slices, rows, columns)), indexing="ij")
    voxels = np.where(x**2 + y**2 + z**2 < 0.9, 400 + 50 * x + 30 * y + 20 * z, 0)
    voxels[:, rows // 2, 3:6] = 900
    return np.round(voxels + np.arange(slices)[:, None, None]).astype(np.uint16)


def make_slice(pixels: npt.NDArray[Any], position: Sequence[float], number: int, series: int = 1, **tags: Any) -> Any:
    """Make one plain MR or CT image in memory."""
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, generate_uid

    image = Dataset()
    image.SpecificCharacterSet = "ISO_IR 192"
    image.SOPClassUID, image.Modality, image.Manufacturer = MR, "MR", "SIEMENS"
    image.PatientID, image.PatientName, image.StudyDate = "48213371", "Vandermeer^Johanna", "20310314"
    image.StudyInstanceUID = generate_uid(entropy_srcs=["study", str(tags.get("PatientID", ""))])
    image.SeriesInstanceUID = generate_uid(entropy_srcs=["series", str(series), str(tags.get("PatientID", ""))])
    image.FrameOfReferenceUID = generate_uid(entropy_srcs=["frame"])
    image.ImageType, image.SeriesDescription = ["ORIGINAL", "PRIMARY", "M", "ND"], "t1_se_tra"
    image.RepetitionTime, image.EchoTime, image.MRAcquisitionType, image.ScanningSequence = 500, 9, "2D", "SE"
    image.SeriesNumber, image.InstanceNumber, image.AcquisitionTime = series, number, f"0912{number % 60:02d}"
    image.ImagePositionPatient, image.ImageOrientationPatient = list(position), list(AXIAL)
    image.SliceThickness, image.PixelSpacing = 5.0, [PIXEL_MM, PIXEL_MM]
    image.Rows, image.Columns = pixels.shape[-2:]
    image.SamplesPerPixel, image.PhotometricInterpretation = 1, "MONOCHROME2"
    image.BitsAllocated, image.BitsStored, image.HighBit, image.PixelRepresentation = 16, 16, 15, 0
    image.PixelData = np.ascontiguousarray(pixels).astype("<u2").tobytes()
    for keyword, value in tags.items():
        setattr(image, keyword, value)
    if "SeriesInstanceUID" not in tags and "StudyInstanceUID" in tags:
        image.SeriesInstanceUID = generate_uid(entropy_srcs=["series", str(series), tags["StudyInstanceUID"]])
    if "SOPInstanceUID" not in tags:
        image.SOPInstanceUID = generate_uid(entropy_srcs=[image.SeriesInstanceUID, str(number)])
    image.file_meta = FileMetaDataset()
    image.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    image.file_meta.MediaStorageSOPClassUID = image.SOPClassUID
    image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
    return image


def save(image: Any, path: Path) -> Path:
    """Write a dataset as a DICOM file."""
    import pydicom

    path.parent.mkdir(parents=True, exist_ok=True)
    pydicom.dcmwrite(path, image, enforce_file_format=True)
    return path


def write_series(folder: Path, stack: Stack | None = None, series: int = 1, suffix: str = ".dcm", **tags: Any) -> list[Path]:
    """Write a series of plain images; gives their paths from the first position to the last."""
    stack = stack or Stack()
    voxels = tags.pop("voxels", ball(stack.slices))
    first = tags.pop("first", 1)
    tags.setdefault("ImageOrientationPatient", list(stack.orientation))
    tags.setdefault("SliceThickness", stack.spacing_mm)
    return [
        save(make_slice(voxels[place], position, first + place, series, **tags), folder / f"{series:02d}-{first + place:03d}{suffix}")
        for place, position in enumerate(stack.positions())
    ]


def ct_tags() -> dict[str, Any]:
    """Tags that make a plain CT of a series."""
    return {
        "SOPClassUID": CT, "Modality": "CT", "SeriesDescription": "Head 5.0 H31s", "ImageType": ["ORIGINAL", "PRIMARY", "AXIAL"],
        "RescaleIntercept": -1024, "RescaleSlope": 1, "RepetitionTime": None, "EchoTime": None, "KVP": 120,
    }  # fmt: skip


def write_enhanced(path: Path, stack: Stack | None = None, b_values: Sequence[float] = (), modality: str = "MR", **tags: Any) -> Path:
    """Write one multi-frame object; geometry, timing and b-values stand in its functional groups alone, volume after volume."""
    stack = stack or Stack()
    volume = ball(stack.slices)
    volumes = [np.round(volume * np.exp(-b / 1500)).astype(np.uint16) for b in b_values] or [volume]
    image = make_slice(volumes[0][0], (0, 0, 0), 1)
    for keyword in ("ImagePositionPatient", "ImageOrientationPatient", "SliceThickness", "PixelSpacing", "RepetitionTime", "EchoTime",
                    "ScanningSequence"):  # fmt: skip
        delattr(image, keyword)
    image.SOPClassUID = image.file_meta.MediaStorageSOPClassUID = ENHANCED_CT if modality == "CT" else ENHANCED_MR
    image.Modality, image.NumberOfFrames = modality, stack.slices * len(volumes)
    image.ImageType = ["ORIGINAL", "PRIMARY", "VOLUME" if modality == "CT" else "DIFFUSION" if b_values else "M", "NONE"]
    image.SharedFunctionalGroupsSequence = [_shared(stack, modality)]
    image.PerFrameFunctionalGroupsSequence = [
        _frame(position, place, time, b)
        for time, b in enumerate(b_values or [None], start=1)
        for place, position in enumerate(stack.positions(), start=1)
    ]
    image.DimensionIndexSequence = [
        _item(DimensionIndexPointer=0x00209057, FunctionalGroupPointer=0x00209111),
        _item(DimensionIndexPointer=0x00209128, FunctionalGroupPointer=0x00209111),
    ]
    image.PixelData = np.concatenate(volumes).astype("<u2").tobytes()
    for keyword, value in tags.items():
        setattr(image, keyword, value)
    return save(image, path)


def _item(**tags: Any) -> Any:
    from pydicom.dataset import Dataset

    item = Dataset()
    for keyword, value in tags.items():
        setattr(item, keyword, value)
    return item


def _shared(stack: Stack, modality: str) -> Any:
    slope = -1024 if modality == "CT" else 0
    shared = _item(
        PixelMeasuresSequence=[_item(SliceThickness=stack.spacing_mm, PixelSpacing=[PIXEL_MM, PIXEL_MM])],
        PlaneOrientationSequence=[_item(ImageOrientationPatient=list(stack.orientation))],
        PixelValueTransformationSequence=[_item(RescaleIntercept=slope, RescaleSlope=1, RescaleType="HU" if modality == "CT" else "US")],
    )
    if modality == "MR":
        shared.MRTimingAndRelatedParametersSequence = [_item(RepetitionTime=500.0, FlipAngle=90.0)]
        shared.MREchoSequence = [_item(EffectiveEchoTime=9.0)]
    return shared


def _frame(position: Sequence[float], place: int, time: int, b_value: float | None) -> Any:
    frame = _item(
        PlanePositionSequence=[_item(ImagePositionPatient=list(position))],
        FrameContentSequence=[
            _item(StackID="1", InStackPositionNumber=place, TemporalPositionIndex=time, DimensionIndexValues=[place, time])
        ],
    )
    if b_value is not None:
        frame.MRDiffusionSequence = [_item(DiffusionBValue=b_value, DiffusionDirectionality="ISOTROPIC" if b_value else "NONE")]
    return frame


def write_mosaic(path: Path, tiles: int = 9, b_value: int = 1000, *, csa: bool = True, **tags: Any) -> Path:
    """Write one Siemens mosaic: tiles in rows, the position that of a page centred on the first slice, tiles told by the CSA header."""
    volume = np.round(ball(tiles, 24, 24) * np.exp(-b_value / 1500)).astype(np.uint16)
    side = int(np.ceil(np.sqrt(tiles)))
    page = np.zeros((24 * side, 24 * side), np.uint16)
    for number, tile in enumerate(volume):
        row, column = divmod(number, side)
        page[24 * row : 24 * (row + 1), 24 * column : 24 * (column + 1)] = tile
    corner = -46.0 - 24 * (side - 1) / 2 * PIXEL_MM
    words = {
        "ImageType": ["ORIGINAL", "PRIMARY", "DIFFUSION", "NONE", "MOSAIC"],
        "SeriesDescription": "ep2d_diff",
        "SpacingBetweenSlices": 5.0,
    }
    image = make_slice(page, (corner, corner, 10.0), int(tags.get("InstanceNumber", 1)), **{**words, **tags})
    if csa:
        block = image.private_block(0x0029, "SIEMENS CSA HEADER", create=True)
        gradient = ["1.0", "0.0", "0.0"] if b_value else []
        block.add_new(0x08, "CS", "IMAGE NUM 4")
        block.add_new(0x10, "OB", csa_header({
            "NumberOfImagesInMosaic": [str(tiles)], "SliceNormalVector": ["0.0", "0.0", "1.0"], "B_value": [str(b_value)],
            "DiffusionGradientDirection": gradient,
        }))  # fmt: skip
    return save(image, path)


def csa_header(fields: dict[str, list[str]]) -> bytes:
    """Write Siemens' CSA2 header: per field its name, and its values as text, each with four numbers before it."""
    content = b"SV10\x04\x03\x02\x01" + len(fields).to_bytes(4, "little") + (77).to_bytes(4, "little")
    for name, values in fields.items():
        texts = [f"{value}\0".encode() for value in values] + [b""] * (6 - len(values))
        content += name.encode().ljust(64, b"\0") + b"".join(
            (
                len(values).to_bytes(4, "little"),
                b"FD\0\0",
                (4).to_bytes(4, "little"),
                len(texts).to_bytes(4, "little"),
                (77).to_bytes(4, "little"),
            )
        )
        for text in texts:
            content += b"".join(number.to_bytes(4, "little") for number in (len(text), len(text), 77, len(text)))
            content += text.ljust(-(-len(text) // 4) * 4, b"\0")
    return content


def compressed(paths: Sequence[Path], syntax: str) -> None:
    """Compress DICOM files in place: `rle`, `jpeg2000`, `deflated`, `bigendian` or `jpeglossless`."""
    import pydicom
    from pydicom import uid
    from pydicom.encaps import encapsulate

    for path in paths:
        image = pydicom.dcmread(path)
        frames = image.pixel_array.reshape(-1, image.Rows, image.Columns)
        if syntax == "rle":
            image.compress(uid.RLELossless, generate_instance_uid=False)
        elif syntax in {"jpeg2000", "jpeglossless"}:
            encode = jpeg2000 if syntax == "jpeg2000" else jpeg_lossless
            image.PixelData = encapsulate([encode(frame) for frame in frames])
            image["PixelData"].is_undefined_length = True
            image.file_meta.TransferSyntaxUID = uid.JPEG2000Lossless if syntax == "jpeg2000" else uid.JPEGLosslessSV1
        elif syntax == "deflated":
            image.file_meta.TransferSyntaxUID = uid.DeflatedExplicitVRLittleEndian
        else:
            image["PixelData"].value = frames.astype(">u2").tobytes()
            image.file_meta.TransferSyntaxUID = uid.ExplicitVRBigEndian
            image = pydicom.Dataset(image)  # written anew in the other byte order
        _save_as(image, path, syntax)


def _save_as(image: Any, path: Path, syntax: str) -> None:
    import pydicom

    if syntax != "bigendian":
        pydicom.dcmwrite(path, image, enforce_file_format=True)
        return
    meta = pydicom.dcmread(path, stop_before_pixels=True).file_meta
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRBigEndian
    image.file_meta = meta
    pydicom.dcmwrite(path, image, enforce_file_format=True, implicit_vr=False, little_endian=False)


def jpeg2000(frame: npt.NDArray[Any]) -> bytes:
    """Compress a 16-bit frame as a JPEG 2000 codestream without loss."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(frame.astype(np.uint16)).save(stream, format="JPEG2000", no_jp2=True, irreversible=False)
    return stream.getvalue()


def jpeg_lossless(frame: npt.NDArray[Any]) -> bytes:
    """Compress a 16-bit frame as JPEG lossless, process 14, selection value 1 (ITU-T T.81, annex H), with a plain Huffman table."""
    rows, columns = frame.shape
    values = frame.astype(np.int64)
    predicted = np.zeros_like(values)
    predicted[0, 0] = 1 << 15
    predicted[0, 1:] = values[0, :-1]
    predicted[1:, 0] = values[:-1, 0]
    predicted[1:, 1:] = values[1:, :-1]
    bits: list[str] = []
    for difference in ((values - predicted + (1 << 15)) % (1 << 16) - (1 << 15)).ravel().tolist():
        size = int(abs(difference)).bit_length()
        # code of category `size` is five bits long and holds its number
        bits.append(f"{size:05b}")
        if 0 < size < 16:
            bits.append(f"{difference if difference > 0 else difference + (1 << size) - 1:0{size}b}")
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    scan = int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\x00")
    table = bytes([0, 0, 0, 0, 17, *[0] * 11, *range(17)])
    return b"".join((
        b"\xff\xd8",
        b"\xff\xc3" + (11).to_bytes(2, "big") + bytes([16]) + rows.to_bytes(2, "big") + columns.to_bytes(2, "big") + bytes([1, 1, 0x11, 0]),
        b"\xff\xc4" + (3 + len(table)).to_bytes(2, "big") + b"\x00" + table,
        b"\xff\xda" + (8).to_bytes(2, "big") + bytes([1, 1, 0x00, 1, 0, 0]),
        scan,
        b"\xff\xd9",
    ))  # fmt: skip


def ingest(folder: Path, files: Sequence[Path], overrides: str = "") -> CaseRecord:
    """Ingest some files as one case, as the rule does; gives the record."""
    import ingest_case

    out = folder / "ingested" / "case.json"
    index = write_index(folder, list(files))
    arguments = ["--benchmark", "mine", "--case", "c0ffee", "--files", str(index), "--overrides", overrides, "--out", str(out)]
    assert ingest_case.main(arguments) == 0
    case = read_case(out)
    assert [fate.file for fate in case.fates] == list(range(1, len(files) + 1)), "every file has its fate"
    return case


def clean_and_convert(folder: Path, case: CaseRecord, series_id: str) -> Any:
    """Clean the headers of an ingested DICOM series and convert it, as the next stage does; gives the volume."""
    from neuralmedbench.deid.headers.rules import HeaderRules
    from neuralmedbench.deid.headers.series import clean_series
    from neuralmedbench.deid.values import DateShift
    from neuralmedbench.files.dcm2niix import convert
    from neuralmedbench.files.nifti import read_nifti

    series = next(one for one in case.series if one.series_id == series_id)
    rules = HeaderRules(key=b"a key of the tests, long enough", patient_id="beef", dates=DateShift(days=-40))
    clean_series(folder / "ingested" / series.path, folder / "clean", rules)
    volumes = [read_nifti(result.image) for result in convert(folder / "clean", folder / "converted")]
    return max(volumes, key=lambda volume: volume.voxels.size)
