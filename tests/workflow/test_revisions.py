"""A model's API changed: its revision is raised, the same command is run, and the report shows what changed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from conftest import NMB, table
from fixtures.reference import assert_as_written
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.records.results import SHAPES, by_measure

pytestmark = [pytest.mark.workflow, pytest.mark.long]

Snakemake = Callable[..., "subprocess.CompletedProcess[str]"]
TINY = ("--configfile", "config/test.yaml", "--", "results/test/report.html")
BENCHMARKS = ("demo-tiny", "demo-tiny-slices")


def edited(folder: Path, **changes: str) -> None:
    """Change values in the YAML file of the model `text`."""
    path = folder / "config" / "models" / "text.yaml"
    text = path.read_text(encoding="utf-8")
    for key, value in changes.items():
        text, count = re.subn(rf"^{key}: .*$", f"{key}: {value}", text, flags=re.MULTILINE)
        assert count == 1
    path.write_text(text, encoding="utf-8")


def logs(folder: Path) -> dict[str, str]:
    """Return the output of every inference job."""
    return {path.stem: path.read_text(encoding="utf-8") for path in (folder / "logs" / "test" / "run_inference").glob("*.log")}


def run_again(folder: Path, run_snakemake: Snakemake) -> None:
    """Run the same command; only the jobs of the model `text` may have made calls."""
    before = logs(folder)
    done = run_snakemake(folder, "-p", *TINY)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    after = logs(folder)
    for benchmark in BENCHMARKS:
        assert after[f"{benchmark}_image"] == before[f"{benchmark}_image"]
        assert re.search(r"text: (\d+) of \1 answers \(100%\); ok \1\b", after[f"{benchmark}_text"])
        assert "24 calls made;" in after[f"{benchmark}_text"]
    assert len(re.findall(r"rule run_inference:", done.stdout + done.stderr)) == 2


def test_a_bumped_revision_is_compared_with_the_one_before(finished_run: Path, tmp_path: Path, run_snakemake: Snakemake) -> None:
    folder = tmp_path / "project"
    shutil.copytree(finished_run, folder)
    tables = {path.name: path.read_bytes() for path in (folder / "results" / "test" / "tables").glob("*.csv")}
    page = (folder / "results" / "test" / "report.html").read_text(encoding="utf-8")
    assert "What changed: not measured." in page

    # the built-in model answers by its seed, whatever its revision: nothing changed, and the report states so
    edited(folder, revision='"2"')
    run_again(folder, run_snakemake)
    rows = by_measure(table(folder, "revisions"), "value_of_slice")
    assert {model for _, model, _ in rows} == {"text"}
    assert {(row["same_text"]["source"], row["same_text"]["value"]) for row in rows.values()} == {("2 against 1", "1.000000")}
    assert_as_written("revision", folder / "results/test")
    assert rows["demo-tiny", "text", "leader"]["excess"]["p_value"] == "1.000000"
    assert rows["demo-tiny", "text", "passed"]["pass1_difference"]["difference"] == "0.000000"
    untouched = set(tables) - {f"{name}.csv" for name in SHAPES} - {"leaderboard.csv", "costs.csv", "destinations.csv"}
    assert {name for name in untouched if (folder / "results" / "test" / "tables" / name).read_bytes() != tables[name]} == set()
    page = (folder / "results" / "test" / "report.html").read_text(encoding="utf-8")
    # two patients: the lines are counted, and are in the files
    assert "2 lines of fewer than 10 patients are in the files alone." in page.split('id="changed"')[1].split("</section>")[0]

    assert {row["requests"] for row in table(folder, "costs") if (row["model"], row["arm"]) == ("text", "all")} == {"24", "44"}
    for benchmark in BENCHMARKS:
        entries = read_ledger(folder / "data" / "ledger" / benchmark / "text.jsonl").values()
        assert Counter(entry.revision for entry in entries) == {"1": 24, "2": 24}
    done = run_snakemake(folder, "-p", *TINY)
    assert "Nothing to be done" in done.stdout + done.stderr

    # no margin can be shown with two patients: a person has to look
    readiness = folder / "config" / "readiness.yaml"
    stated = yaml.safe_load(readiness.read_text(encoding="utf-8")) | {"stated_on": "2026-01-31"}
    stated["update"] |= {"benchmark": "demo-tiny", "essential": {"all": {"min_accuracy": 0.1}}}
    readiness.write_text(yaml.safe_dump(stated), encoding="utf-8")
    compare = [*NMB, "run", "compare", "test", "--pair", "text@1=text@2"]
    done = subprocess.run(compare, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, "Nothing changed: every answer is the same" in done.stdout) == (0, True), done.stdout + done.stderr

    command = [*NMB, "model", "gate", "text", "--configfiles", "config/test.yaml"]
    for more, code, words in ((["--plan"], 0, "too few patients"), ([], 4, "look 1, counted"), ([], 4, "not counted again")):
        done = subprocess.run([*command, *more], cwd=folder, capture_output=True, text=True, check=False, timeout=600)
        assert (done.returncode, words in done.stdout) == (code, True), done.stdout + done.stderr
    assert "revision 2 against 1: review" in (folder / "results" / "test" / "gate" / "demo-tiny" / "text" / "1.html").read_text(
        encoding="utf-8"
    )


def test_a_built_in_model_that_is_asked_again_shows_no_change(finished_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(finished_run, folder)
    command = [*NMB, "run", "compare", "--probe", "image", "--benchmark", "demo-tiny", "--configfiles", "config/test.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("image on demo-tiny, revision 1, 6 items asked again: No")
    assert read_ledger(folder / "data/ledger/demo-tiny/drift/image.jsonl")
