"""Reference pools: models whose answers were used to choose the items are marked everywhere, and scored by other answers."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

import run_inference
from fixtures.commands import settings
from fixtures.report import build
from fixtures.tables import BREADTH, DEPTH, write_study
from neuralmedbench.cli.model import import_responses
from neuralmedbench.config.load import load_model, load_model_for
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.cases import write_audit
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.models.call_keys import call_key
from neuralmedbench.models.conversation import PromptMessage
from neuralmedbench.records.case import Audit
from neuralmedbench.records.items import Item
from neuralmedbench.records.requests import Request, RequestTurn
from neuralmedbench.records.responses import Response
from neuralmedbench.records.results import COLUMNS, POOL_MARKS
from neuralmedbench.records.scores import Rating

ROOT = Path(__file__).parents[3]
VOCABULARY = ROOT / "config" / "vocabulary" / "neurology.yaml"
FIGURES = ("leaderboard", "glance", "arms", "heatmap")
NAMED = {name: columns for name, columns in COLUMNS.items() if "model" in columns}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study in which beta chose the items of the depth benchmark, with one rating of each model."""
    root = tmp_path_factory.mktemp("pool")
    write_study(root, models=("alpha", "beta"), patients=4)
    path = root / "config" / "benchmarks" / f"{DEPTH}.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "\nreference_pool: [beta]\n", encoding="utf-8")
    item = read_records(root / "results" / "responses" / DEPTH / "beta.parquet", Response)[0].item_id
    rated = [
        Rating(
            round_id="one", rater_id="r1", item_id=item, arm="full", strategy="direct", model=model, revision="1", repeat=0,
            text_sha256="0" * 64, axis="dx_correct", value=2.0, seconds=None, stale=False, simulated=True,
        )
        for model in ("alpha", "beta")
    ]  # fmt: skip
    write_records(root / "results" / "ratings" / "ratings.parquet", Rating, rated, key=lambda row: row.model)
    (root / "report.html").write_text(build(root, ("alpha", "beta"), figures=FIGURES), encoding="utf-8")
    return root


def rows_of(study: Path, table: str) -> list[dict[str, str]]:
    return read_result(study / "results" / "tables", table)


def test_every_table_that_names_a_model_has_the_mark() -> None:
    assert len(NAMED) > 8
    assert all(set(columns) & set(POOL_MARKS) for columns in NAMED.values())


EMPTY_HERE = {}
"""Tables in which this study has no model."""


@pytest.mark.parametrize("table", sorted(NAMED))
def test_the_models_of_the_pool_are_marked_for_their_benchmark_alone(study: Path, table: str) -> None:
    rows = rows_of(study, table)
    for mark in set(NAMED[table]) & set(POOL_MARKS):
        benchmark, model = POOL_MARKS[mark]
        expected = [str(row[model] == "beta" and row.get(benchmark, DEPTH) == DEPTH).lower() for row in rows]
        # a comparison of one model with itself names no other
        expected = ["" if model == "other" and not row[model] else cell for row, cell in zip(rows, expected, strict=True)]
        assert [row[mark] for row in rows] == expected, mark
        assert "false" in expected, mark
    depth = not {"benchmark"} & set(NAMED[table]) or any(row["benchmark"] == DEPTH for row in rows)
    marked = [row for row in rows if "true" in (row.get(mark) for mark in POOL_MARKS)]
    assert bool(marked) == depth, "no row of the pool's model stands in this table"


def heads(page: str, model: str) -> list[str]:
    """Cells of tables that name a model."""
    return re.findall(rf'(?s)<t[hd][^>]*data-value="{model}">.*?</t[hd]>', re.sub(r"(?s)<svg.*?</svg>", "", page))


def test_the_report_marks_the_model_in_every_table_that_names_it(study: Path, tmp_path: Path) -> None:
    shutil.copytree(study, tmp_path / "both")
    path = tmp_path / "both" / "config" / "benchmarks" / f"{BREADTH}.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "\nreference_pool: [beta]\n", encoding="utf-8")
    page = build(tmp_path / "both", ("alpha", "beta"), figures=False)
    assert len(heads(page, "beta")) > 20
    assert not [head for head in heads(page, "beta") if "† of the reference pool" not in head]
    assert heads(page, "alpha")
    assert not [head for head in heads(page, "alpha") if "pool" in head]
    assert "Reference pool: by answers of some models the items were chosen" in page


def test_the_report_leaves_a_model_unmarked_where_it_chose_nothing(study: Path) -> None:
    page = (study / "report.html").read_text(encoding="utf-8")
    marked = ["† of the reference pool" in head for head in heads(page, "beta")]
    assert any(marked)
    assert not all(marked)


@pytest.mark.parametrize("figure", FIGURES)
def test_figures_put_a_dagger_behind_the_pool_and_explain_it(study: Path, figure: str) -> None:
    text = (study / "results" / "figures" / f"{figure}.svg").read_text(encoding="utf-8")
    assert len(re.findall(r"(?i)beta (?:VLM )?†", text)) == 1
    assert not re.findall(r"(?i)alpha (?:VLM )?†", text)
    assert f"† of the reference pool of {DEPTH}: what it solved was taken out" in text


def place(root: Path, benchmark: str, pool: list[str], **model: object) -> None:
    values = {"title": "B", "kind": "text", "axis": "depth", "source": "s", "samples": 3, "reference_pool": pool}
    (root / "config" / "benchmarks").mkdir(parents=True, exist_ok=True)
    (root / "config" / "models").mkdir(parents=True, exist_ok=True)
    (root / "config" / "benchmarks" / f"{benchmark}.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    named = {"title": "M", "backend": "builtin", "id": "image", "revision": "1", "temperature": 1.0, "seed": 1} | model
    (root / "config" / "models" / "m.yaml").write_text(yaml.safe_dump(named), encoding="utf-8")


def ask(root: Path, benchmark: str) -> set[str]:
    """Ask the built-in model and return the keys of its answers."""
    text = "Question: What is it?\n\nOptions:\nA. left\nB. right\n\nAnswer in this form:\nANSWER: <the letter of one option>"
    asked = Request(
        item_id=f"{benchmark}/q1", case_id="q1", patient_id="q1", benchmark=benchmark, arm="full", strategy="direct", request_id="r",
        runner="choice", system="", turns=(RequestTurn(text=text),), answer_schema="", samples=3,
    )  # fmt: skip
    write_records(root / f"{benchmark}.parquet", Request, [asked], key=lambda row: row.item_id)
    write_audit(root / "audit.json", Audit(benchmark=benchmark, profile="pseudonymised", kind="public", state="passed"))
    ledger = root / "ledger" / benchmark / "m.jsonl"
    arguments = [
        "--benchmark",
        benchmark,
        "--model",
        "m",
        "--config",
        str(root / "config"),
        "--prompts",
        str(root / f"{benchmark}.parquet"),
    ]
    write_records(root / "items.parquet", Item, [], key=lambda row: row.item_id)
    arguments += [
        "--items",
        str(root / "items.parquet"),
        "--audit",
        str(root / "audit.json"),
        "--vocabulary",
        str(VOCABULARY),
        "--ledger",
        str(ledger),
    ]
    assert run_inference.main([*arguments, *settings(max_failed_fraction=0), "--out", str(root / f"{benchmark}-responses.parquet")]) == 0
    return {json.loads(line)["key"] for line in ledger.read_text(encoding="utf-8").splitlines()}


def test_no_answer_that_a_seed_drew_for_the_choice_scores_the_items_even_where_the_ledger_is_copied(tmp_path: Path) -> None:
    place(tmp_path, "whole", [])
    place(tmp_path, "curated", ["m"])
    chose = ask(tmp_path, "whole")
    (tmp_path / "ledger" / "curated").mkdir()
    (tmp_path / "ledger" / "curated" / "m.jsonl").write_bytes((tmp_path / "ledger" / "whole" / "m.jsonl").read_bytes())
    fresh = ask(tmp_path, "curated") - chose
    assert (len(chose), len(fresh)) == (3, 3)


def test_seeds_of_a_pool_meet_neither_those_that_chose_nor_those_of_another_curation(tmp_path: Path) -> None:
    for benchmark, pool in (("whole", []), ("curated", ["m"]), ("again", ["m"]), ("other", ["n"])):
        place(tmp_path, benchmark, pool)
    said = (PromptMessage("user", "What is it?"),)

    def keys(benchmark: str) -> set[str]:
        model = load_model_for(tmp_path / "config", benchmark, "m")
        return {call_key(model, said, repeat) for repeat in range(100)} | {str((model.seed or 0) + repeat) for repeat in range(100)}

    assert keys("whole") == keys("other")
    assert not keys("whole") & keys("curated")
    assert not keys("curated") & keys("again")
    place(tmp_path, "curated", ["m"], seed=None)
    assert load_model_for(tmp_path / "config", "curated", "m") == load_model(tmp_path / "config" / "models" / "m.yaml")


def test_answers_that_others_collected_score_a_pool_only_when_a_person_says_that_they_are_others(tmp_path: Path) -> None:
    place(tmp_path, "curated", ["m"], backend="imported", id="team/m")
    asked = Request(
        item_id="curated/q1", case_id="q1", patient_id="q1", benchmark="curated", arm="full", strategy="direct", request_id="r", runner="open",
        system="", turns=(RequestTurn(text="What is it?"),), answer_schema="", samples=1,
    )  # fmt: skip
    write_records(tmp_path / "data" / "prompts" / "curated.parquet", Request, [asked], key=lambda row: row.item_id)
    (tmp_path / "a.csv").write_text("item,text\nq1,glioma\n", encoding="utf-8")
    arguments = [str(tmp_path / "a.csv"), "--benchmark", "curated", "--model", "m", "--config", str(tmp_path / "config")]
    arguments += ["--data", str(tmp_path / "data")]
    with pytest.raises(ConfigError, match="add --fresh"):
        import_responses.main(arguments)
    assert not (tmp_path / "data" / "ledger").exists()
    assert import_responses.main([*arguments, "--fresh"]) == 0
