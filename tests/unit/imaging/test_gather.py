from __future__ import annotations

from pathlib import Path

import pytest

from gather_slices import main as gather
from neuralmedbench.errors import DataError
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
        *("--max-quarantined-fraction", "0.2", "--out-slices", str(folder / "slices.parquet"), "--out-flow", str(folder / "flow.json")),
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


@pytest.mark.parametrize(("good", "bad"), [(8, 2), (1, 8), (9, 0)])
def test_a_run_goes_on_while_few_are_quarantined_or_the_benchmark_is_small(tmp_path: Path, good: int, bad: int) -> None:
    assert gather(make(tmp_path, good, bad)) == 0


@pytest.mark.parametrize(("good", "bad", "says"), [(7, 3, "allows 20%"), (0, 2, "no case is left")])
def test_a_run_stops_with_the_first_reasons(tmp_path: Path, good: int, bad: int, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        gather(make(tmp_path, good, bad))
    assert f"{bad} of {good + bad} cases are quarantined" in str(caught.value)
    assert not (tmp_path / "slices.parquet").exists()


def test_a_table_without_a_case_to_use_is_told_apart_from_quarantine(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="its case table is empty, or every row of it is excluded"):
        gather(make(tmp_path, good=0, bad=0, excluded=2))
