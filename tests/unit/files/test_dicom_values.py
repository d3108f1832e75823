"""Values of a header are found by keyword as in pydicom; absent ones are None."""

from __future__ import annotations

import pytest
from pydicom.dataelem import RawDataElement
from pydicom.dataset import Dataset
from pydicom.tag import Tag

from neuralmedbench.files import dicom


@pytest.fixture
def header() -> Dataset:
    one = Dataset()
    one.PatientName, one.EchoTime, one.ImageType, one.StudyDate, one.AccessionNumber = "A^B", 90.0, ["ORIGINAL", "PRIMARY"], "20260101", ""
    one[Tag("SliceThickness")] = RawDataElement(Tag("SliceThickness"), "DS", 4, b"thin", 0, False, True)
    return one


@pytest.mark.parametrize("keyword", ["PatientName", "EchoTime", "ImageType", "StudyDate"])
def test_a_keyword_and_its_tag_find_what_pydicom_finds(header: Dataset, keyword: str) -> None:
    assert dicom.value(header, keyword) == header.get(keyword) == dicom.value(header, int(Tag(keyword)))


@pytest.mark.parametrize("keyword", ["PatientID", "AccessionNumber", "NoSuchKeyword", "OverlayRows"])
def test_what_is_absent_empty_or_unknown_is_none(header: Dataset, keyword: str) -> None:
    assert dicom.value(header, keyword) is None
    assert dicom.texts(header, keyword) == ()


def test_a_malformed_number_is_none(header: Dataset) -> None:
    dicom.quiet_pydicom()
    assert dicom.number(header, "SliceThickness") is None


def test_a_value_that_is_changed_is_found_changed(header: Dataset) -> None:
    assert dicom.text(header, "StudyDate") == "20260101"
    header.StudyDate = "20260202"
    assert dicom.text(header, "StudyDate") == "20260202"
    del header.StudyDate
    assert dicom.value(header, "StudyDate") is None
