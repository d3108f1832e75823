"""Diffusion as the vendors store it: mosaics, private b-values, several weightings and maps in one series."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.raw import ball, clean_and_convert, ingest, make_slice, save, write_mosaic, write_series
from neuralmedbench.files.nifti import read_nifti
from neuralmedbench.ingest.sequences import b_value_of
from neuralmedbench.records.case import Sequence, State


def with_private(maker: str, element: tuple[tuple[int, int], str, str, Any]) -> Any:
    """Return the header of a maker with one private element: tag, creator, value representation, value."""
    place, creator, kind, value = element
    header = make_slice(ball(1)[0], (0, 0, 0), 1, Manufacturer=maker)
    header.private_block(place[0], creator, create=True).add_new(place[1] & 0xFF, kind, value)
    return header


@pytest.mark.parametrize(
    ("maker", "element", "expected"),
    [
        ("SIEMENS", ((0x0019, 0x100C), "SIEMENS MR HEADER", "IS", "1000"), 1000.0),
        ("Siemens Healthineers", ((0x0019, 0x100C), "SIEMENS MR HEADER", "UN", b"800 "), 800.0),
        ("Philips Medical Systems", ((0x2001, 0x1003), "Philips Imaging DD 001", "FL", 1000.0), 1000.0),
        ("Philips", ((0x2001, 0x1003), "Philips Imaging DD 001", "UN", struct.pack("<f", 1500.0)), 1500.0),
        ("GE MEDICAL SYSTEMS", ((0x0043, 0x1039), "GEMS_PARM_01", "IS", [1000001000, 8, 0, 0]), 1000.0),
        ("GE MEDICAL SYSTEMS", ((0x0043, 0x1039), "GEMS_PARM_01", "IS", [700, 8, 0, 0]), 700.0),
        ("GE MEDICAL SYSTEMS", ((0x0043, 0x1039), "GEMS_PARM_01", "UN", b"1000000050\\8\\0\\0"), 50.0),
        # the same element has another meaning for another maker
        ("GE MEDICAL SYSTEMS", ((0x0019, 0x100C), "GEMS_ACQU_01", "SS", 7), None),
        ("", ((0x0019, 0x100C), "SIEMENS MR HEADER", "IS", "1000"), 1000.0),
        ("SIEMENS", ((0x0019, 0x100C), "SIEMENS MR HEADER", "UN", b"\xff\xfe"), None),
    ],
)
def test_b_values_are_read_where_each_vendor_keeps_them(
    maker: str, element: tuple[tuple[int, int], str, str, Any], expected: float | None
) -> None:
    assert b_value_of(with_private(maker, element)) == expected


def write_weightings(folder: Path, weights: list[int], **tags: Any) -> list[Path]:
    """Write one series with a volume per weighting, the b-value in GE's private element."""
    paths = []
    for volume, weight in enumerate(weights):
        voxels = np.round(ball(8) * np.exp(-weight / 1500)).astype(np.uint16) + volume
        words = {"Manufacturer": "GE MEDICAL SYSTEMS", "SeriesDescription": "AX DWI", "EchoTime": 80, "RepetitionTime": 6000, **tags}
        files = write_series(folder / str(volume), voxels=voxels, first=1 + 8 * volume, **words)
        for path in files:
            import pydicom

            image = pydicom.dcmread(path)
            image.private_block(0x0043, "GEMS_PARM_01", create=True).add_new(0x39, "IS", [1_000_000_000 + weight if weight else 0, 8, 0, 0])
            image.save_as(path)
        paths += files
    return paths


def test_of_several_weightings_in_one_series_the_strongest_is_used(tmp_path: Path) -> None:
    case = ingest(tmp_path, write_weightings(tmp_path / "raw", [0, 1000]))
    assert [(series.sequence, series.b_value) for series in case.series] == [(Sequence.DWI, 1000.0)]
    assert case.series[0].quality["slices"] == 8
    volume = clean_and_convert(tmp_path, case, "series-01")
    assert volume.voxels.max() == round(907 * np.exp(-1000 / 1500)) + 1


def test_directions_of_one_weighting_become_their_geometric_mean(tmp_path: Path) -> None:
    case = ingest(tmp_path, write_weightings(tmp_path / "raw", [0, 1000, 1000, 1000]))
    volume = read_nifti(tmp_path / "ingested" / case.series[0].path)
    plain = np.round(ball(8) * np.exp(-1000 / 1500))
    expected = ((plain + 1) * (plain + 2) * (plain + 3)) ** (1 / 3)
    assert np.allclose(volume.voxels[:, ::-1, :].transpose(2, 1, 0), expected, rtol=1e-3)
    assert case.series[0].b_value == 1000.0


def test_an_adc_map_in_the_series_of_its_source_becomes_a_scan_of_its_own(tmp_path: Path) -> None:
    files = write_weightings(tmp_path / "raw", [0, 1000], SeriesInstanceUID="1.2.3")
    files += write_series(
        tmp_path / "raw" / "adc", first=900, SeriesInstanceUID="1.2.3", SeriesDescription="AX DWI", voxels=ball(8) * 2,
        ImageType=["DERIVED", "PRIMARY", "ADC"], Manufacturer="GE MEDICAL SYSTEMS",
    )  # fmt: skip
    case = ingest(tmp_path, files)
    assert {series.sequence for series in case.series} == {Sequence.DWI, Sequence.ADC}
    assert {fate.fate for fate in case.fates} == {"used"}


def test_a_diffusion_series_that_lost_its_weights_is_refused(tmp_path: Path) -> None:
    files = write_series(tmp_path / "raw" / "0", SeriesDescription="dwi") + write_series(
        tmp_path / "raw" / "1", SeriesDescription="dwi", first=9, voxels=ball(8) + 3
    )
    assert "diffusion weighting of a series of volumes is not in its headers" in ingest(tmp_path, files).reason


def test_a_siemens_mosaic_is_cut_into_its_slices_at_their_places(tmp_path: Path) -> None:
    """The CSA header is written by the test after its published layout; it does not come from a scanner."""
    files = [
        write_mosaic(tmp_path / "raw" / f"{number}.dcm", b_value=weight, InstanceNumber=number, AcquisitionTime=f"09120{number}")
        for number, weight in enumerate((0, 1000), start=1)
    ]
    case = ingest(tmp_path, files)
    assert case.state is State.OK, case.reason
    assert (case.series[0].sequence, case.series[0].b_value) == (Sequence.DWI, 1000.0)
    volume = read_nifti(tmp_path / "ingested" / case.series[0].path)
    expected = np.round(ball(9, 24, 24) * np.exp(-1000 / 1500))
    assert np.allclose(volume.voxels[:, ::-1, :].transpose(2, 1, 0), expected, atol=0.01)
    assert np.allclose(volume.affine @ [0, 23, 0, 1], [46, 46, 10, 1])  # the first pixel of the first tile, RAS+


def test_a_mosaic_without_its_private_header_is_refused(tmp_path: Path) -> None:
    assert "without the vendor's private header" in ingest(tmp_path, [write_mosaic(tmp_path / "raw" / "m", csa=False)]).reason
    words = {"SeriesDescription": "ep2d_tra", "ImageType": ["ORIGINAL", "PRIMARY", "M", "MOSAIC"], "ScanningSequence": "SE"}
    assert "a mosaic that is no diffusion scan" in ingest(tmp_path, [write_mosaic(tmp_path / "raw" / "f", **words)]).reason


def test_slopes_of_philips_scale_all_voxels_alike(tmp_path: Path) -> None:
    words = {"Manufacturer": "Philips Medical Systems", "RescaleSlope": 2.5, "RescaleIntercept": 0, "SeriesDescription": "T1W_SE"}
    files = write_series(tmp_path / "raw", **words)
    for path in files:
        import pydicom

        image = pydicom.dcmread(path)
        image.private_block(0x2005, "Philips MR Imaging DD 001", create=True).add_new(0x0E, "FL", 0.004)
        save(image, path)
    case = ingest(tmp_path, files)
    volume = clean_and_convert(tmp_path, case, "series-01")
    # the public slope gives the values of the console, the private one (if cleaning keeps it) the signal: both are a single factor
    grey = volume.voxels[:, ::-1, :].transpose(2, 1, 0)
    factor = grey.max() / 907
    assert factor == pytest.approx(2.5) or factor == pytest.approx(1 / 0.004)
    assert np.allclose(grey, ball(8) * factor, rtol=1e-5)
