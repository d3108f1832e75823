"""Damaged and hostile files: a case is used or kept back with a reason, and the others go on."""

from __future__ import annotations

import gzip
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydicom.uid import ExplicitVRLittleEndian

from fixtures.deid import KEY, flat_deface, head_voxels, write_nifti_file
from fixtures.raw import ball, ingest, make_slice, save, write_enhanced, write_series
from neuralmedbench.config.deidentification import DeidentificationConfig, header_options
from neuralmedbench.deid import stage
from neuralmedbench.deid.cleaning import CleaningPolicy
from neuralmedbench.deid.release import folder
from neuralmedbench.deid.release.audit import CaseOutcome
from neuralmedbench.deid.release.dry_run import dry_run
from neuralmedbench.deid.release.folder import release_folder
from neuralmedbench.deid.release.settings import ReleaseSettings
from neuralmedbench.errors import DataError
from neuralmedbench.files.cases import quarantine_on_error
from neuralmedbench.ingest.case_tables import numbered_pseudonyms
from neuralmedbench.ingest.geometry import check_field
from neuralmedbench.ingest.listing import list_cases
from neuralmedbench.ingest.raw_files import FileKind, frames_of, read_raw_file
from neuralmedbench.records.case import State

assert flat_deface
FOUND = Path(os.environ.get("NMB_FOUND_INPUTS", ""))
given_files = pytest.mark.skipif(not os.environ.get("NMB_FOUND_INPUTS"), reason="NMB_FOUND_INPUTS names no folder of scans")
OPTIONS = header_options("pseudonymised", DeidentificationConfig())
END_OF_SEQUENCE, END_OF_ITEM = b"\xfe\xff\xdd\xe0\0\0\0\0", b"\xfe\xff\x0d\xe0\0\0\0\0"
ITEM = b"\xfe\xff\x00\xe0\x08\0\0\0Van\0derM"
HEADER = 2000
"""Bytes of a small DICOM file before its pixels, about."""


def release(source: Path, out: Path, form: str = "bids") -> list[CaseOutcome]:
    """De-identify a folder; returns the outcomes of its cases."""
    settings = ReleaseSettings(form, "pseudonymised", KEY, OPTIONS, numbered_pseudonyms())
    return list(release_folder(source, out, settings, None).cases.values())


def outcomes(source: Path, out: Path, form: str = "bids") -> list[State]:
    """Return the states of the cases of a folder, sorted; no reason repeats a word of a header."""
    done = release(source, out, form)
    assert not [case for case in done if "Vander" in case.reason]
    return sorted(case.state for case in done)


@pytest.mark.parametrize("form", ["bids", "dicom"])
@pytest.mark.parametrize("tail", [END_OF_SEQUENCE, END_OF_ITEM, ITEM, b"\0" * 7, random.Random(1).randbytes(40)])
@pytest.mark.usefixtures("flat_deface")
def test_bytes_behind_an_image_end_no_release(tmp_path: Path, form: str, tail: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "deface", stage.deface)
    write_series(tmp_path / "in" / "good", PatientID="1")
    files = write_series(tmp_path / "in" / "tail", PatientID="2")
    files[4].write_bytes(files[4].read_bytes() + tail)
    assert outcomes(tmp_path / "in", tmp_path / "out", form) == [State.OK, State.OK]


@given_files
@pytest.mark.parametrize("form", ["bids", "dicom"])
def test_eight_bytes_too_many_are_left_out(tmp_path: Path, form: str) -> None:
    assert outcomes(FOUND / "13-eight-bytes-too-many" / "scans", tmp_path, form) == [State.OK, State.OK]


@given_files
@pytest.mark.parametrize(
    ("name", "states"),
    [("14-lengths-in-metres", [State.OK, State.OK]), ("03-sides-disagree", [State.OK, State.QUARANTINED]),
     ("07-sizes-disagree", [State.QUARANTINED])],
)  # fmt: skip
def test_headers_that_contradict_themselves_keep_back_their_case_alone(tmp_path: Path, name: str, states: list[State]) -> None:
    assert outcomes(FOUND / name / "scans", tmp_path) == states


def huge(voxels: Any) -> Any:
    """One voxel of 1e35, as float."""
    voxels = voxels.astype(np.float32)
    voxels[5, 5, 5] = 1e35
    return voxels


@pytest.mark.parametrize(
    ("voxels", "mm", "reason"),
    [
        (huge(head_voxels()), 3.5, "voxels reach 1e+35; at most 1e+12 is read"),
        (head_voxels().astype(np.float32) * np.float32(1e33), 3.5, "at most 1e+12 is read"),
        (head_voxels(), 0.0035, "its field of view holds"),
        (head_voxels(), 3500.0, "its field of view holds"),
        (head_voxels().astype(np.complex64), 3.5, "complex numbers, not grey values"),
    ],
)
def test_values_and_sizes_that_no_scan_has_are_refused_for_what_they_are(tmp_path: Path, voxels: Any, mm: float, reason: str) -> None:
    write_nifti_file(tmp_path / "in" / "a_T1w.nii.gz", voxels, spacing=mm)
    (case,) = release(tmp_path / "in", tmp_path / "out")
    assert reason in case.reason


@pytest.mark.parametrize("spacing", ["0.0001", "99999", "1e35"])
def test_dicom_with_an_impossible_pixel_spacing_is_kept_back(tmp_path: Path, spacing: str) -> None:
    write_series(tmp_path / "in", PixelSpacing=[spacing, spacing])
    assert "its field of view holds" in release(tmp_path / "in", tmp_path / "out")[0].reason


@pytest.mark.parametrize("sides", [(0.25, 0.25, 0.25), (1e30, 100, 100), (0, 200, 200), (float("nan"), 200, 200)])
def test_no_head_lies_in_a_field_of_impossible_volume(sides: tuple[float, ...]) -> None:
    with pytest.raises(DataError, match="its field of view holds"):
        check_field(sides)
    check_field((180.0, 240.0, 3.0))
    check_field((2000.0, 700.0, 700.0))


@pytest.mark.usefixtures("flat_deface")
def test_an_enhanced_object_that_cannot_be_split_is_no_scan(tmp_path: Path) -> None:
    path = write_enhanced(tmp_path / "in" / "e.dcm")
    content = path.read_bytes()
    rows = content.index(b"\x28\x00\x10\x00US")
    path.write_bytes(content[: rows + 4] + b"FD" + content[rows + 6 :])
    scan = read_raw_file(1, path)
    first = next(iter(frames_of(scan)))
    assert first.kind is FileKind.OTHER
    assert "a file is damaged in a way that nothing expects" in first.why_not
    write_nifti_file(tmp_path / "in" / "good_T2w.nii.gz", head_voxels())
    assert outcomes(tmp_path / "in", tmp_path / "out") == [State.OK, State.QUARANTINED]


def test_a_file_without_what_the_cleaner_writes_leaves_its_case_out_of_a_dry_run(tmp_path: Path) -> None:
    image = make_slice(ball(8)[3], (0, 0, 0), 1)
    image.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    del image.SOPInstanceUID
    save(image, tmp_path / "bad" / "a.dcm")
    write_series(tmp_path / "good", PatientID="2")
    result = dry_run(tmp_path, numbered_pseudonyms(), CleaningPolicy(key=b"", profile="pseudonymised", options=OPTIONS))
    assert [reason.partition(":")[0] for reason in result.left_out] == ["AttributeError in deid/headers/cleaner.py"]
    assert len({decision.case for decision in result.decisions}) == 1


def test_an_error_that_nothing_foresaw_leaves_no_file_that_was_not_searched(
    tmp_path: Path, flat_deface: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search for leaks is the last step: what was written before an earlier one broke off may name the patient."""

    def fail(cleaning: object) -> None:
        assert list((tmp_path / "out").rglob("*.nii.gz"))
        message = "Vandermeer"
        raise IndexError(message)

    case = ingest(tmp_path, write_series(tmp_path / "raw"))
    monkeypatch.setattr(stage, "clean_texts", fail)
    policy = CleaningPolicy(key=KEY, profile="pseudonymised", options=OPTIONS)
    done = quarantine_on_error(case, lambda: stage.deidentify_case(case, tmp_path / "ingested", tmp_path / "out", policy))
    assert (done.state, done.series) == (State.QUARANTINED, ())
    assert "Vandermeer" not in done.reason
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def damaged_dicom(content: bytes, rng: random.Random) -> bytes:
    """Cut a file, change bytes of its header, write another VR, or put bytes between or behind its elements."""
    whole = bytearray(content)
    how = rng.choice(["cut", "bytes", "bytes", "vr", "between", "behind"])
    if how == "cut":
        return content[: rng.randrange(132, len(content))]
    if how == "bytes":
        for _ in range(rng.randrange(1, 8)):
            whole[rng.randrange(132, HEADER)] = rng.randrange(256)
    elif how == "behind":
        whole += rng.choice([END_OF_SEQUENCE, ITEM, rng.randbytes(rng.randrange(1, 99))])
    else:
        tag = rng.choice([b"\x28\x00\x10\x00", b"\x20\x00\x32\x00", b"\x08\x00\x18\x00", b"\x10\x00\x20\x00", b"\x28\x00\x30\x00"])
        place = whole.find(tag, 132)
        if how == "vr":
            whole[place + 4 : place + 6] = rng.choice([b"UN", b"SQ", b"OB", b"US", b"FD", b"ZZ"])
        else:
            whole[place:place] = rng.choice([END_OF_SEQUENCE, rng.randbytes(8)])
    return bytes(whole)


FIELDS = {40: "h", 42: "h", 70: "h", 72: "h", 76: "f", 80: "f", 88: "f", 108: "f", 112: "f", 123: "b", 252: "h", 254: "h", 256: "f", 280: "f",
          288: "f", 300: "f"}  # fmt: skip
"""Place and type of fields of a NIfTI header: dimensions, data type, sizes, offset, scaling, units, transforms."""


def damaged_nifti(content: bytes, rng: random.Random) -> bytes:
    """Cut a file, or write something else into a field of its header."""
    whole = bytearray(content)
    if rng.random() < 0.2:
        return content[: rng.randrange(10, len(content))]
    place, kind = rng.choice(list(FIELDS.items()))
    values = [0, -1, 1e35, 1e-30, float("nan"), float("inf"), 1e6, 348] if kind == "f" else [-1, 0, 1, 3, 4, 5, 32, 64, 127]
    struct.pack_into(f"<{kind}", whole, place, rng.choice(values))
    return bytes(whole)


def series_of(place: Path) -> list[Path]:
    """A series of which one file will be damaged."""
    return write_series(place)[3:4]


def enhanced_in(place: Path) -> list[Path]:
    """A multi-frame object."""
    return [write_enhanced(place / "e.dcm")]


def nifti_in(place: Path) -> list[Path]:
    """A NIfTI file without compression."""
    path = write_nifti_file(place / "x_T1w.nii.gz", head_voxels())
    plain = path.with_suffix("")
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    path.unlink()
    return [plain]


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 60))])
@pytest.mark.parametrize(("make", "damage"), [(series_of, damaged_dicom), (enhanced_in, damaged_dicom), (nifti_in, damaged_nifti)])
@pytest.mark.usefixtures("flat_deface")
def test_whatever_is_damaged_ends_as_used_or_kept_back(
    tmp_path: Path, seed: int, make: Callable[[Path], list[Path]], damage: Callable[[bytes, random.Random], bytes]
) -> None:
    rng = random.Random(seed)
    for path in make(tmp_path / "in" / "bad"):
        path.write_bytes(damage(path.read_bytes(), rng))
    write_nifti_file(tmp_path / "in" / "good" / "g_T2w.nii.gz", head_voxels())
    assert list_cases(tmp_path / "in", numbered_pseudonyms(), mapping=()).cases
    dry_run(tmp_path / "in", numbered_pseudonyms(), CleaningPolicy(key=b"", profile="pseudonymised", options=OPTIONS))
    assert State.OK in outcomes(tmp_path / "in", tmp_path / "out")
