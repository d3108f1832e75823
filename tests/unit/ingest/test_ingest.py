"""Ingest: every file is accounted for, sequences are labelled, nothing is guessed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ingest_case
from fixtures.commands import settings
from fixtures.deid import NOTE, RECORD, head_voxels, write_dicom_series, write_index, write_nifti_file
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.cases import read_case
from neuralmedbench.ingest.conversion import trace_image
from neuralmedbench.ingest.sequences import Physics, label_sequence, plain_words
from neuralmedbench.records.case import CaseRecord, Sequence, State


def run(tmp_path: Path, index: Path, overrides: str = "") -> CaseRecord:
    out = tmp_path / "ingested" / "case.json"
    arguments = ["--benchmark", "mine", "--case", "c0ffee", "--files", str(index), *settings(overrides=overrides), "--out", str(out)]
    assert ingest_case.main(arguments) == 0
    return read_case(out)


def test_every_file_of_a_case_is_used_or_set_aside_with_a_reason(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    files = write_dicom_series(raw / "1", number=1)
    files += write_dicom_series(raw / "2", number=2, slices=3, SeriesDescription="localizer", ProtocolName="localizer")
    files += write_dicom_series(raw / "3", number=3, slices=1, SOPClassUID="1.2.840.10008.5.1.4.1.1.7")
    files += write_dicom_series(raw / "4", number=4, slices=4, SeriesDescription="b0 map", ProtocolName="shim", SequenceName="fm2d2")
    (raw / "report.pdf").write_bytes(b"%PDF-1.4")
    (raw / "cut.dcm").write_bytes(files[0].read_bytes()[:200])
    files += [raw / "report.pdf", raw / "cut.dcm"]
    (raw / "note.txt").write_text(NOTE, encoding="utf-8")
    (raw / "record.csv").write_text(RECORD, encoding="utf-8")
    case = run(tmp_path, write_index(tmp_path, files, (raw / "note.txt",), raw / "record.csv"))
    assert case.state is State.OK, case.reason
    assert [(series.sequence, series.acquisition) for series in case.series] == [(Sequence.T1W, "2d")]
    assert [fate.file for fate in case.fates] == list(range(1, len(files) + 1))
    reasons = [fate.reason for fate in case.fates]
    assert reasons.count("series-01") == 20
    assert reasons.count("localizer") == 3
    assert reasons.count("screenshot (secondary capture)") == 1
    assert (case.raw_files["used"], case.raw_files["localizer"], sum(case.raw_files.values())) == (20, 3, len(files))
    assert not any(reason.startswith("series-") for reason in case.raw_files)
    assert sum("field map" in reason for reason in reasons) == 4
    assert sum("not a scan" in reason for reason in reasons) == 2
    assert case.notes == ("text/note-01.txt",)
    assert case.record == "text/record.csv"
    assert not any("VANDERMEER" in path.name for path in (tmp_path / "ingested").rglob("*"))


def test_a_case_that_was_never_listed_here_is_told_how_to_list_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"list the cases again \(nmb cases list\)"):
        run(tmp_path, tmp_path / "absent" / "files.json")


def test_an_override_of_a_series_that_is_not_there_is_refused(tmp_path: Path) -> None:
    files = write_dicom_series(tmp_path / "raw")
    with pytest.raises(ConfigError, match="case c0ffee: it has 1 series, and no series-07"):
        run(tmp_path, write_index(tmp_path, files), "series-07=FLAIR")


def test_positions_win_over_the_thickness(tmp_path: Path) -> None:
    series = run(tmp_path, write_index(tmp_path, write_dicom_series(tmp_path / "raw", spacing=4.0))).series[0]
    assert series.quality["spacing_mm"] == 4.0
    assert series.flags == ("positions_and_thickness_disagree",)


def test_an_override_names_a_series_and_an_unknown_kind_is_an_error(tmp_path: Path) -> None:
    from neuralmedbench.errors import ConfigError

    index = write_index(tmp_path, write_dicom_series(tmp_path / "raw"))
    assert run(tmp_path, index, "series-01=ceT1w").series[0].sequence is Sequence.CE_T1W
    with pytest.raises(ConfigError, match="known kinds"):
        run(tmp_path, index, "series-01=T3w")


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ("changed", "not what was listed"),
        ("absent", "not where it was listed"),
        ("mask", "a mask"),
        ("truncated", "empty file (0 bytes)"),
        ("lost", "left and right"),
    ],
)
def test_a_case_that_cannot_be_used_is_quarantined_with_its_reason(tmp_path: Path, files: str, reason: str) -> None:
    raw = tmp_path / "raw"
    if files == "mask":
        paths = [write_nifti_file(raw / "p1_T1w.nii.gz", (head_voxels() > 0).astype(np.uint8))]
    elif files == "lost":
        paths = [write_nifti_file(raw / "p1_T1w.nii.gz", head_voxels(), code=0)]
    else:
        paths = write_dicom_series(raw, slices=4)
    if files == "truncated":
        for path in paths:
            path.write_bytes(b"")
    index = write_index(tmp_path, paths)
    if files == "changed":
        paths[2].write_bytes(paths[2].read_bytes() + b"\0")
    elif files == "absent":
        paths[2].unlink()
    case = run(tmp_path, index)
    assert case.state is State.QUARANTINED
    assert case.quarantined_by == "ingest"
    assert reason in case.reason
    assert str(raw) not in json.dumps(case.reason)
    assert not list((tmp_path / "ingested" / "series").iterdir())


def test_nifti_files_are_known_by_the_words_of_their_names(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    names = {"sub-01_T1w": Sequence.T1W, "sub-01_ce-gad_T1w": Sequence.CE_T1W, "sub-01_FLAIR": Sequence.FLAIR, "sub-01_T2w": Sequence.T2W}
    files = [write_nifti_file(raw / f"{name}.nii.gz", head_voxels()) for name in names]
    ct = head_voxels().astype(np.int16) - 1000
    files.append(write_nifti_file(raw / "sub-01_head.nii.gz", ct))
    case = run(tmp_path, write_index(tmp_path, files))
    assert {series.sequence for series in case.series} == {*names.values(), Sequence.CT}


def test_a_diffusion_series_becomes_the_trace_of_its_strongest_weighting(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    head = head_voxels().astype(np.float32)
    volumes = np.stack([head, head * 0.5, head * 0.25, head], axis=3)
    path = write_nifti_file(raw / "sub-01_dwi.nii.gz", volumes)
    (raw / "sub-01_dwi.bval").write_text("0 1000 1000 50", encoding="ascii")
    series = run(tmp_path, write_index(tmp_path, [path, raw / "sub-01_dwi.bval"])).series[0]
    assert series.b_value == 1000.0
    trace, _ = trace_image(volumes, np.array([0, 1000, 1000, 50]))
    assert np.allclose(trace[head > 0], head[head > 0] * np.sqrt(0.125), rtol=1e-3)


@pytest.mark.parametrize(
    ("words", "physics", "expected", "flagged"),
    [
        ("t1_mpr_tra *tfl3d1", Physics(1900, 2.97, 1100), Sequence.T1W, False),
        ("AX T2 FLAIR dark-fluid", Physics(9000, 110, 2500), Sequence.FLAIR, False),
        ("AX T1 FLAIR", Physics(2500, 12, 800), Sequence.T1W, False),
        ("T1 post gad", Physics(600, 10), Sequence.CE_T1W, False),
        ("T1 pre contrast", Physics(600, 10), Sequence.T1W, False),
        ("T1_SE_TRA", Physics(600, 10, agent="Gadovist"), Sequence.CE_T1W, False),
        ("ep2d_diff_3scan_trace_TRACEW", Physics(4000, 90, None, 1000), Sequence.DWI, False),
        ("ep2d_diff_3scan_trace_ADC", Physics(4000, 90), Sequence.ADC, False),
        ("SWI_Images", Physics(28, 20), Sequence.SWI, False),
        ("T2* GRE", Physics(700, 25), Sequence.T2STARW, False),
        ("T2_TSE", Physics(600, 10), Sequence.T2W, True),
        ("", Physics(4000, 100), Sequence.T2W, False),
        ("", Physics(), Sequence.UNKNOWN, False),
        ("TOF_3D_multi-slab", Physics(21, 3.4), Sequence.ANGIO, False),
        ("PosteriorFossa T2", Physics(4000, 90), Sequence.T2W, False),
    ],
)
def test_headers_are_labelled_by_words_and_flagged_where_physics_disagrees(
    words: str, physics: Physics, expected: Sequence, flagged: bool
) -> None:
    label = label_sequence("MR", plain_words(words), physics)
    assert label.sequence is expected
    assert bool(label.flags) is flagged
