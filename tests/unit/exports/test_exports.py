"""Exports: each form gives n, interval, grader and tier back as the tables have them; small cells and private ids never travel."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
import zipfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from fixtures.exports import MODELS, closed_exports, export, make, shared_exports
from fixtures.tables import BREADTH, DEPTH
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError, DeidentificationError
from neuralmedbench.exports.released import ReleasedScore, model_id
from neuralmedbench.exports.write import IdSearch, require_no_ids, texts_in
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.results import FEWEST, LEFT_OPEN

Row = dict[str, str]
ID = re.compile(r"(?:case|patient)\d\d")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exports of a made-up run that may be shown: 12 simulated patients, of whom the answers of one model are missing."""
    return shared_exports(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exports of an internal run about 22 patients of a site."""
    return closed_exports(tmp_path_factory.mktemp("closed"))


def table(exports: Path, name: str) -> list[Row]:
    with (exports.parent / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def board(exports: Path) -> dict[tuple[str, str], Row]:
    """Give the rows of the leaderboard of models whose rate is known."""
    return {(row["benchmark"], row["model"]): row for row in table(exports, "leaderboard") if row["pass1"] and row["model"] != "prior"}


def told(row: Row, grader: str) -> dict[str, Any]:
    """Give what has to survive every trip: the number, n, interval, grader and tier."""
    numbers = [float(row[name]) for name in ("pass1", "pass1_low", "pass1_high")]
    return {"number": numbers, "method": row["interval"], "n": [row["n_items"], row["n_patients"]], "grader": grader, "tier": row["tier"]}


def grader_of(benchmark: str) -> str:
    """Open questions are decided by the first grader, the fields of pictures by none."""
    return "rubric" if benchmark == DEPTH else ""


def expected(exports: Path) -> dict[tuple[str, str], dict[str, Any]]:
    return {key: told(row, grader_of(key[0])) for key, row in board(exports).items()}


def from_parquet(exports: Path) -> dict[tuple[str, str], dict[str, Any]]:
    rows = read_records(exports / "scores.parquet", ReleasedScore)
    return {
        (row.benchmark, row.model): {
            "number": [row.value, row.low, row.high],
            "method": row.interval,
            "n": [str(row.n_items), str(row.n_patients)],
            "grader": row.grader or "",
            "tier": str(row.tier),
        }
        for row in rows
        if row.tier is not None
    }


def from_every_eval_ever(exports: Path) -> dict[tuple[str, str], dict[str, Any]]:
    found = {}
    for path in (exports / "every_eval_ever").rglob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        for result in record["evaluation_results"]:
            score, metric = result["score_details"], result["metric_config"]
            benchmark, _, arm = result["evaluation_name"].partition(".")
            if (metric["metric_name"], arm) == ("pass1", "full"):
                limits, details = score["uncertainty"]["confidence_interval"], score["details"]
                assert score["uncertainty"]["num_samples"] == int(details["n_items"])
                found[benchmark, path.parent.name] = {
                    "number": [score["score"], limits["lower"], limits["upper"]],
                    "method": limits["method"],
                    "n": [details["n_items"], details["n_patients"]],
                    "grader": details.get("grader", ""),
                    "tier": details["tier"],
                }
    return found


def from_inspect(exports: Path) -> dict[tuple[str, str], dict[str, Any]]:
    found = {}
    for path in (exports / "inspect").rglob("*.eval"):
        with zipfile.ZipFile(path) as log:
            header = json.loads(log.read("header.json"))
        for score in header["results"]["scores"]:
            if score["name"] == "pass1":
                about = score["metadata"]
                found[path.parent.name, path.stem] = {
                    "number": [score["metrics"][name]["value"] for name in ("mean", "ci_lower", "ci_upper")],
                    "method": about["interval"],
                    "n": [about["n_items"], about["n_patients"]],
                    "grader": about.get("grader", ""),
                    "tier": about["tier"],
                }
    return found


NOTES = re.compile(
    r"pass1 over (?P<items>\d+) items of (?P<patients>\d+) patients; 95 % interval (?P<low>[\d.]+) to (?P<high>[\d.]+) \((?P<method>[\w -]+)\);"
    r" grader (?P<grader>[\w;-]+); tier (?P<tier>\d+), rank .*"
)


def from_hub(exports: Path) -> dict[tuple[str, str], dict[str, Any]]:
    found = {}
    for path in (exports / "hub").rglob("*.yaml"):
        if path.name != "eval.yaml":
            (entry,) = yaml.safe_load(path.read_text(encoding="utf-8"))
            notes = NOTES.fullmatch(entry["notes"])
            assert notes, entry["notes"]
            found[entry["dataset"]["task_id"], path.stem] = {
                "number": [entry["value"], float(notes["low"]), float(notes["high"])],
                "method": notes["method"],
                "n": [notes["items"], notes["patients"]],
                "grader": notes["grader"].replace("none", ""),
                "tier": notes["tier"],
            }
    return found


def from_crate(exports: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Follow the crate to its table of numbers."""
    graph = {entity["@id"]: entity for entity in json.loads((exports / "ro-crate-metadata.json").read_text(encoding="utf-8"))["@graph"]}
    (action,) = (entity for entity in graph.values() if entity["@type"] == "CreateAction")
    (result,) = (one["@id"] for one in action["result"] if graph[one["@id"]]["encodingFormat"].endswith("parquet"))
    assert graph[result]["sha256"] == hashlib.sha256((exports / result).read_bytes()).hexdigest()
    return from_parquet((exports / result).parent)


@pytest.mark.parametrize("read", [from_parquet, from_every_eval_ever, from_inspect, from_hub, from_crate])
def test_every_form_gives_back_the_number_its_n_interval_grader_and_tier(shared: Path, read: Callable[[Path], Any]) -> None:
    found = read(shared)
    assert found.keys() == expected(shared).keys()
    for key, numbers in expected(shared).items():
        assert found[key] == numbers, key


def test_the_tidy_table_has_every_rate_and_the_codebook_every_column(shared: Path) -> None:
    rows, book = read_records(shared / "scores.parquet", ReleasedScore), json.loads((shared / "codebook.json").read_text(encoding="utf-8"))
    keys = ("benchmark", "model", "arm", "strategy", "slice", "value_of_slice")
    numbers = {(*(getattr(row, name) for name in keys), row.metric): row for row in rows}
    rates = read_result(shared.parent / "tables", "rates")
    for row in rates:
        one = numbers[*(row[name] for name in keys), row["measure"]]
        shown = [] if one.withheld or row["method"] == LEFT_OPEN else [row["value"], row["low"], row["high"]]
        assert [f"{value:z.6f}" if value is not None else "" for value in (one.value, one.low, one.high)] == (shown or [""] * 3)
        assert one.withheld == (f"<{FEWEST} patients" if row["few_patients"] else None)
        counts = ["" if count is None else str(count) for count in (one.n_items, one.n_patients, one.missing)]
        assert counts == [row["n_items"], row["n_patients"], row["left_out"]]
    assert len(rows) == len(numbers) == book["rows"]
    assert {key[-1] for key in numbers} - {row["measure"] for row in rates} == {"pass1_patients", "pass1_strict", "calibrated"}
    assert [entry["name"] for entry in book["columns"]] == [entry.name for entry in fields(ReleasedScore)]
    assert all(entry["description"] and entry["type"] in {"str", "int", "float", "bool"} for entry in book["columns"])
    assert next(entry["levels"] for entry in book["columns"] if entry["name"] == "benchmark") == [DEPTH, BREADTH]


def test_single_answers_read_back_to_the_rate(shared: Path) -> None:
    for (benchmark, model), row in board(shared).items():
        (record,) = (shared / "every_eval_ever" / "data" / benchmark).glob(f"*/{model}/*.json")
        lines = record.with_name(f"{record.stem}_samples.jsonl").read_text(encoding="utf-8").splitlines()
        beside = json.loads(record.read_text(encoding="utf-8"))["detailed_evaluation_results"]
        assert beside["total_rows"] == len(lines) == int(row["expected"])
        assert (shared / "every_eval_ever" / beside["file_path"]).name == f"{record.stem}_samples.jsonl"
        by_item = defaultdict(list)
        for line in map(json.loads, lines):
            by_item[line["sample_id"]].append(line["evaluation"]["score"])
        assert f"{sum(sum(one) / len(one) for one in by_item.values()) / len(by_item):.6f}" == row["pass1"]
        with zipfile.ZipFile(shared / "inspect" / benchmark / f"{model}.eval") as log:
            samples = [json.loads(log.read(name)) for name in log.namelist() if name.startswith("samples/")]
        values = defaultdict(list)
        for sample in samples:
            values[sample["id"]].append(sample["scores"]["pass1"]["value"])
        assert values == by_item


def test_a_rate_that_missing_answers_leave_open_has_its_bounds_and_no_number(shared: Path) -> None:
    rows = [
        row
        for row in read_records(shared / "scores.parquet", ReleasedScore)
        if (row.benchmark, row.model, row.arm, row.slice, row.metric) == (DEPTH, "delta", "full", "all", "pass1")
    ]
    assert [(row.value, row.low, row.tier, row.missing) for row in rows] == [(None, None, None, 6)]
    assert 0 < (rows[0].worst_case or 0) < (rows[0].best_case or 0)
    assert not list((shared / "every_eval_ever").glob(f"data/{DEPTH}/*/delta/*"))
    with zipfile.ZipFile(shared / "inspect" / DEPTH / "delta.eval") as log:
        results = json.loads(log.read("header.json"))["results"]
        lost = [name for name in log.namelist() if name.startswith("samples/") and json.loads(log.read(name))["error"]]
    assert results["total_samples"] - results["completed_samples"] == len(lost) == 6


def test_the_crate_names_every_file_of_the_exports(shared: Path) -> None:
    graph = json.loads((shared / "ro-crate-metadata.json").read_text(encoding="utf-8"))["@graph"]
    (root,) = (entity for entity in graph if entity["@id"] == "./")
    files = {path.relative_to(shared).as_posix() for path in shared.rglob("*") if path.is_file()}
    assert {part["@id"] for part in root["hasPart"]} == files - {"ro-crate-metadata.json"}
    assert {"workflow/Snakefile", "workflow/rules/80_tables.smk", "provenance.json"} <= files


def test_equal_runs_give_equal_files(shared: Path, tmp_path: Path) -> None:
    before = {path.relative_to(shared): path.read_bytes() for path in shared.rglob("*") if path.is_file()}
    again = export(shared.parent.parent, MODELS)
    assert {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()} == before


def test_nothing_of_single_patients_travels_and_no_number_is_about_few(closed: Path) -> None:
    for path in closed.rglob("*"):
        assert not ID.search(path.name)
        if path.is_file():
            assert not [place for place, text in texts_in(path.name, path.read_bytes()) if ID.search(text)], path
    assert not [*closed.rglob("*_samples.jsonl"), *(closed / "hub").rglob("*")]
    with zipfile.ZipFile(closed / "inspect" / DEPTH / "alpha.eval") as log:
        assert not [name for name in log.namelist() if name.startswith("samples/")]
    rows = read_records(closed / "scores.parquet", ReleasedScore)
    hidden = [row for row in rows if row.withheld]
    assert len(hidden) > 20
    assert {row.withheld for row in hidden} <= {"<10", "<10 patients", "(hidden)"}
    assert not [row for row in hidden if (row.value, row.low, row.n_items, row.n_patients, row.missing) != (None,) * 5]
    assert min(row.n_patients for row in rows if row.n_patients) >= 10
    assert [row.value for row in rows if (row.model, row.tier) == ("alpha", 1)]
    provenance = json.loads((closed / "provenance.json").read_text(encoding="utf-8"))
    assert (provenance["inputs"], provenance["models"]) == ({}, [])


def test_a_public_run_exports_the_same(closed: Path, tmp_path: Path) -> None:
    root = tmp_path / "public"
    shutil.copytree(closed.parent.parent, root, ignore=shutil.ignore_patterns("exports", "tables", "rules"))
    assert read_records(make(root, ("alpha",), "public") / "scores.parquet", ReleasedScore) == read_records(
        closed / "scores.parquet", ReleasedScore
    )


def test_a_private_id_in_a_title_stops_the_export_and_the_old_one_stays(closed: Path, tmp_path: Path) -> None:
    root = tmp_path / "planted"
    shutil.copytree(closed.parent.parent, root)
    before = sorted((root / "results" / "exports").rglob("*"))
    path = root / "config" / "models" / "alpha.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("Alpha VLM", "Alpha for Patient07"), encoding="utf-8")
    with pytest.raises(DeidentificationError, match="nothing was exported") as raised:
        export(root, ("alpha",))
    assert not ID.search(str(raised.value).casefold())
    assert sorted((root / "results" / "exports").rglob("*")) == before


def plant_in_zip(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(files["header.json"])
    header["eval"]["metadata"]["revision"] = "of case07"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, json.dumps(header) if name == "header.json" else content)


def plant_in_parquet(path: Path) -> None:
    from dataclasses import replace

    rows = read_records(path, ReleasedScore)
    write_records(path, ReleasedScore, [replace(rows[0], note="see case07"), *rows[1:]], key=str)


def plant_in_json(path: Path) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**value, "case07": 1} if isinstance(value, dict) else value), encoding="utf-8")


def plant_in_text(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "\n# CASE07\n", encoding="utf-8")


def plant_in_field(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace('"description": "', '"description": "sub-case07 '), encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "plant", "place"),
    [
        ("scores.parquet", plant_in_parquet, "scores.parquet, row 0, column note"),
        (f"inspect/{DEPTH}/alpha.eval", plant_in_zip, "member 4, field eval.metadata.revision"),
        ("codebook.json", plant_in_json, "codebook.json, a key of the file"),
        ("zenodo.json", plant_in_field, "zenodo.json, field metadata.description"),
        ("ro-crate-metadata.json", plant_in_field, "ro-crate-metadata.json, field @graph"),
        ("README.md", plant_in_text, "README.md, line"),
        ("workflow/Snakefile", plant_in_text, "workflow/Snakefile, line"),
    ],
)
def test_an_id_planted_anywhere_is_found_with_file_and_field(closed: Path, tmp_path: Path, file: str, plant: Any, place: str) -> None:
    folder = tmp_path / "exports"
    (folder / file).parent.mkdir(parents=True)
    shutil.copy(closed / file, folder / file)
    require_no_ids(folder, {"case07", "patient07"})
    plant(folder / file)
    with pytest.raises(DeidentificationError, match=re.escape(place)) as raised:
        require_no_ids(folder, {"case07", "patient07"})
    assert not ID.search(str(raised.value).casefold())


def test_an_id_planted_in_a_record_a_line_or_a_name_is_found_too(shared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    shutil.copytree(shared, folder)
    with pytest.raises(DeidentificationError, match=r"field|line|member"):  # the phantoms' own cases, as if they were private
        require_no_ids(folder, {"case07"})
    for path in [*folder.rglob("*_samples.jsonl"), *folder.rglob("*.eval")]:
        path.unlink()
    require_no_ids(folder, {"case07"})
    record = next((folder / "every_eval_ever").rglob("*.json"))
    plant_in_field(record)
    record.write_text(record.read_text(encoding="utf-8").replace('"source_name": "', '"source_name": "case07 '), encoding="utf-8")
    with pytest.raises(DeidentificationError, match=r"field source_metadata\.source_name"):
        require_no_ids(folder, {"case07"})
    record.unlink()
    entry = folder / "hub" / DEPTH / "alpha.yaml"
    entry.write_text(entry.read_text(encoding="utf-8").replace("pass1 over", "case07 pass1 over"), encoding="utf-8")
    with pytest.raises(DeidentificationError, match=r"alpha.yaml, entry 0\.notes"):
        require_no_ids(folder, {"case07"})
    entry.rename(entry.with_name("case07.yaml"))
    with pytest.raises(DeidentificationError, match=r"file \d+ of \d+, its name") as raised:
        require_no_ids(folder, {"case07"})
    assert "case07" not in str(raised.value)


def test_an_id_is_a_whole_word_and_many_ids_take_no_longer() -> None:
    search = IdSearch([*(f"{number:012x}" for number in range(50_000)), "ward/c1/Rationale", "Patient_7"])
    assert [
        search.finds(text) for text in ("see WARD/c1/rationale.", "sub-00000000c34f_T1w", "the patient_7's", "x/ward/c1/rationale/y")
    ] == [True] * 4
    assert [search.finds(text) for text in ("ward/c1", "00000000c34f1", "00000000c350", "patient 7", "patient_71", "")] == [False] * 6
    assert not search.finds("0 00 000 0000 c34f ward c1 rationale " * 20_000)


@pytest.mark.parametrize(
    ("backend", "name", "base", "known"),
    [
        ("litellm", "openai/gpt-4o", None, ("openai", "gpt-4o")),
        ("litellm", "openrouter/qwen/qwen3-vl", None, ("qwen", "qwen3-vl")),
        ("litellm", "gemini/gemini-2.5-flash", None, ("google", "gemini-2.5-flash")),
        ("litellm", "openai/ours", "http://localhost:8000/v1", ("unknown", "ours")),
        ("litellm", "hosted_vllm/Qwen/Qwen3-VL-8B", "http://localhost:8000/v1", ("Qwen", "Qwen3-VL-8B")),
        ("transformers", "Qwen/Qwen3-VL-8B", None, ("Qwen", "Qwen3-VL-8B")),
        ("transformers", "/home/me/of patient/weights", None, ("unknown", "m")),
        ("transformers", "./weights/smol", None, ("unknown", "smol")),
        ("imported", "some-model", None, ("unknown", "some-model")),
        ("builtin", "fusion", None, ("neural-medbench-pipeline", "m")),
    ],
)
def test_a_model_is_called_as_on_the_hub(backend: Any, name: str, base: str | None, known: tuple[str, str]) -> None:
    assert model_id(ModelConfig(title="M", backend=backend, id=name, revision="1", api_base=base).named("m")) == known


def test_a_limited_run_is_not_exported(shared: Path) -> None:
    with pytest.raises(ConfigError, match="limited to 5 answers is no result"):
        export(shared.parent.parent, MODELS, limit=5)
