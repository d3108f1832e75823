"""One mapping of descriptions to kinds for a whole benchmark: `sequence_map`, preceded by the overrides of a case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ingest_case
from fixtures.commands import settings
from fixtures.deid import head_voxels, write_config, write_dicom_series, write_index, write_nifti_file
from neuralmedbench.cli.cases import list_cases
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.deid.file_names import bids_names
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.cases import read_case, read_case_table
from neuralmedbench.records.case import CaseRecord

MAP = """sequence_map:
  - {criteria: {SeriesDescription: "XQ_*"}, sequence: FLAIR}
  - {criteria: {ProtocolName: ["*vibe*", "tfl*"], EchoTime: 9}, contrast_agent: gadobutrol}
  - {criteria: {ImageType: "*\\\\nd", SeriesDescription: "old*"}, sequence: none}
  - {criteria: {FileName: "*_t1k*"}, sequence: ceT1w}
  - {criteria: {SeriesDescription: "XQ_B*"}, sequence: T2w}
"""


def write_map(tmp_path: Path, text: str = MAP, source: Path | None = None) -> Path:
    config = write_config(tmp_path / "config", source or tmp_path)
    path = config / "benchmarks" / "mine.yaml"
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    return config


def ingested(tmp_path: Path, files: list[Path], overrides: str = "", text: str = MAP) -> CaseRecord:
    config = write_map(tmp_path, text)
    out = tmp_path / "ingested" / "case.json"
    arguments = ["--benchmark", "mine", "--case", "c0ffee", "--files", str(write_index(tmp_path, files)), "--config", str(config)]
    assert ingest_case.main([*arguments, *settings(overrides=overrides, **load_benchmark(config, "mine").reading), "--out", str(out)]) == 0
    return read_case(out)


def series(tmp_path: Path, number: int, **tags: Any) -> list[Path]:
    return write_dicom_series(tmp_path / "raw" / str(number), number=number, slices=4, spacing=7.0 + number, **tags)


def kinds(case: CaseRecord) -> dict[str, str]:
    return {one.series_id: one.sequence.value for one in case.series}


def test_a_description_names_the_kind_in_every_case(tmp_path: Path) -> None:
    case = ingested(tmp_path, series(tmp_path, 1, SeriesDescription="xq_special", ProtocolName="x"))
    assert kinds(case) == {"series-01": "FLAIR"}
    assert case.series[0].flags[:1] == ("label_by_sequence_map",)


def test_an_override_of_the_case_precedes_the_map(tmp_path: Path) -> None:
    files = series(tmp_path, 1, SeriesDescription="XQ_special") + series(tmp_path, 2, SeriesDescription="old t1", ProtocolName="t1")
    assert kinds(ingested(tmp_path, files, "series-01=T2w;series-02=T1w")) == {"series-01": "T2w", "series-02": "T1w"}


def test_an_agent_that_only_a_person_knows_is_named_in_the_map_or_in_the_case_table(tmp_path: Path) -> None:
    files = (
        series(tmp_path, 1, ProtocolName="t1 VIBE fs")
        + series(tmp_path, 2, ProtocolName="t1")
        + series(tmp_path, 3, EchoTime=8, ProtocolName="tfl3d")
    )
    case = ingested(tmp_path, files, "series-02=ceT1w:gadoteridol")
    assert [(one.sequence.value, one.agent) for one in case.series] == [("ceT1w", "gadobutrol"), ("ceT1w", "gadoteridol"), ("T1w", "")]
    assert list(bids_names(case).values())[:2] == ["anat/sub-c0ffee_ce-gadobutrol_T1w", "anat/sub-c0ffee_ce-gadoteridol_run-2_T1w"]


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [("series-02=none", "left out by a person (sequence_overrides)"), ("", "left out by a person (sequence_map, entry 3)")],
)
def test_a_series_that_a_person_does_not_want_is_left_out_with_that_reason(tmp_path: Path, overrides: str, reason: str) -> None:
    files = series(tmp_path, 1) + series(tmp_path, 2, SeriesDescription="T1 old" if overrides else "OLD t1")
    case = ingested(tmp_path, files, overrides)
    assert kinds(case) == {"series-01": "T1w"}
    assert case.raw_series[1].reason == reason


def test_entries_that_disagree_about_a_series_leave_it_out_and_say_so(tmp_path: Path) -> None:
    case = ingested(tmp_path, series(tmp_path, 1) + series(tmp_path, 2, SeriesDescription="XQ_B12"))
    assert kinds(case) == {"series-01": "T1w"}
    assert case.raw_series[1].reason.startswith("sequence_map: entries 1 and 5 fit it and disagree; make them exclusive")


def test_a_copy_is_not_used_twice_because_the_map_names_its_kind(tmp_path: Path) -> None:
    files = write_dicom_series(tmp_path / "raw" / "1", number=1, slices=4, SeriesDescription="XQ_1")
    case = ingested(tmp_path, files + write_dicom_series(tmp_path / "raw" / "2", number=2, slices=4, SeriesDescription="XQ_1"))
    assert kinds(case) == {"series-01": "FLAIR"}


def test_names_and_sidecars_of_nifti_files_are_matched_too(tmp_path: Path) -> None:
    one = write_nifti_file(tmp_path / "raw" / "p1_t1km.nii.gz", head_voxels())
    other = write_nifti_file(tmp_path / "raw" / "p1_scan.nii.gz", head_voxels(face=False))
    (tmp_path / "raw" / "p1_scan.json").write_text('{"SeriesDescription": "XQ_7"}', encoding="utf-8")
    assert kinds(ingested(tmp_path, [one, other, tmp_path / "raw" / "p1_scan.json"])) == {"series-01": "FLAIR", "series-02": "ceT1w"}


def test_the_listing_names_entries_without_a_series_and_entries_that_disagree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "source"
    for number, words in ((1, "XQ_A"), (2, "XQ_B"), (3, "Vandermeer t1")):
        write_dicom_series(source / str(number), number=number, slices=4, StudyInstanceUID="1.2.3", SeriesDescription=words)
    config = write_map(tmp_path, source=source)
    assert list_cases.main(["--benchmark", "mine", "--config", str(config), "--data", str(tmp_path / "data")]) == 0
    case = read_case_table(config / "benchmarks" / "mine.cases.tsv")[0].case_id
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.partition(";")[0] for line in lines[:3]] == [f"sequence_map: entry {number} fits no series" for number in (2, 3, 4)]
    remedy = "make them exclusive, or name the kind in `sequence_overrides`"
    assert (
        lines[3]
        == f"sequence_map: entries 1 and 5 disagree about 1 series (first: series-02 of case {case}), which will not be used: {remedy}"
    )
    assert len(lines) == 4
    # the words of the headers stand in the private zone alone
    table = tmp_path / "data" / "raw" / "mine" / "series.tsv"
    assert "Vandermeer t1" in table.read_text(encoding="utf-8")
    assert table.stat().st_mode & 0o077 == 0
    assert "XQ" not in "\n".join(lines)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ('{criteria: {SeriesDescription: "x"}}', "give `sequence`, `contrast_agent`, or both"),
        ('{criteria: {}, sequence: T1w}', "sequence_map"),
        ('{criteria: {SeriesDescription: "x"}, sequence: T1}', "sequence_map"),
        ('{criteria: {SeriesDescription: "x"}, sequence: T2w, contrast_agent: gad}', "a contrast agent is for `ceT1w` and `ceCT`, not for T2w"),
        ('{criteria: {SeriesDescription: "x"}, contrast_agent: "dr who"}', "sequence_map"),
    ],
)  # fmt: skip
def test_an_entry_that_names_nothing_or_what_there_is_not_is_refused(tmp_path: Path, entry: str, says: str) -> None:
    config = write_map(tmp_path, f"sequence_map: [{entry}]\n")
    with pytest.raises(ConfigError, match=says):
        load_benchmark(config, "mine")


@pytest.mark.parametrize(
    "cell", ["series-01=T1", "series-01=T2w:gadobutrol", "series-01=ceT1w:", "series-01=ceT1w:dr who", "series-01=none:x"]
)
def test_an_override_that_cannot_be_is_refused_where_it_stands(tmp_path: Path, cell: str) -> None:
    table = tmp_path / "mine.cases.tsv"
    table.write_text(f"case_id\tpatient_id\tsource_sha256\tsequence_overrides\texclude\nc1\tp1\t0\t{cell}\t\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="line 2: sequence_overrides looks like"):
        read_case_table(table)
