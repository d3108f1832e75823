"""Files are complete or absent; tables have the columns of their records."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import ROOT
from neuralmedbench.errors import ConfigError, DataError, DeidentificationError
from neuralmedbench.files.cases import (
    CaseRow,
    digest_of_files,
    quarantine_on_error,
    read_case,
    read_case_table,
    run_case_stage,
    write_case,
    write_case_table,
)
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.inside import file_inside
from neuralmedbench.files.json_files import read_json, write_json
from neuralmedbench.files.packs import packed_files, unpack_absent, unpack_cases, write_pack
from neuralmedbench.files.tables import read_records, read_table, write_records, write_table
from neuralmedbench.records.case import CaseRecord, Sequence, Series, State
from neuralmedbench.records.items import SCHEMA_VERSION, Gold, GoldFields, Lesion, ReferenceValue
from neuralmedbench.runtime.atomic_write import atomic_file, atomic_folder
from neuralmedbench.runtime.commands import run_command

GOLD = Gold(
    item_id="a",
    answer="glioblastoma",
    fields=GoldFields(modality="MRI"),
    lesion=Lesion(location="frontal lobe", side="left", behaviour={"FLAIR": "hyperintense"}, position_mm=(1.0, 2.0, 3.0)),
)


def test_a_file_that_fails_half_way_is_absent_and_the_old_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")

    def fail() -> None:
        with atomic_file(path) as partial:
            partial.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.csv"]


def test_a_folder_that_fails_half_way_is_absent_and_the_old_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "png"
    path.mkdir()
    (path / "old.png").write_text("old")

    def fail() -> None:
        with atomic_folder(path) as partial:
            (partial / "new.png").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [entry.name for entry in path.iterdir()] == ["old.png"]


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    write_records(tmp_path / "gold.parquet", Gold, [GOLD], key=lambda row: row.item_id)
    assert read_records(tmp_path / "gold.parquet", Gold) == [GOLD]


def test_equal_records_are_equal_bytes_in_any_order(tmp_path: Path) -> None:
    rows = [Gold(item_id=name, answer=name) for name in "abc"]
    write_records(tmp_path / "1.parquet", Gold, rows, key=lambda row: row.item_id)
    write_records(tmp_path / "2.parquet", Gold, reversed(rows), key=lambda row: row.item_id)
    assert sha256_of(tmp_path / "1.parquet") == sha256_of(tmp_path / "2.parquet")


def test_an_unknown_column_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "gold.parquet"
    write_records(path, Gold, [GOLD], key=lambda row: row.item_id)
    table = pq.read_table(path).append_column("surprise", pa.array(["x"]))
    pq.write_table(table, path)
    with pytest.raises(DataError, match=r"columns do not fit Gold \(surprise\)"):
        read_records(path, Gold)


def without(path: Path, column: str, version: str) -> None:
    """Write a table again without a column, as code of another version of the record would have."""
    table = pq.read_table(path).drop_columns([column])
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"schema_version": version.encode()}), path)


def test_a_table_of_a_former_version_is_read_with_the_defaults_of_later_columns(tmp_path: Path) -> None:
    path = tmp_path / "gold.parquet"
    write_records(path, Gold, [GOLD], key=lambda row: row.item_id)
    without(path, "values", "3")
    assert read_records(path, Gold) == [replace(GOLD, values=())]


def test_parts_of_a_record_may_lack_what_came_later(tmp_path: Path) -> None:
    """Turns and reference values have fields since version 6 that a recorded table does not know."""
    path = tmp_path / "gold.parquet"
    value = ReferenceValue(field="flag", rule="index", value="1")
    write_records(path, Gold, [replace(GOLD, values=(value,))], key=lambda row: row.item_id)
    table = pq.read_table(path)
    place = table.schema.get_field_index("values")
    kind = pa.list_(pa.struct([part for part in table.schema.field("values").type.value_type if part.name != "decides"]))
    former = [[{name: cell for name, cell in one.items() if name != "decides"} for one in row] for row in table.column(place).to_pylist()]
    table = table.set_column(place, "values", pa.array(former, type=kind))
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"schema_version": b"5"}), path)
    assert read_records(path, Gold) == [replace(GOLD, values=(value,))]


def test_a_damaged_table_is_named_with_its_benchmark_and_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six stages have a table `demo.parquet`."""
    path = tmp_path / "data" / "gold" / "demo.parquet"
    path.parent.mkdir(parents=True)
    write_records(path, Gold, [Gold(item_id=f"i{number}", answer="a") for number in range(50)], key=lambda row: row.item_id)
    whole = path.read_bytes()
    monkeypatch.chdir(tmp_path)
    for damaged in (b"no table", whole[:-9], whole[: len(whole) // 2], whole[:100] + bytes(len(whole) - 108) + whole[-8:], b"PAR1" * 9):
        path.write_bytes(damaged)
        for seen in (path, Path("data/gold/demo.parquet")):
            with pytest.raises(DataError, match=r"^data/gold/demo\.parquet: not a Parquet file, or a damaged one; delete it"):
                read_records(seen, Gold)
    path.unlink()
    with pytest.raises(DataError, match=r"^data/gold/demo\.parquet: the table is not there"):
        read_records(path, Gold)
    monkeypatch.chdir(ROOT)
    path.write_bytes(b"no table")
    with pytest.raises(DataError, match=r"^data/gold/demo\.parquet: "):
        read_records(path, Gold)


@pytest.mark.parametrize(("column", "version"), [("values", str(SCHEMA_VERSION)), ("answer", "3")])
def test_a_column_that_todays_version_or_every_version_has_may_not_be_absent(tmp_path: Path, column: str, version: str) -> None:
    path = tmp_path / "gold.parquet"
    write_records(path, Gold, [GOLD], key=lambda row: row.item_id)
    without(path, column, version)
    with pytest.raises(DataError, match=rf"columns do not fit Gold \({column}\)"):
        read_records(path, Gold)


def test_a_result_table_refuses_a_key_without_a_column(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="b"):
        write_table(tmp_path / "t.csv", [{"a": 1, "b": 2}], ["a"])


def test_cells_have_six_decimals_without_a_negative_zero_and_nothing_is_an_empty_cell(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", [{"a": 1 / 3, "b": None, "c": True, "d": float("nan"), "e": -1e-9}], ["a", "b", "c", "d", "e"])
    assert (tmp_path / "t.csv").read_text() == "a,b,c,d,e\n0.333333,,true,,0.000000\n"


def test_a_result_table_that_a_spreadsheet_saved_in_another_encoding_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("model\nfür\n", encoding="latin-1")
    with pytest.raises(DataError, match=r"t\.csv: not a table in UTF-8, as it was written; delete it and run build_tables"):
        read_table(tmp_path / "t.csv")


TEXTS_OF_CELLS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1+1", "'=1", "''=1", "-", "'tis", "glioma", "-1 °C"]


def test_no_cell_of_a_result_table_begins_a_formula_and_all_come_back_as_they_were(tmp_path: Path) -> None:
    """Right answers and tags of an imported set, and titles from YAML, stand at the start of cells that a person opens in a spreadsheet."""
    rows = [{"text": text, "number": -0.25, "written": "-0.5"} for text in TEXTS_OF_CELLS]
    write_table(tmp_path / "t.csv", rows, ["text", "number", "written"])
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert not [row["text"] for row in cells if row["text"][0] in "=+-@\t\r＝＋－＠"]
    assert {(row["number"], row["written"]) for row in cells} == {("-0.250000", "-0.5")}, "numbers stay numbers"
    expected = [text.replace("\r", "\n") for text in TEXTS_OF_CELLS]
    assert [row["text"] for row in read_table(tmp_path / "t.csv")] == expected
    write_table(tmp_path / "t.csv", rows, ["text", "number", "written"], guarded=False)
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == expected


def test_json_that_nests_without_end_is_named(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 200_000)
    with pytest.raises(DataError, match=r"deep\.json: not valid JSON \(RecursionError\)"):
        read_json(tmp_path / "deep.json")


def test_a_quarantined_case_is_passed_on_with_the_stage_that_stopped_it(tmp_path: Path) -> None:
    case = CaseRecord(
        benchmark="b", case_id="c", patient_id="p", stage="ingest", state=State.QUARANTINED, reason="why", quarantined_by="ingest"
    )
    write_case(tmp_path / "in" / "case.json", case)
    out = tmp_path / "out" / "case.json"
    run_case_stage("normalise", tmp_path / "in" / "case.json", out, lambda case, folder: pytest.fail("ran"), folders=(out.parent / "png",))
    done = read_case(out)
    assert (done.state, done.reason, done.quarantined_by, done.stage) == (State.QUARANTINED, "why", "ingest", "normalise")
    assert (out.parent / "png").is_dir()


@pytest.mark.parametrize("error", [DataError, DeidentificationError])
def test_mistakes_in_the_data_quarantine(error: type[Exception]) -> None:
    def fail() -> CaseRecord:
        message = "no usable series"
        raise error(message)

    case = CaseRecord(benchmark="b", case_id="c", patient_id="p", stage="ingest")
    assert quarantine_on_error(case, fail).reason == "no usable series"


@pytest.mark.parametrize(
    "error",
    [OSError("disk"), MemoryError(), ImportError("package"), ConfigError("key"), KeyboardInterrupt(), SystemExit(1),
     RuntimeError("Exception thrown in SimpleITK Resample: Failed to allocate memory for image.")],
)  # fmt: skip
def test_a_fault_of_the_machine_or_the_installation_fails_the_job(error: BaseException) -> None:
    def fail() -> CaseRecord:
        raise error

    with pytest.raises(type(error)):
        quarantine_on_error(CaseRecord(benchmark="b", case_id="c", patient_id="p", stage="ingest"), fail)


@pytest.mark.parametrize("debug", [False, True])
def test_an_error_that_nothing_foresaw_keeps_its_case_back_and_says_no_value(
    debug: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A library's message may hold a header value; the traceback is there for who asks for it."""

    def fail() -> CaseRecord:
        message = "Vandermeer"
        raise IndexError(message)

    monkeypatch.setenv("NMB_DEBUG", str(int(debug)))
    case = quarantine_on_error(CaseRecord(benchmark="b", case_id="c", patient_id="p", stage="ingest"), fail)
    assert (case.state, case.quarantined_by) == (State.QUARANTINED, "ingest")
    assert case.reason.startswith("IndexError in files/cases.py: a file is damaged in a way that nothing expects")
    assert "Vandermeer" not in case.reason
    assert ("Vandermeer" in capsys.readouterr().err) is debug


def test_case_json_carries_the_digest_of_every_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "series").mkdir()
    (tmp_path / "series" / "a.nii").write_bytes(b"volume")
    series = Series(series_id="series-01", path="series/a.nii", modality="MR", sequence=Sequence.FLAIR)
    write_case(tmp_path / "case.json", CaseRecord(benchmark="b", case_id="c", patient_id="p", stage="ingest", series=(series,)))
    assert read_case(tmp_path / "case.json").files == {"series/a.nii": sha256_of(tmp_path / "series" / "a.nii")}


def packed_case(out: Path, names: tuple[str, ...] = ("b.png", "a.png")) -> Path:
    """Write a case of pictures as a stage does, in the given order; return its folder."""

    def step(case: CaseRecord, source: Path) -> CaseRecord:
        (out / "sub-c" / "png").mkdir(parents=True)
        for number, name in enumerate(names):
            path = out / "sub-c" / "png" / name
            path.write_bytes(f"picture {name}".encode())
            os.utime(path, (number, number))
        return case

    write_case(out / "in" / "case.json", CaseRecord(benchmark="b", case_id="c", patient_id="p", stage="normalise"))
    run_case_stage("slices", out / "in" / "case.json", out / "sub-c" / "case.json", step)
    return out / "sub-c"


def test_equal_pictures_are_an_equal_pack_and_a_pull_gives_them_back(tmp_path: Path) -> None:
    one, two = packed_case(tmp_path / "one"), packed_case(tmp_path / "two", ("a.png", "b.png"))
    assert (one / "png.zip").read_bytes() == (two / "png.zip").read_bytes()
    assert list(packed_files(one / "png.zip")) == ["a.png", "b.png"]
    assert set(read_case(one / "case.json").files) == {"png/a.png", "png/b.png"}, "the pack holds nothing else"
    shutil.rmtree(one / "png")
    unpack_absent(one.parent)
    (two / "png" / "a.png").write_bytes(b"edited")
    (two / "png" / "c.png").write_bytes(b"of another run")
    for folder in (one, two):
        unpack_cases(folder.parent)
        assert {path.name: path.read_bytes() for path in (folder / "png").iterdir()} == {
            "a.png": b"picture a.png",
            "b.png": b"picture b.png",
        }
    shutil.rmtree(two / "png")
    write_pack(two / "png")
    assert not (two / "png.zip").exists()


@pytest.mark.parametrize("change", ["another picture", "one more", "elsewhere", "cut off"])
def test_a_pack_that_is_not_the_one_of_its_case_is_refused_and_the_folder_stays(tmp_path: Path, change: str) -> None:
    case = packed_case(tmp_path)
    pack = case / "png.zip"
    if change == "cut off":
        pack.write_bytes(pack.read_bytes()[:-30])
    else:
        name = {"another picture": "a.png", "one more": "c.png", "elsewhere": "../a.png"}[change]
        with zipfile.ZipFile(pack, "w") as archive:
            archive.writestr(name, b"not the one of case.json")
    with pytest.raises(DataError, match=r"a damaged pack; delete it|than its case\.json lists; make its stage again"):
        unpack_cases(tmp_path)
    assert sorted(path.name for path in case.iterdir()) == ["case.json", "png", "png.zip"]
    assert (case / "png" / "a.png").read_bytes() == b"picture a.png"


def test_altered_pictures_of_a_case_that_is_gone_are_not_kept_beside_the_packs_of_the_others(tmp_path: Path) -> None:
    for case in ("c", "gone"):
        (tmp_path / "png" / f"sub-{case}").mkdir(parents=True)
        (tmp_path / "png" / f"sub-{case}" / "1.png").write_bytes(b"blank")
    unpack_cases(tmp_path)
    assert (tmp_path / "png" / "sub-gone").exists(), "a folder of a version without packs"
    write_pack(tmp_path / "png" / "sub-c")
    unpack_cases(tmp_path)
    assert sorted(path.name for path in (tmp_path / "png").iterdir()) == ["sub-c", "sub-c.zip"]


def test_a_case_table_comes_back_as_it_was(tmp_path: Path) -> None:
    rows = [CaseRow(case_id="c1", patient_id="p", source_sha256="0", sequence_overrides={"series-02": "FLAIR"}, exclude="")]
    write_case_table(tmp_path / "b.cases.tsv", rows)
    assert read_case_table(tmp_path / "b.cases.tsv") == rows


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "expected the columns case_id"),
        ("case_id\tname\n", "found case_id, name"),
        ("case_id\tpatient_id\tsource_sha256\tsequence_overrides\texclude\nA_1\tp\t0\t\t\n", "line 2: a case id holds"),
        ("case_id\tpatient_id\tsource_sha256\tsequence_overrides\texclude\nc1\tp\n", "line 2: expected 5 cells"),
        ("case_id\tpatient_id\tsource_sha256\tsequence_overrides\texclude\nc1\tp\t0\t\t\nc1\tp\t0\t\t\n", "is listed twice"),
        (
            "case_id\tpatient_id\tsource_sha256\tsequence_overrides\texclude\nc1\tp\t0\tseries-01=FLARE\t\n",
            "line 2: sequence_overrides looks",
        ),
        ("case_id\tpatient_id\tsource_sha256\tsequence_overrides\texclude\nc1\tp\t0\tseries-01\t\n", "line 2: sequence_overrides looks"),
    ],
)
def test_a_wrong_case_table_is_refused_in_one_line(tmp_path: Path, text: str, match: str) -> None:
    (tmp_path / "b.cases.tsv").write_text(text)
    with pytest.raises(ConfigError, match=match):
        read_case_table(tmp_path / "b.cases.tsv")


def test_a_case_table_that_a_spreadsheet_saved_otherwise_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "b.cases.tsv"
    write_case_table(path, [CaseRow(case_id="c1", patient_id="p1", source_sha256="", sequence_overrides={}, exclude="Füße")])
    table = path.read_text(encoding="utf-8")
    path.write_text(table, encoding="utf-8-sig")
    assert [row.case_id for row in read_case_table(path)] == ["c1"]
    path.write_text(table, encoding="latin-1")
    with pytest.raises(ConfigError, match=r"b\.cases\.tsv: the case table is no text file in UTF-8 .*; save it as UTF-8 with tabs"):
        read_case_table(path)


def test_the_digest_of_a_case_does_not_depend_on_names_or_order() -> None:
    assert digest_of_files(["b", "a"]) == digest_of_files(["a", "b"])


def test_a_mistake_is_one_line_and_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    def main(argv: object) -> int:
        message = "table: expected x, found y"
        raise DataError(message)

    assert run_command(main, []) == DataError.exit_code
    assert capsys.readouterr().err == "DataError: table: expected x, found y\n"
    with pytest.raises(DataError):
        run_command(main, ["--debug"])


def test_json_that_is_cut_off_is_named(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1})
    (tmp_path / "a.json").write_text('{"b": ')
    with pytest.raises(DataError, match=r"a\.json: not valid JSON"):
        read_json(tmp_path / "a.json")


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    script = tmp_path / "many.py"
    script.write_text(
        "from neuralmedbench.runtime.commands import run_command\n"
        "def main(argv):\n    print('line\\n' * 200_000)\n    return 0\n"
        "raise SystemExit(run_command(main, []))\n"
    )
    shell = f"{sys.executable} {script} | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell],
        env=os.environ | {"PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "line\n", "")


@pytest.mark.parametrize("name", ["../out.png", "link.png", "deep/../../out.png"])
def test_a_file_outside_of_its_folder_is_never_read_by_a_link_either(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "out.png").write_bytes(b"x")
    (folder / "deep" / "own.png").write_bytes(b"x")
    (folder / "link.png").symlink_to(tmp_path / "out.png")
    assert file_inside(folder, "deep/own.png") == folder / "deep" / "own.png"
    with pytest.raises(DataError, match=r"^the path of a picture leaves the folder$"):
        file_inside(folder, name, "a picture")


@pytest.mark.parametrize("name", ["", "deep", "absent.png", "a" * 5000, "nul\0.png", "loop.png", "loop.png/x.png"])
def test_what_is_no_file_is_not_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "loop.png").symlink_to("loop.png")
    with pytest.raises(DataError, match=r"^the file is not there$"):
        file_inside(tmp_path, name)
