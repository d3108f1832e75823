"""The origin of a number: the chain of files of a cell, its recomputation, and mistyped arguments."""

from __future__ import annotations

import csv
import json
import re
import shutil
from base64 import urlsafe_b64encode
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import yaml

from conftest import ROOT
from fixtures.conversations import add_conversations
from fixtures.tables import BREADTH, DEPTH, GRADERS, write_study
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.models.ledger import LedgerEntry, open_ledger
from neuralmedbench.recording import trace as trace_module
from neuralmedbench.recording.finished_runs import TableCell, look_up_cell
from neuralmedbench.recording.trace import PARTS, trace
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Score
from neuralmedbench.tables.study import read_study
from neuralmedbench.tables.write import TABLES, write_tables

MODELS = ("alpha", "beta", "gamma")
SCORES, RESPONSES, PROMPTS = (
    f"results/scores/{DEPTH}/alpha.parquet",
    f"results/responses/{DEPTH}/alpha.parquet",
    f"data/prompts/{DEPTH}.parquet",
)
TABLE = "results/tables/leaderboard.csv"


def order(row: Response | Score) -> tuple[str, str, int]:
    return row.item_id, row.arm, row.repeat


def made(root: Path, path: str, rule: str, inputs: list[str], *, options: str = "") -> None:
    """Write Snakemake's record of a file, with the current digests of its inputs."""
    file = root / ".snakemake" / "metadata" / urlsafe_b64encode(path.encode()).decode()
    file.parent.mkdir(parents=True, exist_ok=True)
    digests = {name: f"sha256:{sha256_of(root / name)}" for name in inputs if (root / name).is_file()}
    value = {
        "rule": rule,
        "input": inputs,
        "shellcmd": f"python scripts/{rule}.py {options} --out {path} &> logs/{rule}.log",
        "params": ["'0123456789abcdef'", "0.05"],
        "input_checksums": digests,
        "endtime": 1.0,
    }
    file.write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an invented run with tables, a ledger and Snakemake's records; tests that change it copy it."""
    root = tmp_path_factory.mktemp("study")
    write_study(root, models=MODELS)
    # one answer is refused, one is missing
    scores, responses = read_records(root / SCORES, Score), read_records(root / RESPONSES, Response)
    refused, lost = [number for number, row in enumerate(scores) if row.arm == "full"][3:5]
    scores[refused] = replace(scores[refused], state="refused", passed=False)
    scores[lost] = replace(scores[lost], state="failed", missing=True, passed=None)
    responses = [replace(row, call_keys=(f"{number:064x}",)) for number, row in enumerate(responses)]
    with open_ledger(root / f"data/ledger/{DEPTH}/alpha.jsonl") as book:
        for row in responses:
            book.add(LedgerEntry(key=row.call_keys[0], state="ok", text="never shown"))
    write_records(root / SCORES, Score, scores, key=order)
    write_records(root / RESPONSES, Response, responses, key=order)
    settings = IntervalSettings(resamples=100, seed=1, confidence=0.95, max_missing_fraction=0.02)
    study = read_study(root, [DEPTH, BREADTH], MODELS, GRADERS, vocabulary=Path("config/vocabulary.yaml"), settings=settings)
    write_tables(study, root / "results/tables", root / "results/metrics.json")
    cases = []
    for number in range(3):
        case = f"data/slices/{DEPTH}/sub-case0{number}/case.json"
        (root / case).parent.mkdir(parents=True)
        (root / case).write_text(f"{number}")
        made(
            root,
            case,
            "cut_slices",
            [f"data/ingested/{DEPTH}/sub-case0{number}/Anna Muster.json"],
            options=f"--case case0{number} --per-sequence 8",
        )
        cases.append(case)
    (root / "data/prompts").mkdir(exist_ok=True)
    (root / PROMPTS).write_text("prompts")
    made(root, PROMPTS, "assemble_prompts", ["config/prompts/open.j2", *cases, "/home/anna/answers.csv"])
    made(root, RESPONSES, "run_inference", [PROMPTS, "config/models/alpha.yaml"])
    made(root, SCORES, "score_responses", [RESPONSES, f"data/gold/{DEPTH}.parquet"])
    others = [f"results/scores/{DEPTH}/beta.parquet", f"results/scores/{BREADTH}/alpha.parquet", "config/models/beta.yaml"]
    made(root, TABLE, "build_tables", [SCORES, RESPONSES, *others], options="--seed 7 --resamples 100 --vocabulary config/vocabulary.yaml")
    return root


@pytest.fixture
def copy(study: Path, tmp_path: Path) -> Path:
    """Copy the invented run, for tests that change it."""
    shutil.copytree(study, tmp_path / "copy")
    return tmp_path / "copy"


def cell(root: Path, table: str = "leaderboard", row: str = f"benchmark={DEPTH},model=alpha", column: str = "pass1"):
    return look_up_cell(table, row, column, root / "results/tables")


def test_every_plain_number_of_the_tables_is_found_again_in_the_scores(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recomputation shares no arithmetic with the tables, so agreement shows that both read the same answers."""
    for name in ("read_records", "read_ledger"):  # each file is read once, not for each number
        monkeypatch.setattr(trace_module, name, cache(getattr(trace_module, name)))
    plain = "pass1 pass1_patients best_case worst_case candidates5 main_condition core_diagnosis rubric"
    plain += " expected missing missing_fraction n_items refused"
    checked = 0
    for table in ("leaderboard", "measures"):
        with (study / f"results/tables/{table}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        # one model is enough: the one with a refused and a missing answer
        for number, row in ((number, row) for number, row in enumerate(rows, start=1) if row["model"] == "alpha"):
            wanted = plain.split() if table == "leaderboard" else ["value"]
            is_rate = row.get("topic") == "rates" and row["slice"] in PARTS and row["measure"] in {"pass1", "candidates5"}
            countable = table == "leaderboard" or is_rate
            for column in wanted if countable else ():
                if row[column]:
                    text = trace(cell(study, table, str(number), column), root=study)
                    assert f"  recomputed from the scores: {row[column]}, the same" in text, (table, number, column)
                    checked += 1
    assert checked > 40


def test_a_number_that_the_scores_do_not_give_is_flagged(copy: Path) -> None:
    rows = read_records(copy / SCORES, Score)
    write_records(copy / SCORES, Score, [replace(row, passed=False) if row.passed else row for row in rows], key=order)
    text = trace(cell(copy), root=copy)
    assert "recomputed from the scores: 0.000000, which is NOT the number in the table" in text
    assert f"CHANGED since {TABLE} was made" in text


def test_every_digest_that_is_printed_is_that_of_the_file(study: Path) -> None:
    text = trace(cell(study), root=study)
    printed = re.findall(r"^  (\S+)\n    sha256 ([0-9a-f]{64})", text, flags=re.MULTILINE)
    assert {path for path, _ in printed} >= {
        TABLE,
        SCORES,
        RESPONSES,
        PROMPTS,
        "config/prompts/open.j2",
        f"data/ledger/{DEPTH}/alpha.jsonl",
    }
    assert dict(printed) == {path: sha256_of(study / path) for path, _ in printed}


def test_the_chain_is_that_of_the_row_and_names_code_and_settings(study: Path) -> None:
    text = trace(cell(study), root=study)
    assert "by build_tables, code 0123456789abcdef (CHANGED since), --seed 7 --resamples 100\n" in text
    assert f"    from {PROMPTS}\n" in text
    assert f"data/slices/{DEPTH}/sub-*/case.json\n    3 files, digest of their sha256sum listing: sha256 " in text
    assert "by cut_slices, code 0123456789abcdef (CHANGED since), --per-sequence 8\n" in text
    assert "beta" not in text
    assert BREADTH not in text


def test_a_row_about_two_models_shows_both(study: Path) -> None:
    text = trace(cell(study, "contrasts", f"topic=pairs,benchmark={DEPTH},model=alpha,other=beta", "difference"), root=study)
    assert "not recomputed" in text
    assert f"answers of alpha to {DEPTH}" in text
    assert f"answers of beta to {DEPTH}" in text


def test_a_changed_file_is_flagged_and_no_other(copy: Path) -> None:
    assert "CHANGED since results" not in trace(cell(copy), root=copy)
    (copy / PROMPTS).write_text("other prompts")
    text = trace(cell(copy), root=copy)
    assert re.findall(r"^  (\S+)\n    sha256 [0-9a-f]{64}, CHANGED since (\S+) was made", text, flags=re.MULTILINE) == [
        (PROMPTS, RESPONSES)
    ]
    (copy / f"data/slices/{DEPTH}/sub-case01/case.json").write_text("other")
    assert f"data/slices/{DEPTH}/sub-case01/case.json CHANGED since {PROMPTS} was made" in trace(cell(copy), root=copy)
    (copy / PROMPTS).unlink()
    assert f"  {PROMPTS}\n    1 of 1 files are not here" in trace(cell(copy), root=copy)


def test_an_answer_that_left_the_ledger_is_seen(copy: Path) -> None:
    ledger = copy / f"data/ledger/{DEPTH}/alpha.jsonl"
    text = trace(cell(copy), root=copy)
    count = int(re.search(r"(\d+) of the (\d+) calls behind the number are in it\n", text).group(2))
    keys = [key for row in read_records(copy / RESPONSES, Response) if row.arm == "full" for key in row.call_keys]
    assert count == len(keys)
    ledger.write_text("".join(line for line in ledger.read_text().splitlines(keepends=True) if keys[0] not in line))
    assert f"{count - 1} of the {count} calls behind the number are in it: NOT all" in trace(cell(copy), root=copy)


def test_neither_the_private_zone_nor_what_was_said_is_printed(study: Path) -> None:
    text = trace(cell(study), responses=0, root=study)
    assert "from 3 files in the private zone, which are not followed" in text
    assert "from 1 files in the private zone, which are not followed" in text
    for word in ("Anna", "anna", "ingested", "never shown", "DIFFERENTIAL", "headache", str(study)):
        assert word not in text


def test_the_answers_behind_a_number_are_listed_with_the_command_that_shows_one(study: Path) -> None:
    few, everything = (trace(cell(study), responses=number, root=study) for number in (2, 0))
    assert "  and 22 more items (--responses 0 lists all)" in few
    assert len(re.findall(r"request 0{16}, call [0-9a-f]{16} \(the first of \d\)", everything)) == 24
    assert f"nmb model explain --benchmark {DEPTH} --model alpha --item {DEPTH}/case00/differential_diagnosis --arm full" in few


def test_why_answers_were_not_read_stands_below_their_item_without_their_words(copy: Path) -> None:
    rows = read_records(copy / SCORES, Score)
    assert "not read" not in trace(cell(copy), responses=0, root=copy)
    unread = [replace(row, parse_status="failed", text="As an AI, I am unable to say.") if row.arm == "full" else row for row in rows]
    write_records(copy / SCORES, Score, unread, key=order)
    text = trace(cell(copy), responses=0, root=copy)
    assert re.search(r"^    \d+ not read: refuses$", text, re.MULTILINE)
    assert "unable" not in text


def test_two_traces_are_equal(study: Path) -> None:
    assert trace(cell(study), root=study) == trace(cell(study), root=study)


def test_without_records_the_number_and_its_answers_are_still_shown(copy: Path) -> None:
    shutil.rmtree(copy / ".snakemake")
    text = trace(cell(copy), root=copy)
    assert "Snakemake has no records here, `nmb run pull` brings them" in text
    assert "the same" in text


@pytest.mark.parametrize(
    ("table", "row", "column", "message"),
    [
        ("leaderbord", "1", "pass1", "leaderbord: no table has this name; did you mean 'leaderboard'?"),
        ("leaderboard", "99", "pass1", "leaderboard: no row 99; it has 8 rows, the first is 1"),
        ("leaderboard", "0", "pass1", "leaderboard: no row 0"),
        ("leaderboard", "1", "pass2x", "leaderboard: no column 'pass2x'; did you mean 'pass5'?"),
        ("leaderboard", "modle=alpha", "pass1", "leaderboard: no column 'modle'; did you mean 'model'?"),
        ("leaderboard", "model=alfa", "pass1", "leaderboard: no row with model=alfa; did you mean 'alpha'?"),
        ("leaderboard", "alpha", "pass1", "neither a number nor of the form column=value, as in benchmark=demo,model=fusion"),
        (
            "leaderboard",
            "model=alpha",
            "pass1",
            "leaderboard: 2 rows match model=alpha; add benchmark or axis, or give the number of the row",
        ),
    ],
)
def test_what_a_person_mistypes_is_one_clear_line(study: Path, table: str, row: str, column: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        cell(study, table, row, column)


def test_a_table_that_was_never_made_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"leaderboard\.csv: the table is missing; run the pipeline, or `nmb run pull`"):
        cell(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "leaderboard: no row 1; it has none in this run"),
        ("benchmark,model\na,b,c\n", r"leaderboard.csv: a row has more cells than the first line has names (line 2)"),
    ],
)
def test_a_table_that_was_cut_or_changed_by_hand_is_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "results" / "tables").mkdir(parents=True)
    (tmp_path / TABLE).write_text(text, encoding="utf-8")
    with pytest.raises((ConfigError, DataError), match=re.escape(message)):
        cell(tmp_path, row="1")


def test_the_keys_of_every_table_tell_its_rows_apart(study: Path) -> None:
    alike = []
    for table in TABLES:
        rows = read_result(study / "results/tables", table.name)
        if len({tuple(row[name] for name in table.keys) for row in rows}) < len(rows):
            alike.append(table.name)
    assert alike == []
    assert {"slice", "value_of_slice"} <= set(next(table for table in TABLES if table.name == "degradation").keys)
    assert "note" not in cell(study).keys


def test_a_table_is_found_by_its_path_too(study: Path) -> None:
    assert cell(study, TABLE) == cell(study)


@pytest.mark.parametrize(
    ("table", "arm", "arms"),
    [
        ("leaderboard", "", ("full",)),
        ("arms", "no_image", ("no_image",)),
        ("pressure", "suggestion-right suggestion-wrong", ("full", "suggestion-right", "suggestion-wrong")),
        ("pressure", "full paraphrase-1", ("full", "paraphrase-1")),
    ],
)
def test_a_row_about_several_arms_leads_to_the_answers_of_each(table: str, arm: str, arms: tuple[str, ...]) -> None:
    assert TableCell(table, 1, "value", {"topic": table, "arm": arm, "value": "0"}).arms == arms


@pytest.mark.parametrize(
    ("table", "row", "strategies"),
    [
        ("leaderboard", {}, ("direct",)),
        ("measures", {"strategy": "cot"}, ("cot",)),
        ("measures", {"strategy": "viewer"}, ("viewer",)),
        ("contrasts", {"strategy": "viewer", "other_strategy": "direct"}, ("viewer", "direct")),
        ("contrasts", {"strategy": "ask", "other_strategy": "ask"}, ("ask",)),
    ],
)
def test_a_row_leads_to_the_answers_under_its_strategies(table: str, row: dict[str, str], strategies: tuple[str, ...]) -> None:
    assert TableCell(table, 1, "value", {"value": "0", **row}).strategies == strategies


def test_the_answers_of_a_model_that_looked_for_itself_are_listed_and_not_those_to_chosen_slices(copy: Path) -> None:
    add_conversations(copy, "alpha")
    row = {"benchmark": DEPTH, "model": "alpha", "topic": "viewer", "measure": "lesion_found", "strategy": "viewer", "value": "1"}
    text = trace(TableCell("measures", 1, "value", row), root=copy)
    assert f"answers of alpha to {DEPTH}, arm full, strategy viewer\n  1 items" in text
    assert "strategy direct" not in text
    assert "--arm full --strategy viewer" in text


def test_a_comparison_with_oracle_slices_leads_to_the_answers_under_their_arm(copy: Path) -> None:
    add_conversations(copy, "alpha")
    shutil.copytree(ROOT / "config" / "arms", copy / "config" / "arms", dirs_exist_ok=True)
    path = copy / f"config/benchmarks/{DEPTH}.yaml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump(config | {"arms": [*config["arms"], "oracle_slices"]}), encoding="utf-8")
    row = {"benchmark": DEPTH, "model": "alpha", "topic": "viewer", "measure": "oracle_difference", "difference": "0.1"}
    row |= {"arm": "oracle_slices", "strategy": "direct", "other_arm": "full", "other_strategy": "viewer"}
    text = trace(TableCell("contrasts", 1, "difference", row), root=copy)
    assert re.findall(r"arm (\w+), strategy (\w+)$", text, flags=re.MULTILINE) == [
        ("oracle_slices", "direct"),
        ("full", "viewer"),
    ]


def test_a_cell_of_degraded_pictures_stands_on_the_full_request_and_all_artefacts_of_its_level() -> None:
    cell = TableCell("measures", 1, "value", {"topic": "degradation", "arm": "degraded-noise-2", "value": "0"})
    assert cell.arms == ("full", "degraded-noise-2")
