"""Data sets that a user downloaded, from the import to the report: pairs, and one set with every kind of request."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from conftest import LEFT_OUT, NMB, ROOT, copy_project, snakemake, table
from fixtures.asking_server import INVENTED, MAX_QUESTIONS, Asker
from fixtures.imports import put_mixed, put_pairs
from fixtures.models import running_server
from fixtures.reference import assert_as_written
from neuralmedbench.files.tables import read_records
from neuralmedbench.models.informant import INFORMANT
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.records.items import Arm, Strategy
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import ParseStatus, Score

pytestmark = [pytest.mark.workflow, pytest.mark.long]

PAIRS = 6
RUN = {"benchmarks": ["mediconfusion", "mixed"], "models": ["asker"], "graders": ["rubric"], "statistics": {"resamples": 200}}
ARGUMENTS = ("--configfile", "config/imported.yaml", "--")
ANSWERS = "results/imported/responses/mixed/asker.parquet"
SAMPLES = 3
FIRST_HALF = "first_50_percent"
MIXED = {
    "title": "Mixed",
    "kind": "pictures",
    "axis": "depth",
    "source": "data/raw/mixed",
    "questions": "data/questions/mixed",
    "subjects": "public",
    "deidentification": {"burned_in": "keep"},
    "arms": [
        Arm.FULL.value,
        Arm.NO_IMAGE.value,
        Arm.NO_TEXT.value,
        FIRST_HALF,
        Arm.FINDINGS_DISCLOSED.value,
        Arm.DIAGNOSIS_WITHHELD.value,
        Arm.EVIDENCE_SUPPLIED.value,
    ],
    "strategies": [strategy.value for strategy in Strategy if strategy is not Strategy.VIEWER],  # nothing to look through
    "max_questions": MAX_QUESTIONS,
    "few_shot": 20,
    "samples": SAMPLES,
}
ITEMS_OF_ARM = {
    Arm.FULL: {"talk", "endless", "letter", "evidence"},
    Arm.NO_IMAGE: {"talk", "letter", "evidence"},
    Arm.NO_TEXT: {"talk", "endless", "letter", "evidence"},
    FIRST_HALF: {"letter", "evidence"},
    Arm.FINDINGS_DISCLOSED: {"evidence"},
    Arm.DIAGNOSIS_WITHHELD: {"evidence"},
    Arm.EVIDENCE_SUPPLIED: {"evidence"},
}
TRIED = 3
"""Questions of the run that tries the model."""
DIALOGUES = {"talk", "endless"}


def expected_requests() -> set[tuple[str, str, str]]:
    """Return item, arm and strategy of every expected request, by the rules of arms and strategies."""
    suits: dict[Strategy, Callable[[str, str], bool]] = {
        Strategy.FEW_SHOT: lambda item, _: item == "letter",  # the examples are questions with letters
        Strategy.ASK: lambda item, arm: item in DIALOGUES and arm in (Arm.FULL, Arm.NO_IMAGE),
        Strategy.WORKUP: lambda item, arm: item in DIALOGUES and arm in (Arm.FULL, Arm.NO_IMAGE),
    }
    return {
        (f"mixed/{item}", arm, strategy)
        for arm, items in ITEMS_OF_ARM.items()
        for item in items
        for strategy in Strategy
        if strategy is not Strategy.VIEWER
        if strategy not in suits or suits[strategy](item, arm)
    }


@pytest.fixture(scope="module")
def server() -> Iterator[Asker]:
    """Run the model that asks questions back."""
    asker = Asker()
    with running_server(asker):
        yield asker


def try_few(project: Path, server: Asker, environment: dict[str, str]) -> None:
    """Try the model with few questions, before the whole run; keep what was printed and asked."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    words = ["--benchmark", "mixed", "--limit", str(TRIED), "--cores", "2", "--configfiles", "config/imported.yaml"]
    done = subprocess.run(
        [*NMB, "run", "try", "--model", "asker", "--api-base", server.address, "--id", "asker", *words],
        cwd=project,
        env={**os.environ, **environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    (project / "tried.txt").write_text(done.stdout, encoding="utf-8")
    (project / "asked.txt").write_text(str(len(server.bodies)), encoding="utf-8")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, server: Asker, without_torch: dict[str, str]) -> Path:
    """Make a project with two imported small data sets and a run finished without torch; only the last two tests of this file may change it."""
    folder = tmp_path_factory.mktemp("imported")
    project = copy_project(folder / "project")
    pairs = put_pairs(folder / "downloaded", PAIRS)
    command = [*NMB, "benchmark", "import", "mediconfusion", "--from", str(pairs), "--part"]
    subprocess.run(
        command, cwd=project, check=True, capture_output=True, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "scripts")}
    )
    put_mixed(folder / "mixed", project / "data", examples=20)
    for name, value in {"imported": RUN, "benchmarks/mixed": MIXED}.items():
        (project / "config" / f"{name}.yaml").write_text(yaml.safe_dump(value), encoding="utf-8")
    try_few(project, server, without_torch)
    done = snakemake(project, *ARGUMENTS, "results/imported/report.html", env=without_torch)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return project


def responses(run: Path) -> dict[tuple[str, str, str], list[Response]]:
    found: dict[tuple[str, str, str], list[Response]] = {}
    for row in read_records(run / ANSWERS, Response):
        found.setdefault((row.item_id.removeprefix("mixed/"), row.arm, row.strategy), []).append(row)
    return found


def test_an_imported_set_of_pairs_is_asked_scored_and_shown_beside_chance(run: Path) -> None:
    rows = {row["model"]: row for row in table(run, "leaderboard", "imported") if row["benchmark"] == "mediconfusion"}
    assert (rows["asker"]["n_items"], rows["asker"]["n_patients"], rows["asker"]["missing"]) == (str(2 * PAIRS), str(PAIRS), "0")
    assert float(rows["prior"]["pass1"]) == 0.5, "each pair has both answers: a constant earns one half"
    assert float(rows["prior"]["chance"]) == 0.5, "two options: chance is one half"
    rates = [row for row in table(run, "rates", "imported") if row["benchmark"] == "mediconfusion"]
    assert {row["arm"] for row in rates} == {"full", "no_image"}
    pairs = {row["arm"]: row for row in rates if row["measure"] == "pair_right" and row["slice"] == "all"}
    assert (pairs["full"]["n_items"], pairs["full"]["note"]) == (str(PAIRS), "")
    assert (pairs["no_image"]["n_items"], pairs["no_image"]["value"]) == ("0", "")
    assert "share" in pairs["no_image"]["note"], "without pictures both questions of a pair are one request"
    assert "both of a pair right" in rows["asker"]["note"]
    assert rows["prior"]["title"] == "Best constant answer"
    assert rows["prior"]["note"].endswith("not a model. One option at random: 50 %")
    assert "MediConfusion" in (run / "results" / "imported" / "report.html").read_text(encoding="utf-8")


def test_a_run_over_an_api_needs_no_torch_and_says_what_was_not_computed(run: Path, without_torch: dict[str, str]) -> None:
    looked_for = f"from importlib.util import find_spec; print([name for name in {LEFT_OUT} if find_spec(name)])"
    found = subprocess.run(
        [sys.executable, "-c", looked_for], env={**os.environ, **without_torch}, check=True, capture_output=True, text=True
    ).stdout
    assert found == "[]\n", "the run had none of them"
    rows = table(run, "similarity", "imported")
    assert {(row["n_answers"], row["value"], row["note"].partition(":")[0]) for row in rows} == {("0", "", "not computed")}
    assert "not computed: torch and transformers were not installed" in (run / "results" / "imported" / "report.html").read_text(
        encoding="utf-8"
    )


def test_a_model_is_tried_with_few_questions_in_a_run_of_its_own(run: Path) -> None:
    rows = read_records(run / "results/try-asker/responses/mixed/asker.parquet", Response)
    assert [(row.arm, row.strategy, row.repeat) for row in rows] == [(Arm.FULL, Strategy.DIRECT, 0)] * TRIED
    calls = {key for row in rows for key in row.call_keys}
    assert int((run / "asked.txt").read_text()) == len(calls), "nothing else was asked, by no grader either"
    with (run / "results/try-asker/tables/leaderboard.csv").open(encoding="utf-8", newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["model"] == "asker")
    assert (row["expected"], row["missing"], row["rank"], row["tier"]) == (str(TRIED), "0", "", "")
    printed = (run / "tried.txt").read_text(encoding="utf-8")
    assert f"Possible now: {len(calls)} calls" in printed, "the plan comes first"
    assert f"{TRIED} answers of asker to mixed (3 items, " in printed
    assert re.search(r"passed: \d of 3, \d+ % \(95 % interval \d+ % to \d+ %, exact\)", printed)
    assert "the whole run: " in printed
    assert "as a result they say nothing yet" in printed
    page = (run / "results/try-asker/report.html").read_text(encoding="utf-8")
    assert "limited to 3 answers per model" in page
    words = ["run", "record", "--configfiles", "config/imported.yaml", "results/try-asker/try-asker.yaml"]
    recorded = subprocess.run([*NMB, *words], cwd=run, capture_output=True, text=True, check=True).stderr
    assert "nothing was recorded: this is a limited run of 3 answers" in recorded


def test_every_arm_and_strategy_asks_the_items_that_it_suits(run: Path) -> None:
    requests = read_records(run / "data" / "prompts" / "mixed.parquet", Request)
    assert {(row.item_id, row.arm, row.strategy) for row in requests} == expected_requests()
    assert len(requests) == len(expected_requests())
    assert set(responses(run)) == {(item.removeprefix("mixed/"), arm, strategy) for item, arm, strategy in expected_requests()}
    assert {len(rows) for rows in responses(run).values()} == {SAMPLES}


def test_arms_and_strategies_say_what_their_names_promise(run: Path) -> None:
    asked = {(row.item_id, row.arm, row.strategy): row for row in read_records(run / "data" / "prompts" / "mixed.parquet", Request)}

    def words(arm: str, strategy: Strategy = Strategy.DIRECT, item: str = "evidence") -> str:
        return "\n".join(turn.text for turn in asked[f"mixed/{item}", arm, strategy].turns)

    assert "Leigh syndrome" in words(Arm.FULL)
    assert "Leigh syndrome" not in words(Arm.DIAGNOSIS_WITHHELD)
    assert "restless nights" in words(Arm.FULL)
    assert "restless nights" not in words(Arm.NO_TEXT)
    assert "restless nights" not in words(FIRST_HALF)
    assert "a lactate peak" in words(Arm.EVIDENCE_SUPPLIED)
    assert "bright putamina" in words(Arm.FINDINGS_DISCLOSED)
    assert not any(told in words(Arm.FULL) for told in ("a lactate peak", "bright putamina"))
    shown = words(Arm.FULL, Strategy.FEW_SHOT, "letter")
    assert shown.count("ANSWER: B\nCONFIDENCE: 1") == 20
    assert words(Arm.FULL, Strategy.COT) != words(Arm.FULL)


def test_a_model_that_asks_is_told_the_case_bit_by_bit_and_is_stopped_at_the_last_question(run: Path, server: Asker) -> None:
    talk, endless = (responses(run)[item, Arm.FULL, Strategy.ASK][0] for item in ("talk", "endless"))
    assert len(talk.turns) == 3, "two questions and the answer"
    assert talk.images_sent == 1, "it asked for the pictures"
    assert len(endless.turns) == MAX_QUESTIONS + 1, "one more answer than there are questions"
    heard = [body["messages"] for body in server.bodies if server.is_endless(body)]
    assert max(Asker.answers_in(messages) for messages in heard) == MAX_QUESTIONS
    assert any("There are no questions left" in Asker.last(messages) for messages in heard)
    assert any("No fever." in Asker.last(messages) for messages in heard), "it asked for a fever, and the case tells of one"
    assert any("The case does not say." in Asker.last(messages) for messages in heard)
    scores = {
        (row.item_id, row.repeat): row
        for row in read_records(run / "results" / "imported" / "scores" / "mixed" / "asker.parquet", Score)
        if (row.arm, row.strategy) == (Arm.FULL, Strategy.ASK)
    }
    assert {scores["mixed/talk", 0].passed, scores["mixed/endless", 0].passed} == {True, False}
    assert scores["mixed/endless", 0].parse_status == ParseStatus.FAILED, "who still asks has not answered"
    assert not scores["mixed/endless", 0].missing


def test_samples_vote_under_self_consistency_and_count_apart_everywhere_else(run: Path) -> None:
    scores = read_records(run / "results" / "imported" / "scores" / "mixed" / "asker.parquet", Score)
    number = Counter(row.strategy for row in scores)
    wanted = Counter(strategy for _, _, strategy in expected_requests())
    assert number == {strategy: count * (1 if strategy == Strategy.SELF_CONSISTENCY else SAMPLES) for strategy, count in wanted.items()}


def test_the_tables_hold_every_arm_and_strategy_apart_with_its_own_n(run: Path) -> None:
    rates = [
        row for row in table(run, "rates", "imported") if (row["benchmark"], row["slice"], row["measure"]) == ("mixed", "all", "pass1")
    ]
    counted = {(row["arm"], row["strategy"]): int(row["n_items"]) for row in rates}
    assert counted == Counter((arm, strategy) for _, arm, strategy in expected_requests())
    assert_as_written("imported", run / "results/imported")
    page = (run / "results" / "imported" / "report.html").read_text(encoding="utf-8")
    assert {row["strategy"] for row in rates} == {strategy.value for strategy in Strategy} - {Strategy.VIEWER.value}
    assert 'id="strategies"' in page


def test_points_years_and_tags_of_a_set_are_in_scores_tables_and_report(run: Path) -> None:
    scores = read_records(run / "results" / "imported" / "scores" / "mixed" / "asker.parquet", Score)
    points = {(row.arm, row.keyword_coverage) for row in scores if (row.item_id, row.strategy) == ("mixed/talk", "ask")}
    assert points == {("full", 1.0), ("no_image", 1.0)}, "two points of two, and nothing that costs any"
    rates = [row for row in table(run, "rates", "imported") if row["benchmark"] == "mixed"]
    (row,) = [row for row in table(run, "leaderboard", "imported") if (row["benchmark"], row["model"]) == ("mixed", "asker")]
    assert {row["rubric"], row["rubric_low"], row["rubric_high"]} == {""}, "points found by words are in no leaderboard"
    groups = {(row["slice"], row["value_of_slice"]): row["n_items"] for row in rates if row["measure"] == "pass1"}
    assert (groups["year", "2025"], groups["split", "one"]) == ("1", "1")


def test_nothing_is_asked_twice(run: Path, server: Asker) -> None:
    kept = sum(len(read_ledger(path)) for path in (run / "data" / "ledger").glob("*/asker.jsonl"))
    assert len(server.bodies) == kept


def test_a_second_run_has_nothing_to_do_and_one_more_arm_asks_its_own_requests_alone(run: Path, server: Asker) -> None:
    again = snakemake(run, *ARGUMENTS, "results/imported/report.html")
    assert "Nothing to be done" in again.stdout + again.stderr
    before, known = len(server.bodies), set(read_ledger(run / "data" / "ledger" / "mixed" / "asker.jsonl"))
    arms = [*MIXED["arms"], Arm.SHUFFLED_IMAGE.value]
    (run / "config" / "benchmarks" / "mixed.yaml").write_text(yaml.safe_dump({**MIXED, "arms": arms}), encoding="utf-8")
    done = snakemake(run, *ARGUMENTS, ANSWERS)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    # requests before the first picture equal those of the arm full, so the ledger has them: a round of `talk`, and its first question
    talk, letter, evidence, ask = 2 - 1, 1, 1, 3 - 1
    direct_and_steps, few_shot = 2 * (talk + letter + evidence), letter
    assert len(server.bodies) - before == SAMPLES * (direct_and_steps + few_shot + ask)
    ledger = set(read_ledger(run / "data" / "ledger" / "mixed" / "asker.jsonl"))
    assert known < ledger
    assert len(ledger - known) == len(server.bodies) - before
    assert {arm for _, arm, _ in responses(run)} == {*ITEMS_OF_ARM, Arm.SHUFFLED_IMAGE}


def test_a_language_model_that_tells_the_facts_is_planned_asked_and_counted_and_invents_nothing(run: Path, server: Asker) -> None:
    asker = yaml.safe_load((run / "config" / "models" / "asker.yaml").read_text(encoding="utf-8"))
    (run / "config" / "models" / "teller.yaml").write_text(
        yaml.safe_dump({**asker, "title": "Teller", "id": "openai/teller"}), encoding="utf-8"
    )
    (run / "config" / "benchmarks" / "mixed.yaml").write_text(yaml.safe_dump({**MIXED, "informant": "teller"}), encoding="utf-8")
    done = snakemake(run, *ARGUMENTS, "data/prompts/mixed.parquet")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    words = [*NMB, "model", "plan", "--configfiles", "config/imported.yaml"]
    plan = subprocess.run(words, cwd=run, capture_output=True, text=True, check=True).stdout
    (row,) = [line.split() for line in plan.splitlines() if "informant teller on asker" in line]
    before = len(server.bodies)
    done = snakemake(run, *ARGUMENTS, "results/imported/tables/measures.csv")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    told = [body["messages"] for body in server.bodies[before:] if server.informs(body["messages"])]
    assert 0 < len(told) <= int(row[7]), "no more than were planned"
    entries = read_ledger(run / "data" / "ledger" / "mixed" / "asker.jsonl").values()
    assert sum(entry.strategy == INFORMANT for entry in entries) == len(told)
    asked = [body["messages"] for body in server.bodies[before:] if not server.informs(body["messages"])]
    assert asked
    assert not any(INVENTED in str(messages) for messages in asked), "what is in no case is told to nobody"
    for row_of in responses(run)["endless", Arm.FULL, Strategy.ASK]:
        assert (len(row_of.turns), set(row_of.informed)) == (MAX_QUESTIONS + 1, {"FACTS: 1", INVENTED})
    of_full = [line for line in table(run, "workup", "imported") if line["arm"] == Arm.FULL and line["measure"].startswith(INFORMANT)]
    measures = {line["measure"]: float(line["value"]) for line in of_full}
    assert measures["informant_corrected"] == measures["informant_unusable"] > 0
    places = {line["model"]: line for line in table(run, "destinations", "imported") if line["benchmark"] == "mixed"}
    assert places["informant of asker"]["requests"] == str(len(told))
    before = len(server.bodies)
    replayed = snakemake(run, "--forcerun", "run_inference", "--config", "replay=true", *ARGUMENTS, ANSWERS)
    assert replayed.returncode == 0, replayed.stdout[-3000:] + replayed.stderr[-6000:]
    assert len(server.bodies) == before
