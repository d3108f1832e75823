"""Reproduce every table from the ledgers without a call, and trace a number of a real run."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from conftest import NMB
from neuralmedbench.files.digests import sha256_of, sha256_of_files
from neuralmedbench.records.results import COLUMNS

pytestmark = pytest.mark.workflow

Snakemake = Callable[..., "subprocess.CompletedProcess[str]"]
REPORT = ("--", "results/test/report.html")
PAPER = {
    "benchmarks": ["demo-tiny", "demo-tiny-slices"],
    "models": ["image", "text"],
    "graders": ["rubric"],
    "statistics": {"resamples": 300},
    "replay": True,
}
"""Configuration of a paper: its own run lists, order and number of resamples."""

UNTOUCHED = ("case_flow", "cases", "deidentification", "ratings")
"""Tables that depend neither on the order of the models nor on the resamples."""

NO_WAY_OUT = """
import socket
import sys

class NoModel:
    def find_spec(self, name, path=None, target=None):
        if name == "litellm" or name.startswith("neuralmedbench.demo.baselines"):
            raise ImportError("a model was opened: " + name)

def refuse(*_):
    raise OSError("a connection was opened")

sys.meta_path.insert(0, NoModel())
socket.socket.connect = socket.socket.connect_ex = refuse
"""


@pytest.fixture(scope="module")
def no_way_out(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Make an environment in which opening a model or a connection fails, in every Python process."""
    folder = tmp_path_factory.mktemp("no-way-out")
    (folder / "sitecustomize.py").write_text(NO_WAY_OUT, encoding="utf-8")
    return {"PYTHONPATH": str(folder)}


@pytest.fixture(scope="module")
def rebuilt(
    finished_run: Path, tmp_path_factory: pytest.TempPathFactory, run_snakemake: Snakemake, no_way_out: dict[str, str]
) -> tuple[Path, dict[str, str]]:
    """Copy the finished run without results, records and private zone, and run the configuration of the paper; return its earlier ledgers too."""
    folder = tmp_path_factory.mktemp("paper") / "project"
    shutil.copytree(finished_run, folder)
    for part in ("results", ".snakemake", "logs", "data/raw", "data/ingested"):
        shutil.rmtree(folder / part)
    (folder / "config" / "mine.yaml").write_text(yaml.safe_dump(PAPER), encoding="utf-8")
    ledgers = sha256_of_files(folder / "data" / "ledger")
    done = run_snakemake(folder, "--configfile", "config/mine.yaml", env=no_way_out)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return folder, ledgers


def tables_of(project: Path) -> Path:
    """Return the folder of the tables of the only run of a project."""
    (folder,) = (project / "results").glob("*/tables")
    return folder


def rows_of(project: Path, table: str) -> list[dict[str, str]]:
    """Return the rows of a table of results."""
    with (tables_of(project) / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def without_intervals(row: dict[str, str]) -> list[tuple[str, str]]:
    """Return the columns of a row that do not depend on the resamples."""
    drawn = re.compile(r".*_low|.*_high|low|high|p_value|p_corrected|answer|detectable|tier|rank.*|undefined")
    return sorted((name, value) for name, value in row.items() if not drawn.fullmatch(name) and "resamples" not in value)


@pytest.mark.long
def test_every_table_is_rebuilt_from_the_ledgers_without_one_call(finished_run: Path, rebuilt: tuple[Path, dict[str, str]]) -> None:
    folder, ledgers = rebuilt
    assert sha256_of_files(folder / "data" / "ledger") == ledgers
    assert not (folder / "data" / "raw").exists()
    assert not (folder / "data" / "ingested").exists()
    for table in UNTOUCHED:
        now, then = ((tables_of(project) / f"{table}.csv").read_bytes() for project in (folder, finished_run))
        assert now == then, table
    for table in COLUMNS:
        now, then = (sorted(without_intervals(row) for row in _unordered(rows_of(project, table))) for project in (folder, finished_run))
        assert now == then, table
    assert [row["model"] for row in rows_of(folder, "costs")[:2]] == ["image", "text"]
    assert [row["model"] for row in rows_of(finished_run, "costs")[:2]] == ["text", "image"]
    pairs = [[row for row in rows_of(project, "contrasts") if row["topic"] == "pairs"] for project in (folder, finished_run)]
    differences = [float(rows[0]["difference"]) for rows in pairs]
    assert differences[0] == -differences[1] != 0


def _unordered(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Leave out pairs of models, which follow the order of the run list."""
    return [row for row in rows if row.get("topic") != "pairs"]


@pytest.mark.long
def test_the_config_of_the_finished_run_gives_its_tables_again_byte_for_byte(
    finished_run: Path, rebuilt: tuple[Path, dict[str, str]], run_snakemake: Snakemake, no_way_out: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(rebuilt[0], folder)
    test = ("--configfile", "config/test.yaml", "--config", "replay=true")
    done = run_snakemake(folder, *test, *REPORT, env=no_way_out)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    assert sha256_of_files(folder / "results" / "test" / "tables") == sha256_of_files(finished_run / "results" / "test" / "tables")
    for part in ("responses", "grades", "scores", "similarity", "metrics.json"):
        now, then = (project / "results" / "test" / part for project in (folder, finished_run))
        assert (sha256_of(now) == sha256_of(then)) if now.is_file() else (sha256_of_files(now) == sha256_of_files(then)), part


@pytest.mark.long
def test_in_the_same_environment_a_run_without_replay_fails_visibly(
    rebuilt: tuple[Path, dict[str, str]], run_snakemake: Snakemake, no_way_out: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(rebuilt[0], folder)
    ledger, target = folder / "data" / "ledger" / "demo-tiny" / "text.jsonl", "results/mine/responses/demo-tiny/text.parquet"
    ledger.write_text("".join(ledger.read_text(encoding="utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")  # else nothing is asked
    asked = ("--configfile", "config/mine.yaml", "--config", "replay=false", "--force", "--", target)
    done = run_snakemake(folder, *asked, env=no_way_out)
    assert done.returncode != 0
    assert "a model was opened: neuralmedbench.demo.baselines" in done.stdout + done.stderr


@pytest.mark.long
def test_an_answer_that_is_not_in_the_ledger_fails_with_one_line(
    rebuilt: tuple[Path, dict[str, str]], run_snakemake: Snakemake, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(rebuilt[0], folder)
    ledger, target = folder / "data" / "ledger" / "demo-tiny" / "text.jsonl", "results/mine/responses/demo-tiny/text.parquet"
    lines = ledger.read_text(encoding="utf-8").splitlines(keepends=True)
    ledger.write_text("".join(lines[1:]), encoding="utf-8")
    done = run_snakemake(folder, "--configfile", "config/mine.yaml", "--force", "--", target)
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert re.search(
        r"ProviderError: model text: \d+ of 24 answers are not in its ledger, the first is that to demo-tiny/\S+ \(arm \w+, sample \d\);"
        " `nmb run pull` brings the recorded ledger",
        said,
    ), said[-3000:]
    assert "Traceback" not in said
    assert not (folder / target).exists()
    assert ledger.read_text(encoding="utf-8") == "".join(lines[1:])


@pytest.mark.parametrize("replay", ["true", "false"])
def test_what_changes_no_answer_makes_nothing_anew(finished_run: Path, run_snakemake: Snakemake, replay: str) -> None:
    """All settings at once: a setting that plans a job would do so among the others too."""
    settings = (f"replay={replay}", "max_run_cost_usd=1", "rate_limits={openai: {requests_per_minute: 5}}")
    plan = run_snakemake(finished_run, "-n", "--configfile", "config/test.yaml", "--config", *settings, *REPORT)
    assert "Nothing to be done" in plan.stdout + plan.stderr


def trace(folder: Path, *arguments: str) -> str:
    """Run `nmb run trace` in a project."""
    command = [*NMB, "run", "trace", *arguments, "--configfiles", "config/test.yaml"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_a_number_of_the_leaderboard_leads_back_to_prompts_and_answers(finished_run: Path) -> None:
    rows = rows_of(finished_run, "leaderboard")
    number = next(place for place, row in enumerate(rows, start=1) if (row["benchmark"], row["model"]) == ("demo-tiny", "image"))
    text = trace(finished_run, "leaderboard", str(number), "pass1")
    assert text.startswith(f"pass1 of leaderboard, row {number}: {rows[number - 1]['pass1']}\n")
    assert f"  recomputed from the scores: {rows[number - 1]['pass1']}, the same\n" in text
    printed = dict(re.findall(r"^  (\S+)\n    sha256 ([0-9a-f]{64})", text, flags=re.MULTILINE))
    assert set(printed) >= {
        "results/test/tables/leaderboard.csv",
        "results/test/scores/demo-tiny/image.parquet",
        "results/test/grades/demo-tiny/image/rubric.parquet",
        "results/test/planted/demo-tiny.parquet",
        "results/test/grades/demo-tiny/planted/rubric.parquet",
        "results/test/responses/demo-tiny/image.parquet",
        "data/ledger/demo-tiny/image.jsonl",
        "data/prompts/demo-tiny.parquet",
        "data/items/demo-tiny.parquet",
        "data/gold/demo-tiny.parquet",
        "data/deidentified/demo-tiny/audit.json",
        "data/slices/demo-tiny/slices.parquet",
        "config/models/image.yaml",
        "config/benchmarks/demo-tiny.yaml",
        "config/prompts/system.j2",
    }
    assert printed == {path: sha256_of(finished_run / path) for path in printed}
    assert "CHANGED" not in text
    assert "12 of the 12 calls behind the number are in it" in text
    assert not re.search(r"demo-tiny-slices[/.]|data/raw|data/ingested|models/text", text)
    command = re.search(r"to read one: nmb (.+)", text)
    assert command
    shown = subprocess.run([*NMB, *command.group(1).split()], cwd=finished_run, capture_output=True, text=True, check=True).stdout
    assert "of 1 calls are in the ledger" in shown


def test_a_file_that_was_changed_afterwards_is_flagged(finished_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(finished_run, folder)
    yaml_file = folder / "config" / "models" / "image.yaml"
    yaml_file.write_text(yaml_file.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
    text = trace(folder, "leaderboard", "benchmark=demo-tiny,model=image", "pass1")
    assert re.findall(r"^  (\S+)\n    sha256 [0-9a-f]{64}, CHANGED since", text, flags=re.MULTILINE) == ["config/models/image.yaml"]


def test_a_mistyped_table_is_one_line_and_exit_code_of_its_class(finished_run: Path) -> None:
    command = [*NMB, "run", "trace", "leaderbord", "1", "pass1"]
    done = subprocess.run(command, cwd=finished_run, capture_output=True, text=True, check=False)
    assert done.returncode not in (0, 1)
    assert done.stderr == "ConfigError: leaderbord: no table has this name; did you mean 'leaderboard'?\n"
