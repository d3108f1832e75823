from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fixtures.commands import settings
from gather_slices import main as gather
from neuralmedbench.config.pipeline import MAX_QUARANTINED_FRACTION, PipelineConfig
from neuralmedbench.errors import DataError
from neuralmedbench.files.case_flow import PHANTOM, counts_as_patient, stopping_share
from neuralmedbench.files.cases import CaseRow, write_case, write_case_table
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.tables import read_records
from neuralmedbench.records.case import CaseRecord, Plane, Sequence, Slice, SliceRow, State, Tile

ASIDE = {"series-02": "ADC: it fits no unit of diffusion"}


def make(folder: Path, good: int, bad: int, excluded: int = 0) -> list[str]:
    rows = []
    for number in range(good + bad + excluded):
        case_id = f"case{number:02d}"
        exclude = "withdrawn" if number >= good + bad else ""
        rows.append(CaseRow(case_id=case_id, patient_id=f"p{number}", source_sha256="", sequence_overrides={}, exclude=exclude))
        if exclude:
            continue
        cut = Slice(
            image_id="flair-z+012",
            path="png/flair-z+012.png",
            sha256="a",
            pixels_sha256="c",
            volume_sha256="b",
            sequence=Sequence.FLAIR,
            plane=Plane.AXIAL,
            index=3,
            position_mm=12.25,
            tiles=(Tile(index=3, position_mm=12.25),),
            native_mm_per_px=(0.9, 0.9),
            mm_per_px=0.9,
            window=(0.0, 1.0),
            window_name="own",
        )
        fate = (
            {"slices": (cut,), "set_aside": ASIDE}
            if number < good
            else {"state": State.QUARANTINED, "quarantined_by": "ingest", "reason": "no series"}
        )
        record = CaseRecord(benchmark="demo", case_id=case_id, patient_id=f"p{number}", stage="slices", **fate)
        (folder / "slices" / f"sub-{case_id}").mkdir(parents=True)
        write_case(folder / "slices" / f"sub-{case_id}" / "case.json", record)
    write_case_table(folder / "cases.tsv", rows)
    return [
        *("--benchmark", "demo", "--table", str(folder / "cases.tsv"), "--folder", str(folder / "slices")),
        *settings(max_quarantined_fraction=0.2),
        *("--out-slices", str(folder / "slices.parquet"), "--out-flow", str(folder / "flow.json")),
    ]


def test_every_case_of_the_table_has_its_fate_and_every_picture_its_row(tmp_path: Path) -> None:
    assert gather(make(tmp_path, good=2, bad=1, excluded=1)) == 0
    rows = read_records(tmp_path / "slices.parquet", SliceRow)
    assert [row.case_id for row in rows] == ["case00", "case01"]
    assert rows[0].path == f"{(tmp_path / 'slices').as_posix()}/sub-case00/png/flair-z+012.png"
    assert (rows[0].position_mm, rows[0].volume_sha256, rows[0].pixels_sha256) == (12.25, "b", "c")
    assert (rows[0].tiles, rows[0].native_mm_per_px, rows[0].window) == ((Tile(index=3, position_mm=12.25),), (0.9, 0.9), (0.0, 1.0))
    flow = {case["case_id"]: case for case in read_json(tmp_path / "flow.json")["cases"]}
    assert flow["case00"]["sequences"] == ["FLAIR"]
    assert flow["case00"]["set_aside"] == ["ADC: it fits no unit of diffusion"]
    assert (flow["case02"]["state"], flow["case02"]["quarantined_by"], flow["case02"]["reason"]) == ("quarantined", "ingest", "no series")
    assert flow["case03"]["excluded"]
    assert flow["case03"]["reason"] == "withdrawn"


def test_pictures_gathered_before_their_geometry_was_kept_are_still_read(tmp_path: Path) -> None:
    path = tmp_path / "slices.parquet"
    gather(make(tmp_path, good=1, bad=0))
    (row,), table = read_records(path, SliceRow), pq.read_table(path)
    old = pa.struct([("index", pa.int64()), ("position_mm", pa.float64())])
    tiles = pa.array([[{"index": 3, "position_mm": 12.25}]], pa.list_(old))
    table = table.set_column(table.column_names.index("tiles"), "tiles", tiles).drop_columns(["size_px"])
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"schema_version": b"2"}), path)
    assert read_records(path, SliceRow) == [row]
    assert row.tiles[0].corner_mm is None


@pytest.mark.parametrize(("good", "bad"), [(8, 2), (1, 8), (9, 0)])
def test_a_run_goes_on_while_few_are_quarantined_or_the_benchmark_is_small(tmp_path: Path, good: int, bad: int) -> None:
    assert gather(make(tmp_path, good, bad)) == 0


@pytest.mark.parametrize(("good", "bad", "says"), [(7, 3, "allows 20%"), (0, 2, "no case is left")])
def test_a_run_stops_with_counts_reasons_and_the_next_step(tmp_path: Path, good: int, bad: int, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        gather(make(tmp_path, good, bad))
    message = str(caught.value)
    assert f"{bad} of {good + bad} cases" in message
    first = ", ".join(f"case{number:02d}" for number in range(good, good + bad))
    assert f"{bad}: no series (at ingest): {first}. Correct these cases in the source folder, or exclude them" in message
    assert "config/benchmarks/demo.cases.tsv" in message


def quarantined(number: int, stage: str, reason: str, *, raw: dict[str, int] | None = None, phantom: bool = False) -> CaseRecord:
    return CaseRecord(
        benchmark="demo", case_id=f"case{number:02d}", patient_id=f"p{number}", stage="slices", state=State.QUARANTINED,
        quarantined_by=stage, reason=reason, raw_files=raw or {}, quality={PHANTOM: 1.0} if phantom else {},
    )  # fmt: skip


def test_phantoms_and_cases_without_a_head_scan_count_neither_as_quarantined_nor_as_patients(tmp_path: Path) -> None:
    """10 cases are used; of 8 quarantined ones 2 are patients, 2 of 12."""
    arguments = make(tmp_path, good=10, bad=8)
    bad = [
        quarantined(10, "ingest", "no usable series among 3 files: localizer", raw={"localizer": 2, "screenshot (secondary capture)": 1}),
        quarantined(11, "ingest", "no usable series", raw={"a series of 30 volumes that is no diffusion scan": 30}),
        quarantined(12, "ingest", "no usable series", raw={"kind of scan not known: name it in `sequence_overrides` of the case": 30}),
        quarantined(13, "deidentify", "the face could not be located", phantom=True),
        quarantined(14, "deidentify", "the face could not be located", phantom=True),
        quarantined(15, "ingest", "no usable series", raw={"dose report": 1}),
        quarantined(16, "ingest", "no usable series", raw={"3 of 9 files are cut off": 9, "localizer": 1}),
        quarantined(17, "deidentify", "the face could not be located"),
    ]
    for record in bad:
        write_case(tmp_path / "slices" / f"sub-{record.case_id}" / "case.json", record)
    assert [counts_as_patient(record) for record in bad] == [False] * 6 + [True] * 2
    assert gather(arguments) == 0
    arguments[arguments.index("--settings") + 1] = json.dumps({"max_quarantined_fraction": 0.1})
    with pytest.raises(DataError, match="2 of 12 cases of patients are quarantined and max_quarantined_fraction allows 10%") as caught:
        gather(arguments)
    assert "6 more without a head scan are not counted" in str(caught.value)


def test_the_share_that_stops_a_run_is_stated_before() -> None:
    assert stopping_share(20, 0.2) == "a run stops if more than 4 of 20 cases of patients are quarantined (20%)"
    assert stopping_share(10, 0.3) == "a run stops if more than 3 of 10 cases of patients are quarantined (30%)"
    assert stopping_share(9, 0.2).startswith("a run stops if no case is left (from 10 cases of patients on: if more than 20%")
    assert PipelineConfig.model_fields["max_quarantined_fraction"].default == MAX_QUARANTINED_FRACTION == 0.2
