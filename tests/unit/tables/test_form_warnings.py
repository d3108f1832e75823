"""Answers that could not be read or were cut off, questions that state their answer: a warning on the first screen; in-form rate beside pass@1."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import build_report
import build_tables
import draw_figures
import record_provenance
from fixtures.commands import settings
from fixtures.report import blocks_of, build
from fixtures.tables import BREADTH, DEPTH, lose_answers, write_study
from neuralmedbench.files.json_files import write_json_record
from neuralmedbench.files.tables import read_records, read_table, write_records
from neuralmedbench.recording.trace import read_answers, recount
from neuralmedbench.records.answer_leaks import AnswerLeak, AnswerLeaks
from neuralmedbench.records.items import Item
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.records.words import percent
from neuralmedbench.tables.outcomes import Key

MODELS = ("alpha", "beta")
NUMBERS_OF_ANSWERS = ("refused", "truncated", "unparsable", "contradicted", "abstained", "unread_fraction", "truncated_fraction")


def changed(root: Path, which: Callable[[Score], bool], *, benchmark: str = DEPTH, **changes: Any) -> int:
    """Change answers of the model beta under the full request; return how many."""
    path = root / "results" / "scores" / benchmark / "beta.parquet"
    rows = read_records(path, Score)
    chosen = [(row.arm, row.strategy) == ("full", "direct") and which(row) for row in rows]
    new = [replace(row, **changes) if one else row for row, one in zip(rows, chosen, strict=True)]
    write_records(path, Score, new, key=lambda row: (row.item_id, row.arm, row.repeat))
    return sum(chosen)


def board(root: Path, model: str = "beta", benchmark: str = DEPTH) -> dict[str, str]:
    rows = read_table(root / "results" / "tables" / "leaderboard.csv")
    return next(row for row in rows if (row["benchmark"], row["model"]) == (benchmark, model))


def line_of(block: str, title: str) -> str:
    """Return the first row of the block's tables that is about a model."""
    return next(row for row in re.findall(r"<tr.*?</tr>", block, flags=re.DOTALL) if title in row)


def badges(root: Path) -> dict[str, tuple[str, str]]:
    found = json.loads((root / "results" / "tables" / "verdict.json").read_text(encoding="utf-8"))["badges"]
    return {badge["name"]: (badge["state"], badge["text"]) for badge in found}


UNREAD = {"parse_status": ParseStatus.FAILED, "passed": False, "state": "ok"}
CUT = {"parse_status": ParseStatus.FAILED, "passed": False, "state": "truncated"}


def test_a_model_that_is_not_read_is_warned_of_beside_its_rank_and_on_the_first_screen(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=6, arms=("full",))
    number = changed(tmp_path, lambda row: row.repeat < 2, **UNREAD)
    blocks = blocks_of(build(tmp_path, MODELS, figures=False))
    row = board(tmp_path)
    share = number / int(row["expected"])
    assert share > 0.1
    assert (int(row["unparsable"]), float(row["unread_fraction"])) == (number, pytest.approx(share, abs=1e-6))
    # it keeps its rank: unread is wrong, but never in silence
    assert row["rank"]
    assert row["note"].startswith("warning: more than 10 % of the answers are unread")
    words = f"{share:.0%}".replace("%", " %")
    line = line_of(blocks["leaderboard"], "Beta VLM")
    assert f'<small class="warned">{words} unread</small></td>' in line
    assert "warned" not in line_of(blocks["leaderboard"], "Alpha VLM")
    assert f"{words} unread" in blocks["glance"]
    passed, expected = round(float(row["pass1"]) * int(row["expected"])), int(row["expected"])
    ends = f"{percent(passed / expected)} are right if all of these are wrong, {percent((passed + number) / expected)} if all are right"
    assert (
        f"Of the answers of Beta VLM {words} could not be read ({ends}); these count as wrong, whatever the model knows."
        in blocks["glance"]
    )
    # the sentence stands once, where the eye is; other places say it in a word
    assert f"{number} are unread" in blocks["glance"]
    assert sum(html.count("these count as wrong, whatever the model knows") for html in blocks.values()) == 1
    assert f"Answers in another format count in pass@1 too; {number} could not be read" in blocks["leaderboard"]
    found = badges(tmp_path)
    assert found["Answers"] == ("none", "complete")
    assert found["Form of the answers"] == ("warn", "more than 10 % unread: Beta VLM")


def test_a_model_that_is_often_cut_off_is_warned_of(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=6, arms=("full",))
    changed(tmp_path, lambda row: row.repeat == 0, **CUT, text="")
    changed(tmp_path, lambda row: row.repeat == 1, **CUT, text="The lesion is")
    blocks = blocks_of(build(tmp_path, MODELS, figures=False))
    block, row = blocks["leaderboard"], board(tmp_path)
    share, thinking = float(row["truncated_fraction"]), int(row["truncated_thinking"])
    assert 2 * thinking == int(row["truncated"])
    assert f"{percent(share)} were cut off at the limit of tokens ({percent(share / 2)} while thinking)" in blocks["glance"]
    assert 0.1 < share < 0.5
    assert row["note"].startswith("warning: more than 10 % of the answers are cut off")
    assert re.search(r"\d\d % cut off</small>", block)
    assert badges(tmp_path)["Form of the answers"][0] == "warn"


def test_a_few_unread_answers_make_no_warning_and_the_badge_stays_green(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=6, arms=("full",))
    changed(tmp_path, lambda row: row.case_id == "case00" and row.repeat == 0, **UNREAD)
    blocks = blocks_of(build(tmp_path, MODELS, figures=False))
    assert 0 < float(board(tmp_path)["unread_fraction"]) <= 0.1
    assert not [name for name in ("glance", "leaderboard") if "warned" in blocks[name]]
    assert "Form of the answers" not in badges(tmp_path)
    assert badges(tmp_path)["Answers"] == ("ok", "complete")


def test_form_forgiven_ranks_and_form_counted_stands_beside_it(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=6, arms=("full",))
    changed(tmp_path, lambda _: True, passed=True, parse_status=ParseStatus.STRICT)
    changed(tmp_path, lambda row: row.repeat > 0, parse_status=ParseStatus.REPAIRED)
    block = blocks_of(build(tmp_path, MODELS, figures=False))["leaderboard"]
    row = board(tmp_path)
    assert (float(row["pass1"]), row["rank"]) == (1, "1")
    kept = float(row["pass1_strict"])
    assert 0 < kept < 1
    assert float(row["pass1_strict_low"]) <= kept <= float(row["pass1_strict_high"])
    assert "In the form asked for" in block
    line = line_of(block, "Beta VLM")
    assert f'data-value="{row["pass1_strict"]}"><b>' in line
    assert kept == pytest.approx(recount("pass1_strict", read_answers(DEPTH, Key("beta"), root=tmp_path)), abs=1e-6)


def test_a_letter_against_its_words_is_counted_apart(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=6, arms=("full",))
    number = changed(tmp_path, lambda row: row.case_id == "case01", parse_status=ParseStatus.CONTRADICTED, passed=True)
    block = blocks_of(build(tmp_path, MODELS, figures=False))["leaderboard"]
    row = board(tmp_path)
    assert number > 0
    assert int(row["contradicted"]) == number
    assert "some letters stand before the words of another option; the letter counts" in row["note"]
    assert "letter against its words" in block
    assert f"· {number}</td>" in block


def test_of_a_model_without_an_answer_every_number_is_empty(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=6, arms=("full",))
    lose_answers(tmp_path, "beta")
    build(tmp_path, MODELS, figures=False)
    row = board(tmp_path)
    known = {
        "expected",
        "missing",
        "missing_fraction",
        "not_graded",
        "not_graded_fraction",
        "n_items",
        "n_patients",
        "differential_items",
        "differential_patients",
    }
    numbers = {name: cell for name, cell in row.items() if re.fullmatch(r"-?[\d.]+", cell) and name not in known | {"revision"}}
    assert numbers == {}
    assert row["missing_fraction"] == "1.000000"


def test_an_empty_run_has_no_green_badge_and_the_advice_to_bring_data(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha",), patients=2)
    results = tmp_path / "results"
    run = settings(models=["alpha"], statistics={"resamples": 100})
    vocabulary = ["--vocabulary", "config/vocabulary.yaml"]
    tables = ["--out-tables", str(results / "tables"), "--out-metrics", str(results / "metrics.json")]
    assert build_tables.main(["--root", str(tmp_path), *run, *vocabulary, *tables]) == 0
    assert {state for state, _ in badges(tmp_path).values()} == {"none"}
    assert draw_figures.main(["--tables", str(results / "tables"), "--out", str(results / "figures")]) == 0
    provenance = [
        "--root",
        str(tmp_path),
        *settings(models=["alpha"], statistics={"seed": 1}),
        *vocabulary,
        "--out",
        str(results / "provenance.json"),
    ]
    assert record_provenance.main([*provenance, "--inputs"]) == 0
    path = results / "provenance.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"commit": "0" * 40, "dirty": False}), encoding="utf-8")
    assert (
        build_report.main(
            ["--root", str(tmp_path), "--results", str(results), *settings(models=["alpha"]), "--out", str(tmp_path / "r.html")]
        )
        == 0
    )
    blocks = blocks_of((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert 'class="badge ok"' not in blocks["glance"]
    for name in ("glance", "leaderboard"):
        assert "nmb benchmark import --help" in blocks[name]
        assert "Name models" not in blocks[name]


def test_a_run_without_models_is_told_to_name_some(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha",), patients=2)
    assert "Name models in <code>models</code> and run again." in blocks_of(build(tmp_path, (), figures=False))["glance"]
    assert badges(tmp_path)["Answers"] == ("none", "none expected")


def test_the_warning_stands_where_a_public_run_hides_the_numbers(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=6, kind="patient", arms=("full",))
    changed(tmp_path, lambda row: row.repeat < 2, **UNREAD)
    build(tmp_path, MODELS, "public", figures=False)
    row = board(tmp_path)
    assert "warning: more than 10 % of the answers are unread" in row["note"]
    assert not row["unread_fraction"].startswith("0.")
    assert BREADTH != DEPTH


def leak(item: str, severity: str = "answer", arms: tuple[str, ...] = ("full",), accepted: str = "") -> AnswerLeak:
    return AnswerLeak(item_id=item, where="notes", arms=arms, term="glioma", severity=severity, count=1, accepted=accepted)


def test_items_that_state_their_answer_are_counted_on_the_first_screen_and_accepted_or_disclosed_ones_are_not(tmp_path: Path) -> None:
    write_study(tmp_path, models=MODELS, patients=6, arms=("full",))
    items = [item.item_id for item in read_records(tmp_path / "data" / "items" / f"{DEPTH}.parquet", Item)]
    stated = (leak(items[0]), leak(items[0], "code"), leak(items[1], "alias", ("full", "no_image")))
    other = (
        leak(items[2], accepted="an honest history"),
        leak(items[3], arms=("findings_disclosed",)),
        leak(items[4], "field"),
        leak(items[5], "family"),
    )
    leaks = AnswerLeaks(benchmark=DEPTH, items=len(items), leaking=5, accepted=1, leaks=(*stated, *other))
    write_json_record(tmp_path / "data" / "leaks" / f"{DEPTH}.json", leaks)
    glance = blocks_of(build(tmp_path, MODELS, figures=False))["glance"]
    assert re.search(rf"2 of {len(items)} items state the answer in the text that is sent \(\d+ %\), so reading may be enough", glance)
    assert badges(tmp_path)["Answer in the question"] == ("warn", "some items of Depth, made up")
    write_json_record(tmp_path / "data" / "leaks" / f"{DEPTH}.json", replace(leaks, leaks=other))
    assert "state the answer" not in blocks_of(build(tmp_path, MODELS, figures=False))["glance"]
    assert "Answer in the question" not in badges(tmp_path)
