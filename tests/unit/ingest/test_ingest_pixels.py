"""Pixels of raw files: compressed, truncated, blank, sent twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fixtures.raw import Stack, ball, clean_and_convert, compressed, ct_tags, ingest, write_enhanced, write_series
from neuralmedbench.records.case import CaseRecord, State


def reasons(case: CaseRecord) -> list[str]:
    """Return the reasons of excluded files."""
    return [fate.reason for fate in case.fates if fate.fate == "set_aside"]


@pytest.mark.parametrize("syntax", ["rle", "jpeg2000", "jpeglossless", "deflated", "bigendian"])
def test_a_compressed_series_keeps_every_pixel(tmp_path: Path, syntax: str) -> None:
    files = write_series(tmp_path / "raw")
    compressed(files, syntax)
    case = ingest(tmp_path, files)
    assert case.state is State.OK, case.reason
    volume = clean_and_convert(tmp_path, case, "series-01")
    assert np.array_equal(volume.voxels[:, ::-1, :].transpose(2, 1, 0), ball(8))


def packaged(name: str) -> Path:
    """Return a file of pydicom's test data."""
    import pydicom

    return Path(pydicom.__file__).parent / "data" / "test_files" / name


@pytest.mark.parametrize(
    "name", ["MR_small_jpeg_ls_lossless.dcm", "MR_small_jp2klossless.dcm", "MR_small_RLE.dcm", "MR_small_bigendian.dcm"]
)
def test_files_of_other_encoders_are_converted_like_the_plain_one(tmp_path: Path, name: str) -> None:
    """One slice is not a series: three copies at other positions are."""
    import pydicom

    volumes = []
    for place, source in enumerate((name, "MR_small.dcm")):
        paths = []
        for number in range(3):
            image = pydicom.dcmread(packaged(source))
            image.ImagePositionPatient = [-60, -60, 5.0 * number]
            image.SOPInstanceUID = image.file_meta.MediaStorageSOPInstanceUID = f"1.2.3.{place}.{number}"
            image.SeriesDescription, image.InstanceNumber = "t1", number + 1
            paths.append(tmp_path / f"raw{place}" / f"{number}.dcm")
            paths[-1].parent.mkdir(exist_ok=True)
            pydicom.dcmwrite(paths[-1], image)
        case = ingest(tmp_path / str(place), paths)
        assert case.state is State.OK, case.reason
        volumes.append(clean_and_convert(tmp_path / str(place), case, "series-01"))
    assert np.array_equal(volumes[0].voxels, volumes[1].voxels)


def test_twelve_bit_jpeg_is_refused_and_eight_bit_jpeg_is_read_and_flagged(tmp_path: Path) -> None:
    """The converter does not read JPEG Extended, and the decoder here supports it with 8 bits only."""
    import io

    import pydicom
    from PIL import Image
    from pydicom.encaps import encapsulate

    twelve = pydicom.dcmread(packaged("JPGExtended.dcm"))
    hard = write_series(tmp_path / "raw" / "1", Stack(slices=3), Rows=twelve.Rows, Columns=twelve.Columns, BitsStored=12, HighBit=11)
    soft = write_series(tmp_path / "raw" / "2", Stack(slices=3), series=2, voxels=ball(3) + 1)
    for path in (*hard, *soft):
        image = pydicom.dcmread(path)
        grey = io.BytesIO()
        Image.fromarray((image.pixel_array if path in soft else np.zeros((8, 8))).astype(np.uint8)).save(grey, "JPEG", quality=95)
        image.PixelData = twelve.PixelData if path in hard else encapsulate([grey.getvalue()])
        image["PixelData"].is_undefined_length = True
        image.file_meta.TransferSyntaxUID = pydicom.uid.JPEGExtended12Bit if path in hard else pydicom.uid.JPEGBaseline8Bit
        if path in soft:
            image.BitsAllocated, image.BitsStored, image.HighBit, image.LossyImageCompression = 8, 8, 7, "01"
        pydicom.dcmwrite(path, image)
    case = ingest(tmp_path, hard + soft)
    assert [(series.series_id, series.flags) for series in case.series] == [("series-02", ("lossy_compression",))]
    assert clean_and_convert(tmp_path, case, "series-02").voxels.shape == (28, 32, 3)
    (reason,) = set(reasons(case))
    assert reason.startswith("series-01: compressed in a way that nothing here reads (JPEG Extended (Process 2 and 4));")


def test_a_compression_that_nothing_reads_is_a_reason_and_the_rest_goes_on(tmp_path: Path) -> None:
    import pydicom

    files = write_series(tmp_path / "raw" / "1")
    undecodable = write_series(tmp_path / "raw" / "2", series=2, voxels=ball(8) + 5)
    compressed(undecodable, "jpeg2000")
    for path in undecodable:
        image = pydicom.dcmread(path)
        image.file_meta.TransferSyntaxUID = pydicom.uid.HTJ2KLossless
        pydicom.dcmwrite(path, image)
    case = ingest(tmp_path, files + undecodable)
    assert [series.series_id for series in case.series] == ["series-01"]
    (reason,) = set(reasons(case))
    assert reason.startswith("series-02: compressed in a way that nothing here reads (High-Throughput JPEG 2000")
    assert reason.endswith("store it without compression and list the cases again")


@pytest.mark.parametrize("syntax", ["1.2.840.113619.5.2", "1.2.3.4"])
def test_a_transfer_syntax_that_is_in_no_list_is_a_reason_and_the_rest_goes_on(tmp_path: Path, syntax: str) -> None:
    """The first is one of GE's own; of such a syntax pydicom cannot say whether it compresses."""
    files = write_series(tmp_path / "raw" / "1")
    unknown = write_series(tmp_path / "raw" / "2", series=2, voxels=ball(8) + 5)
    for path in unknown:
        content = path.read_bytes()
        known = b"1.2.840.10008.1.2.1\0"
        assert content.count(known) == 1
        path.write_bytes(content.replace(known, syntax.encode().ljust(len(known), b"\0")))
    case = ingest(tmp_path, files + unknown)
    assert [series.series_id for series in case.series] == ["series-01"]
    (reason,) = set(reasons(case))
    assert reason.startswith("series-02: compressed in a way that nothing here reads (an unknown way);")


def cut_off(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: -len(content) // 5])


@pytest.mark.parametrize("syntax", ["", "rle", "jpeg2000", "deflated"])
def test_a_series_with_an_inner_file_that_is_cut_off_is_set_aside_whole(tmp_path: Path, syntax: str) -> None:
    files = write_series(tmp_path / "raw" / "1") + write_series(tmp_path / "raw" / "2", series=2, voxels=ball(8) + 5)
    if syntax:
        compressed(files, syntax)
    cut_off(files[3])
    case = ingest(tmp_path, files)
    assert [series.series_id for series in case.series] == ["series-02"]
    # a truncated deflated file cannot be read at all: its slice is then missing
    expected = "1 slice is missing between slices 3 and 4 (10 to 20 mm), counted from the feet end"
    if syntax != "deflated":
        expected += ": file 4 of the case is cut off; copy it again (numbered_files.tsv in the case's folder of data/raw has the name)"
    assert expected in case.fates[0].reason


@pytest.mark.parametrize("syntax", ["", "rle"])
def test_without_an_end_slice_that_is_cut_off_a_series_is_used_and_flagged(tmp_path: Path, syntax: str) -> None:
    files = write_series(tmp_path / "raw")
    if syntax:
        compressed(files, syntax)
    cut_off(files[0])
    cut_off(files[7])
    case = ingest(tmp_path, files)
    assert [(series.flags, series.quality["slices"]) for series in case.series] == [(("cut_off_files",), 6)]
    assert [fate.reason for fate in case.fates] == [
        "series-01: cut off; copy it again", *["series-01"] * 6, "series-01: cut off; copy it again"
    ]  # fmt: skip
    assert case.quality["files_used"] == 6
    volume = clean_and_convert(tmp_path, case, "series-01")
    assert np.array_equal(volume.voxels[:, ::-1, :].transpose(2, 1, 0), ball(8)[1:-1])


def test_several_inner_files_that_are_cut_off_are_counted(tmp_path: Path) -> None:
    files = write_series(tmp_path / "raw")
    cut_off(files[2])
    cut_off(files[5])
    assert "2 of 8 files are cut off, the first is file 3 of the case; copy them again" in ingest(tmp_path, files).reason


def test_a_multi_frame_object_that_is_cut_off_is_set_aside(tmp_path: Path) -> None:
    path = write_enhanced(tmp_path / "raw" / "e.dcm")
    path.write_bytes(path.read_bytes()[:-3000])
    assert "file 1 of the case is cut off" in ingest(tmp_path, [path]).reason


@pytest.mark.parametrize("cut", [0, 100, 400, 700])
def test_a_file_that_ends_in_its_header_is_set_aside_with_a_reason(tmp_path: Path, cut: int) -> None:
    files = write_series(tmp_path / "raw" / "1") + write_series(tmp_path / "raw" / "2", series=2, voxels=ball(8) + 5)
    files[0].write_bytes(files[0].read_bytes()[:cut])
    case = ingest(tmp_path, files)
    assert case.fates[0].fate == "set_aside"
    assert case.fates[0].reason
    assert {series.series_id for series in case.series} == {"series-01", "series-02"}
    assert "Vandermeer" not in str(case)


def test_a_damaged_value_is_not_quoted_on_the_way(
    tmp_path: Path, recwarn: pytest.WarningsRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    """pydicom quotes unreadable values in warnings, and users may share the logs of a run."""
    files = write_series(tmp_path / "raw")
    content = files[0].read_bytes()
    files[0].write_bytes(content.replace(b"ISO_IR 192", b"Vandermeer", 1))
    ingest(tmp_path, files)
    output = " ".join([*(str(warning.message) for warning in recwarn), caplog.text])
    assert "Vandermeer" not in output


def test_a_series_without_contrast_shows_nothing_and_the_rest_goes_on(tmp_path: Path) -> None:
    flat = np.full((8, 32, 28), 7, np.uint16)
    files = write_series(tmp_path / "raw" / "1") + write_series(tmp_path / "raw" / "2", series=2, voxels=flat)
    case = ingest(tmp_path, files)
    assert [series.series_id for series in case.series] == ["series-01"]
    assert set(reasons(case)) == {"series-02: all pixels are equal; the scan shows nothing"}


def test_a_few_empty_slices_do_not_make_a_series_empty(tmp_path: Path) -> None:
    voxels = ball(8)
    voxels[3:6] = 0
    assert ingest(tmp_path, write_series(tmp_path / "raw", voxels=voxels)).state is State.OK


def test_slices_that_were_sent_again_under_other_uids_are_copies(tmp_path: Path) -> None:
    files = write_series(tmp_path / "raw") + write_series(tmp_path / "raw" / "again", first=100)[3:5]
    case = ingest(tmp_path, files)
    assert reasons(case) == ["series-01: a copy of another image of the series"] * 2
    assert clean_and_convert(tmp_path, case, "series-01").voxels.shape == (28, 32, 8)


def test_two_images_at_one_place_that_differ_are_not_guessed_between(tmp_path: Path) -> None:
    files = write_series(tmp_path / "raw") + write_series(tmp_path / "raw" / "again", first=100, voxels=ball(8) + 3)[3:5]
    case = ingest(tmp_path, files)
    assert "some positions hold more images than others" in case.reason


def test_a_series_that_was_sent_again_under_other_uids_is_set_aside(tmp_path: Path) -> None:
    files = write_series(tmp_path / "raw" / "1") + write_series(tmp_path / "raw" / "2", series=2, SeriesDescription="t1 copy")
    files += write_series(tmp_path / "raw" / "3", series=3, voxels=ball(8) + 1)
    case = ingest(tmp_path, files)
    assert [series.series_id for series in case.series] == ["series-01", "series-03"]
    assert set(reasons(case)) == {"series-02: the same images as series-01, sent again"}


def test_a_person_can_use_a_copy_all_the_same(tmp_path: Path) -> None:
    files = write_series(tmp_path / "raw" / "1") + write_series(tmp_path / "raw" / "2", series=2)
    assert len(ingest(tmp_path, files, "series-02=T2w").series) == 2


def test_a_plain_ct_keeps_its_hounsfield_units(tmp_path: Path) -> None:
    case = ingest(tmp_path, write_series(tmp_path / "raw", Stack(), **ct_tags()))
    volume = clean_and_convert(tmp_path, case, "series-01")
    assert np.array_equal(volume.voxels[:, ::-1, :].transpose(2, 1, 0), ball(8).astype(int) - 1024)
