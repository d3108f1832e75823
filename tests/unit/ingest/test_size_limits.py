"""Files that unpack to far more than they hold: sizes are judged before anything is unpacked, and memory stays bounded."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import nibabel
import numpy as np
import pydicom
import pytest

from fixtures.deid import head_voxels, write_config, write_index, write_nifti_file
from fixtures.raw import ball, compressed, jpeg2000, make_slice, save, write_series
from neuralmedbench.errors import DataError
from neuralmedbench.files import dcm2niix, external_files, nifti
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.external_files import read_given
from neuralmedbench.files.nifti import Volume, nifti_image, read_nifti, write_nifti
from neuralmedbench.files.plain_pictures import open_picture
from neuralmedbench.ingest.listing import find_cases
from neuralmedbench.ingest.pixels import check_size
from neuralmedbench.ingest.raw_files import RawScan, read_raw_file
from neuralmedbench.records.case import CaseRecord

ROOT = Path(__file__).parents[3]
ALLOWED_KIB = 2 * 10**9 // 1024
MOST_MIB = 600
"""Memory of a process that refuses a bomb: that of its imports, and some blocks."""


def nifti_head(shape: tuple[int, ...], kind: str = "u1") -> bytes:
    """Return the header of a NIfTI file with an orientation, up to the voxels."""
    header = nibabel.Nifti1Header()
    header.set_data_dtype(np.dtype(kind))
    header.set_data_shape(shape)
    header.set_sform(np.eye(4), code=1)
    header["magic"], header["vox_offset"] = b"n+1", 352
    return header.binaryblock + bytes(4)


def nifti_bomb(path: Path) -> Path:
    """Write 4 GB of zeros as a NIfTI file of 4 MB: one compressed block, repeated."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(nifti_head((2048, 1024, 2048))) + 256 * gzip.compress(bytes(2**24)))
    return path


@pytest.mark.parametrize("cut", [0, 1])
def test_the_checksum_of_a_compressed_file_is_verified(tmp_path: Path, cut: int) -> None:
    """Voxels are read up to the last one that the header names: what stands behind them, and a block of one voxel, are checked too."""
    path = tmp_path / "scan.nii.gz"
    whole = gzip.compress(nifti_head((2, 2, 2)) + bytes(range(8 - cut)))
    path.write_bytes(whole)
    if not cut:
        assert read_nifti(path).voxels.ravel("F").tolist() == list(range(8))
        path.write_bytes(whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:])
    with pytest.raises(DataError, match="damaged NIfTI file"):
        read_nifti(path)


def test_a_missing_last_voxel_is_not_filled_from_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nifti, "BLOCK", 6)
    path = tmp_path / "scan.nii"
    path.write_bytes(nifti_head((2, 2, 2)) + bytes(range(7)))
    with pytest.raises(DataError, match="damaged NIfTI file"):
        read_nifti(path)


def deflated_bomb(path: Path, mib: int = 1500) -> Path:
    """Write zeros as the pixels of a deflated DICOM file of a thousandth of their size."""
    save(make_slice(ball(1), (0.0, 0.0, 0.0), 1), path)
    compressed([path], "deflated")
    meta = path.read_bytes()
    start = 132 + 12 + struct.unpack("<I", meta[140:144])[0]
    body = zlib.decompress(meta[start:], -zlib.MAX_WBITS)
    body = body[: body.rindex(struct.pack("<HH", 0x7FE0, 0x0010))] + struct.pack("<HH2sHI", 0x7FE0, 0x0010, b"OW", 0, mib * 2**20)

    def flushed(content: bytes) -> bytes:
        packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
        return packer.compress(content) + packer.flush(zlib.Z_FULL_FLUSH)

    end = zlib.compressobj(wbits=-zlib.MAX_WBITS).flush()
    path.write_bytes(meta[:start] + flushed(body) + mib * flushed(bytes(2**20)) + end)
    return path


def exaggerating(path: Path, syntax: str, **tags: int) -> Path:
    """Write a compressed image whose header (`Rows`, `Columns`), or whose codestream (JPEG 2000 without tags), claims more than there is."""
    save(make_slice(ball(1)[0], (0.0, 0.0, 0.0), 1, 7), path)
    compressed([path], syntax)
    image = pydicom.dcmread(path)
    for keyword, value in tags.items():
        setattr(image, keyword, value)
    if not tags:
        stream = bytearray(jpeg2000(ball(1)[0]))
        for place in (8, 12, 24, 28):  # size of the image and of its tile
            stream[place : place + 4] = struct.pack(">I", 60_000)
        image.PixelData = pydicom.encaps.encapsulate([bytes(stream)])
        image["PixelData"].is_undefined_length = True
    pydicom.dcmwrite(path, image)
    return path


MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[2:], check=False).returncode
open(sys.argv[1], "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
raise SystemExit(code)
"""
"""Linux counts what a process had before it started a program to that program's peak, so a small process starts it and measures, not the tests'."""


def peak_mib(command: list[str], folder: Path) -> tuple[float, str]:
    """Run a command that may have 2 GB of memory; return the most that it used, and its output."""
    places = {"PYTHONPATH": str(ROOT / "scripts"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    peak = folder / "peak.txt"
    bounded = ["sh", "-c", f'ulimit -v {ALLOWED_KIB}; exec "$@"', "sh", sys.executable, *command]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(peak), *bounded],
        cwd=folder, env=os.environ | places, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return int(peak.read_text()) / 1024, done.stdout


def ingested(folder: Path, files: list[Path]) -> tuple[float, CaseRecord]:
    """Ingest some files as one case in a process; return its memory in MiB and the record."""
    index, out = write_index(folder, files), folder / "ingested" / "case.json"
    command = [str(ROOT / "scripts" / "ingest_case.py"), "--benchmark", "mine", "--case", "c0ffee", "--files", str(index)]
    memory, _ = peak_mib([*command, "--out", str(out)], folder)
    return memory, read_case(out)


def test_bombs_stay_below_600_mib_when_they_are_listed_and_the_scan_beside_them_comes_in(tmp_path):
    source = tmp_path / "source"
    nifti_bomb(source / "zeros" / "zeros_T1w.nii.gz")
    deflated_bomb(source / "deflated" / "1.dcm")
    write_nifti_file(source / "head" / "head_T1w.nii.gz", head_voxels())
    config = write_config(tmp_path / "config", source)
    command = ["-m", "neuralmedbench", "cases", "list", "--benchmark", "mine", "--config", str(config), "--data", str(tmp_path / "data")]
    memory, text = peak_mib(command, tmp_path)
    assert memory < MOST_MIB
    assert any(line.startswith("2 cases, 2 patients") for line in text.splitlines())  # warnings go to another stream
    assert "more than 700 MB, when inflated, in one DICOM file; at most 700 MB are read" in text


def test_bombs_stay_below_600_mib_when_they_are_ingested_and_each_is_refused_by_its_number(tmp_path):
    bombs = [
        nifti_bomb(tmp_path / "raw" / "zeros_T1w.nii.gz"),
        deflated_bomb(tmp_path / "raw" / "2.dcm"),
        exaggerating(tmp_path / "raw" / "3.dcm", "rle", Rows=65_535, Columns=65_535),
    ]
    memory, case = ingested(tmp_path, [*bombs, write_nifti_file(tmp_path / "raw" / "head_T1w.nii.gz", head_voxels())])
    assert memory < MOST_MIB
    assert [fate.fate for fate in case.fates] == ["set_aside"] * 3 + ["used"]
    zeros, deflated, claimed = (fate.reason for fate in case.fates[:3])
    assert "file 1 of the case has 2048 x 1024 x 2048 voxels of 1 bytes; at most 300 million are read" in zeros
    assert "at most 700 MB are read" in deflated
    assert "4,295 million pixels in one series (1 files, the largest is file 3 of the case); at most 300 million" in claimed


def test_a_codestream_that_claims_more_pixels_than_its_header_is_not_unpacked_to_them(tmp_path):
    memory, case = ingested(tmp_path, [exaggerating(tmp_path / "raw" / "1.dcm", "jpeg2000")])
    assert memory < MOST_MIB
    assert not case.series


def test_the_converter_has_bounded_memory(tmp_path, monkeypatch):
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\nfor last; do folder=$before before=$last; done\nulimit -v > "$folder/image.nii"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(dcm2niix, "find_dcm2niix", lambda: str(program))
    (result,) = dcm2niix.convert(tmp_path, tmp_path / "out")
    assert int(result.image.read_text(encoding="ascii")) == dcm2niix.MAX_MEMORY_KIB


def test_a_head_of_0_4_mm_is_read(tmp_path):
    shape = (448, 560, 560)
    with (tmp_path / "head_T1w.nii").open("wb") as file:
        file.write(nifti_head(shape, "i2"))
        file.truncate(352 + 2 * int(np.prod(shape)))  # sparse: takes no room
    assert read_nifti(tmp_path / "head_T1w.nii").voxels.shape == shape


def test_520_frames_of_256_pixels_are_converted_and_those_of_810_are_not():
    def frames(count: int, side: int) -> list[RawScan]:
        return [
            RawScan(1, Path("1.dcm"), make_slice(np.zeros((2, 2)), (0, 0, 0), 1, Rows=side, Columns=side), frame=n) for n in range(count)
        ]

    check_size(frames(520, 256))
    with pytest.raises(DataError, match="341 million pixels in one series"):
        check_size(frames(520, 810))


def test_a_file_of_any_size_that_is_no_scan_is_not_read_into_memory(tmp_path):
    for name, start in (("film.dcm", bytes(128) + b"DICM"), ("archive.zip", b"PK\x03\x04"), ("sidecar.json", b"{")):
        with (tmp_path / name).open("wb") as file:
            file.write(start)
            file.truncate(2 * 10**9)
    film, archive, sidecar = (read_raw_file(1, tmp_path / name).why_not for name in ("film.dcm", "archive.zip", "sidecar.json"))
    assert film == "2,000 MB in one DICOM file; at most 700 MB are read: export it as one file per image and list the cases again"
    assert archive.startswith("an archive")
    assert sidecar.startswith("a text of more than 20 MB")


def test_a_note_of_more_than_20_mb_is_left_out(tmp_path):
    write_series(tmp_path)
    with (tmp_path / "export.txt").open("wb") as file:
        file.write(b"dump")
        file.truncate(21 * 10**6)
    assert list(find_cases(tmp_path).left_out.values()) == [
        "a text of more than 20 MB; keep what belongs to the case and list the cases again"
    ]


def test_a_sample_of_a_packed_log_has_a_largest_size(tmp_path, monkeypatch):
    monkeypatch.setattr(external_files, "MAX_CELL", 10_000)
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1.json", b" " * 20_000)
    with pytest.raises(DataError, match="sample 1: unpacks to more than"):
        read_given(tmp_path / "log.eval", "inspect")


@pytest.mark.parametrize("kind", ["u1", "i2", ">i2", "u2", "i4", "f4", ">f4", "f8"])
@pytest.mark.parametrize("slope", [1.0, 0.37])
def test_voxels_that_are_read_in_blocks_are_those_of_the_whole_file(tmp_path, monkeypatch, kind, slope):
    monkeypatch.setattr("neuralmedbench.files.nifti.BLOCK", 1000)
    voxels = np.random.default_rng(1).integers(0, 120, (13, 17, 19)).astype(kind)
    header = nibabel.Nifti1Header(endianness=">" if kind.startswith(">") else "<")
    header.set_data_dtype(voxels.dtype)
    header.set_data_shape(voxels.shape)
    header.set_sform(np.eye(4), code=1)
    header["magic"], header["vox_offset"], header["scl_slope"], header["scl_inter"] = b"n+1", 352, slope, 0 if slope == 1 else -3
    (tmp_path / "scan.nii").write_bytes(header.binaryblock + bytes(4) + voxels.tobytes("F"))
    volume = read_nifti(tmp_path / "scan.nii")
    expected = np.asanyarray(nibabel.load(tmp_path / "scan.nii").dataobj)
    assert np.array_equal(volume.voxels, expected.astype(volume.voxels.dtype))
    assert volume.voxels.dtype == (np.float32 if expected.dtype.kind == "f" else expected.dtype.newbyteorder("="))


def test_a_volume_that_is_written_in_parts_has_the_bytes_of_the_whole_file(tmp_path):
    volume = Volume(np.random.default_rng(1).integers(0, 900, (70, 80, 90)).astype(np.int16), np.diag([1.0, 1.0, 2.0, 1.0]))
    write_nifti(tmp_path / "scan.nii.gz", volume)
    image = nifti_image(volume)
    for set_form in (image.set_qform, image.set_sform):
        set_form(volume.affine, code=1)
    image.header.set_xyzt_units("mm")
    assert (tmp_path / "scan.nii.gz").read_bytes() == gzip.compress(image.to_bytes(), compresslevel=1, mtime=0)


@pytest.mark.parametrize("kind", [np.uint16, np.float32])
def test_greys_that_are_scaled_row_by_row_are_those_of_the_whole_picture(tmp_path, kind):
    from PIL import Image

    values = np.random.default_rng(1).integers(0, 60_000, (700, 30)).astype(kind)
    Image.fromarray(values).save(tmp_path / "grey.tif")
    whole = values.astype(np.float64) - values.min()
    assert np.array_equal(
        np.asarray(open_picture((tmp_path / "grey.tif").read_bytes())), np.rint(whole * (255 / whole.max())).astype(np.uint8)
    )
