"""A recorded run in another person's clone: nothing is repeated, nothing is lost, and nothing private is transferred."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from conftest import NMB, VERSIONING, copy_project, planted_identifiers, table
from fixtures.leak import leaks_in
from neuralmedbench.records.results import by_measure

pytestmark = pytest.mark.workflow

Snakemake = Callable[..., "subprocess.CompletedProcess[str]"]
TINY = ("--configfile", "config/test.yaml")
REPORT = ("--", "results/test/report.html")
RECORD = ("nmb", "run", "record", "--configfiles", "config/test.yaml")
AUDIT = ("nmb", "run", "audit", "--configfiles", "config/test.yaml")
PULL = ("nmb", "run", "pull")
NOTHING = "Nothing to be done"
IDENTITY = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in (("NAME", "T"), ("EMAIL", "t@example.org"))}

AFTER_INFERENCE = {
    "embed_similarity": 2,
    "grade_responses": 2,
    "score_responses": 2,
    "simulate_ratings": 1,
    "import_ratings": 1,
    "bundle_cases": 2,
    "build_tables": 1,
    "compare_published": 1,
    "draw_figures": 1,
    "record_provenance": 1,
    "build_report": 1,
}


def run(folder: Path, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; Python modules and `nmb` run with the interpreter of the tests."""
    words = {"-m": [sys.executable, "-m"], "nmb": [*NMB]}.get(command[0], [command[0]]) + list(command[1:])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    settings = {**os.environ, "PATH": path, **IDENTITY, **env}
    return subprocess.run(words, cwd=folder, env=settings, capture_output=True, text=True, check=False, timeout=600)


def must(folder: Path, *command: str) -> str:
    """Run a command that must succeed; return its standard output."""
    done = run(folder, *command)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def commit(folder: Path, message: str) -> None:
    """Commit everything that git does not ignore."""
    must(folder, "git", "add", "-A")
    must(folder, "git", "commit", "-q", "-m", message)


def planned(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """Count the jobs of each rule in a dry run."""
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return dict(Counter(re.findall(r"^(?:local)?rule (\w+):$", done.stdout, flags=re.MULTILINE)))


def answers(folder: Path) -> dict[str, int]:
    """Count the lines of each ledger."""
    ledgers = sorted((folder / "data" / "ledger").rglob("*.jsonl"))
    return {path.relative_to(folder / "data" / "ledger").as_posix(): len(path.read_bytes().splitlines()) for path in ledgers}


@pytest.fixture(scope="module")
def origin(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository in which the small run is recorded, committed and pushed to a folder."""
    folder = tmp_path_factory.mktemp("origin") / "project"
    shutil.copytree(finished_run, folder)
    copy_project(folder, VERSIONING)
    must(folder, "git", "init", "-q", "-b", "main")
    must(folder, "-m", "dvc", "remote", "add", "-q", "-d", "store", str(folder.parent / "remote"))
    must(folder, *RECORD)
    commit(folder, "the small run")
    must(folder, "-m", "dvc", "push", "-q")
    return folder


@pytest.fixture(scope="module")
def clone(origin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a clone at another path and pull into it; tests that change it restore it."""
    folder = tmp_path_factory.mktemp("clone") / "elsewhere"
    must(folder.parent, "git", "clone", "-q", str(origin), folder.name)
    must(folder, *PULL)
    return folder


@pytest.fixture
def bare(origin: Path, tmp_path: Path) -> Path:
    """Make a clone without a pull."""
    must(tmp_path, "git", "clone", "-q", str(origin), "bare")
    return tmp_path / "bare"


def test_a_recorded_run_is_up_to_date_for_dvc_and_is_not_repeated(origin: Path) -> None:
    assert "up to date" in must(origin, "-m", "dvc", "status")
    before = {path: path.stat().st_mtime_ns for path in (origin / "results").rglob("*")}
    said = must(origin, "-m", "dvc", "repro")
    assert "Running stage" not in said
    assert {path: path.stat().st_mtime_ns for path in (origin / "results").rglob("*")} == before


def test_nothing_that_identifies_a_patient_and_no_source_file_name_is_in_the_remote(origin: Path) -> None:
    indices = [json.loads(path.read_text()) for path in (origin / "data" / "raw" / "demo-tiny").glob("*/files.json")]
    sources = {Path(entry["path"]) for index in indices for entry in [*index["files"], *index["notes"]]}
    names = {path.name for path in sources} | {path.parent.name for path in sources if path.parent.name != "notes"}
    planted = planted_identifiers(origin, "demo-tiny")
    assert len(planted) > 30
    assert len(names) > 60
    remote = origin.parent / "remote"
    files = [path for path in remote.rglob("*") if path.is_file()]
    assert len(files) > 200
    assert leaks_in(files, remote, [*planted, *sorted(names)]) == []


def test_a_clone_without_the_private_zone_has_nothing_to_do_and_a_ledger_that_grew_is_no_finding(
    clone: Path, run_snakemake: Snakemake
) -> None:
    assert not (clone / "data" / "raw").exists()
    assert not (clone / "data" / "ingested").exists()
    assert NOTHING in run_snakemake(clone, "-n", *TINY, *REPORT).stdout
    ledger = clone / "data" / "ledger" / "demo-tiny" / "text.jsonl"
    content = ledger.read_bytes()
    own = json.dumps({"key": "f" * 64, "state": "ok", "text": "asked later"}).encode() + b"\n"
    try:
        ledger.write_bytes(content + own)
        assert "nothing found" in must(clone, *AUDIT)
    finally:
        ledger.write_bytes(content)


def test_new_times_on_everything_change_nothing(clone: Path, run_snakemake: Snakemake) -> None:
    for path in sorted(clone.rglob("*")):
        if not {".git", ".dvc"} & set(path.relative_to(clone).parts):
            path.touch()
    assert NOTHING in run_snakemake(clone, "-n", *TINY, *REPORT).stdout


@pytest.mark.long
def test_a_new_revision_and_a_new_case_run_their_own_jobs_and_make_their_own_requests(
    origin: Path, run_snakemake: Snakemake, tmp_path: Path
) -> None:
    folder = tmp_path / "clone"
    must(tmp_path, "git", "clone", "-q", str(origin), "clone")
    must(folder, *PULL)
    before = answers(folder)

    model = folder / "config" / "models" / "text.yaml"
    first = model.read_text()
    # at temperature 0 all its answers are equal, unlike before
    second = first.replace('revision: "1"', 'revision: "2"').replace("temperature: 1.0", "temperature: 0")
    model.write_text(second)
    plan = run_snakemake(folder, "-n", *TINY, *REPORT)
    assert planned(plan) == {"run_inference": 2, **AFTER_INFERENCE}
    assert not re.search(r"^\s+output: results/test/(?:responses|grades|scores)/\S*image", plan.stdout, flags=re.MULTILINE)

    tables = folder / "config" / "benchmarks"
    listed = (tables / "demo-tiny.cases.tsv").read_text()
    row = next(line for line in (tables / "demo.cases.tsv").read_text().splitlines()[1:] if line not in listed)
    (tables / "demo-tiny.cases.tsv").write_text(f"{listed}{row}\n")
    model.write_text(first)
    one_case = ("generate_phantom", "ingest_case", "deidentify_case", "normalise_case", "cut_slices")
    gathers = (
        "gather_answers",
        "describe_scans",
        "build_review",
        "gather_audit",
        "gather_slices",
        "build_items",
        "assemble_prompts",
        "find_answer_leaks",
        "describe_benchmark",
    )
    # the other benchmark, with an unchanged case list, has only the jobs that all benchmarks share
    one_benchmark = {"embed_similarity": 1, "grade_responses": 2, "score_responses": 2, "bundle_cases": 1, "run_inference": 2}
    # answers of the new case with planted errors, on which the grader is tested again
    one_benchmark |= {"plant_errors": 1, "grade_responses": 3}
    expected = {**AFTER_INFERENCE, **one_benchmark, **dict.fromkeys((*one_case, *gathers), 1)}
    assert planned(run_snakemake(folder, "-n", *TINY, *REPORT)) == expected

    model.write_text(second)
    done = run_snakemake(folder, *TINY, *REPORT)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    after = answers(folder)
    grown = {name: after[name] - count for name, count in before.items()}
    assert grown["demo-tiny-slices/image.jsonl"] == 0
    assert grown["demo-tiny-slices/text.jsonl"] == before["demo-tiny-slices/text.jsonl"]
    assert grown["demo-tiny/text.jsonl"] == before["demo-tiny/text.jsonl"] + grown["demo-tiny/image.jsonl"]
    assert 0 < grown["demo-tiny/image.jsonl"] <= 3 * 2 * 2, "at most three items of one case, two arms, two samples"

    rows = by_measure(table(folder, "revisions"), "value_of_slice")
    assert {(model, row["same_text"]["source"]) for (_, model, _), row in rows.items()} == {("text", "2 against 1")}
    leader = rows["demo-tiny", "text", "leader"]
    assert float(leader["disagreement"]["value"]) > float(leader["noise_floor"]["value"]) > 0
    assert float(leader["excess"]["p_value"]) < 0.05 / 3
    assert {(row["model"], row["revision"]) for row in table(folder, "leaderboard")} == {("text", "2"), ("image", "1"), ("prior", "")}
    page = (folder / "results" / "test" / "report.html").read_text(encoding="utf-8")
    section = page.split('<section id="changed"')[1].split("</section>")[0]
    assert "revision 2 against 1" in section
    assert "the noise floor" in section

    assert "recorded: " in done.stdout + done.stderr
    assert done.stderr.splitlines()[-1] == f"The report: {folder / 'results' / 'test' / 'report.html'}"
    assert "demo-tiny.text.pass1" in must(folder, "-m", "dvc", "metrics", "diff", "--all")
    assert "index.html" in must(folder, "-m", "dvc", "plots", "diff", "HEAD")
    drawn = (folder / "dvc_plots" / "index.html").read_text()
    assert '"workspace"' in drawn
    assert '"HEAD"' in drawn

    commit(folder, "a new case and a new revision")
    assert "demo-tiny.text.pass1" in must(folder, "-m", "dvc", "metrics", "diff", "--all", "HEAD~1", "HEAD")
    must(folder, "git", "checkout", "-q", "HEAD~1")
    must(folder, *PULL)
    assert NOTHING in run_snakemake(folder, "-n", *TINY, *REPORT).stdout
    assert answers(folder) == after, "a pull never shortens a ledger"
    must(folder, "git", "checkout", "-q", "main")
    must(folder, *PULL)
    assert NOTHING in run_snakemake(folder, "-n", *TINY, *REPORT).stdout


def test_a_deleted_yaml_is_one_clear_error(clone: Path, run_snakemake: Snakemake) -> None:
    path = clone / "config" / "models" / "text.yaml"
    text = path.read_text()
    path.unlink()
    try:
        done = run_snakemake(clone, "-n", *TINY, *REPORT)
    finally:
        path.write_text(text)
    assert done.returncode != 0
    assert "ConfigError: config/models/text.yaml: the file is not there" in " ".join((done.stdout + done.stderr).split())


def test_the_audit_finds_a_changed_answer_and_a_stale_result_with_an_old_time_that_snakemake_takes_for_fresh(
    clone: Path, run_snakemake: Snakemake
) -> None:
    scores, other = (clone / "results" / "test" / "scores" / "demo-tiny" / f"{model}.parquet" for model in ("text", "image"))
    content, times = scores.read_bytes(), scores.stat()
    ledger = clone / "data" / "ledger" / "demo-tiny" / "text.jsonl"
    answered = ledger.read_bytes()
    first, rest = answered.split(b"\n", 1)
    line = json.loads(first)
    line.pop("answer_sha256", None)  # as in ledgers written before this field existed
    changed = json.dumps({**line, "text": line["text"].swapcase()}, sort_keys=True, ensure_ascii=False).encode()
    scores.write_bytes(other.read_bytes())
    os.utime(scores, (1, 1))
    try:
        assert NOTHING in run_snakemake(clone, "-n", *TINY, *REPORT).stdout
        record = run(clone, *RECORD)
        ledger.write_bytes(changed + b"\n" + rest)
        audit = run(clone, *AUDIT)
    finally:
        ledger.write_bytes(answered)
        scores.write_bytes(content)
        os.utime(scores, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert audit.returncode != 0
    assert "build_tables) was made from another results/test/scores/demo-tiny/text.parquet" in audit.stderr
    assert "results/test/scores/demo-tiny/text.parquet: not what dvc.lock records" in audit.stderr
    found = f"data/ledger/demo-tiny/text.jsonl: 1 recorded answer changed or gone: that to {line['item_id']} (line 1 here); delete changed lines"
    assert found in audit.stderr
    assert record.returncode != 0
    assert "are stale" in record.stderr


def test_the_audit_finds_a_changed_setting(clone: Path) -> None:
    path = clone / "config" / "test.yaml"
    text = path.read_text()
    path.write_text(text.replace("resamples: 200", "resamples: 201"))
    try:
        audit, record = run(clone, *AUDIT), run(clone, *RECORD)
    finally:
        path.write_text(text)
    assert audit.returncode != 0
    assert "build_tables (Params have changed" in audit.stderr
    assert "the report is not up to date, so nothing was recorded; still to do: build_report" in record.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--overridden",), "settings given with --config are in no file"),
        (("--configfiles", "../elsewhere.yaml"), "the configfile is outside the project"),
    ],
)
def test_a_run_that_no_file_describes_is_not_recorded(clone: Path, arguments: tuple[str, ...], reason: str) -> None:
    (clone.parent / "elsewhere.yaml").write_text((clone / "config" / "test.yaml").read_text())
    done = run(clone, "nmb", "run", "record", *arguments)
    assert done.returncode == 0
    assert f"nothing was recorded: {reason}" in done.stderr


def test_a_private_benchmark_is_not_recorded(clone: Path) -> None:
    path = clone / "config" / "benchmarks" / "demo-tiny.yaml"
    text = path.read_text()
    path.write_text(text.replace("private: false", "private: true"))
    try:
        done = run(clone, *RECORD)
    finally:
        path.write_text(text)
    assert done.returncode == 0
    assert "nothing was recorded: `private: true` keeps benchmark demo-tiny out of what is recorded and shared" in done.stderr


def test_records_of_a_private_benchmark_keep_a_folder_from_being_recorded(clone: Path, tmp_path: Path) -> None:
    only = yaml.safe_load((clone / "config" / "test.yaml").read_text()) | {"benchmarks": ["demo-tiny-slices"]}
    configfile, path = clone / "config" / "slices-only.yaml", clone / "config" / "benchmarks" / "demo-tiny.yaml"
    text = path.read_text()
    configfile.write_text(yaml.safe_dump(only))
    path.write_text(text.replace("private: false", "private: true"))
    try:
        done = run(clone, "nmb", "run", "record", "--configfiles", "config/slices-only.yaml")
    finally:
        path.write_text(text)
        configfile.unlink()
    assert done.returncode == 0
    assert "Snakemake's records here also name benchmark demo-tiny, which `private: true` keeps out of" in done.stderr


def test_a_case_that_was_withdrawn_but_still_lies_here_is_not_recorded(clone: Path) -> None:
    folder = clone / "data" / "normalised" / "demo-tiny" / "sub-0123456789ab"
    folder.mkdir()
    try:
        done = run(clone, *RECORD)
    finally:
        folder.rmdir()
    assert done.returncode != 0
    assert "are not part of this run (first data/normalised/demo-tiny/sub-0123456789ab); delete them" in done.stderr


def test_inside_a_dvc_stage_nothing_is_said_or_recorded(clone: Path) -> None:
    lock = (clone / "dvc.lock").read_bytes()
    done = run(clone, *RECORD, DVC_STAGE="report")
    assert (done.returncode, done.stderr) == (0, "")
    assert (clone / "dvc.lock").read_bytes() == lock


def test_without_git_a_run_ends_well_and_says_that_nothing_was_recorded(finished_run: Path) -> None:
    done = run(finished_run, *RECORD)
    assert done.returncode == 0
    assert "nothing was recorded: this folder is not a git repository" in done.stderr
    assert not (finished_run / "dvc.lock").exists()


def test_without_a_remote_a_pull_says_how_to_set_one(bare: Path) -> None:
    must(bare, "-m", "dvc", "remote", "remove", "-q", "store")
    done = run(bare, *PULL)
    assert done.returncode != 0
    assert done.stderr.startswith("ConfigError: no remote is set: `dvc remote add -d NAME URL` sets one")


def test_a_remote_that_cannot_be_reached_is_one_line(bare: Path) -> None:
    must(bare, "-m", "dvc", "remote", "modify", "-q", "store", "url", str(bare.parent / "nowhere"))
    done = run(bare, *PULL)
    assert done.returncode != 0
    assert "DataError: the remote store returned nothing: can it be reached" in done.stderr
    assert not (bare / "results" / "test" / "report.html").exists()


def test_a_missing_cache_object_leaves_everything_as_it_was(origin: Path, bare: Path) -> None:
    remote = bare.parent / "remote"
    shutil.copytree(origin.parent / "remote", remote)
    must(bare, "-m", "dvc", "remote", "modify", "-q", "store", "url", str(remote))
    must(bare, *PULL)
    kept = (bare / "results" / "test" / "report.html").read_bytes()
    lost = next(
        out for out in yaml.safe_load((bare / "dvc.lock").read_text())["stages"]["report-test"]["outs"] if "report.html" in out["path"]
    )
    for store in (remote, bare / ".dvc" / "cache"):
        (store / "files" / "md5" / lost["md5"][:2] / lost["md5"][2:]).unlink()
    done = run(bare, *PULL)
    assert done.returncode != 0
    assert "DataError: the remote store" in done.stderr
    assert "first missing: results/test/report.html; nothing here was changed" in done.stderr
    assert (bare / "results" / "test" / "report.html").read_bytes() == kept


def test_results_that_were_never_recorded_are_not_overwritten(clone: Path) -> None:
    path = clone / "results" / "test" / "tables" / "notes.json"
    text = path.read_text()
    path.write_text("mine")
    try:
        done = run(clone, *PULL)
        assert path.read_text() == "mine"
    finally:
        path.write_text(text)
    assert done.returncode != 0
    assert "files here were never recorded and would be lost, first results/test/tables/notes.json: finish the run" in done.stderr


def test_a_pull_without_a_record_says_so(bare: Path) -> None:
    (bare / "dvc.lock").unlink()
    done = run(bare, *PULL)
    assert done.returncode != 0
    assert "ConfigError: nothing was recorded in this commit" in done.stderr


def test_answers_that_only_this_ledger_has_survive_a_pull(bare: Path) -> None:
    ledger = bare / "data" / "ledger" / "demo-tiny" / "text.jsonl"
    ledger.parent.mkdir(parents=True)
    own = json.dumps({"key": "f" * 64, "state": "ok", "text": "paid for here"}).encode()
    ledger.write_bytes(own + b"\n")
    must(bare, *PULL)
    lines = ledger.read_bytes().splitlines()
    assert lines[0] == own
    assert len(lines) == 25


@pytest.mark.long
def test_two_runs_are_recorded_side_by_side_and_compared_and_a_changed_other_run_stops_the_record(
    origin: Path, run_snakemake: Snakemake, tmp_path: Path
) -> None:
    folder, again = tmp_path / "two", ("--configfile", "config/again.yaml", "--", "results/again/report.html")
    shutil.copytree(origin, folder, symlinks=True)
    small = {"benchmarks": ["demo-tiny-slices"], "models": ["image"], "graders": ["rubric"], "statistics": {"resamples": 200}}
    (folder / "config" / "again.yaml").write_text(yaml.safe_dump(small))
    done = run_snakemake(folder, *again)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "(2 runs: again, test)" in done.stdout + done.stderr
    # the record is the union, and each run is as recorded
    stages = yaml.safe_load((folder / "dvc.yaml").read_text())["stages"]
    assert {"report-again", "report-test"} <= stages.keys()
    assert "up to date" in must(folder, "-m", "dvc", "status")
    for name in ("again", "test"):
        assert NOTHING in run_snakemake(folder, "-n", "--configfile", f"config/{name}.yaml", "--", f"results/{name}/report.html").stdout
        assert "nothing found" in must(folder, "nmb", "run", "audit", "--configfiles", f"config/{name}.yaml")
    # the page of both belongs to neither, and gives no identifier away
    lock = (folder / "dvc.lock").read_bytes()
    assert must(folder, "nmb", "run", "compare", "test", "again").startswith("Nothing changed: every answer is the same, word for word")
    made = [path for path in (folder / "results" / "compare").rglob("*") if path.is_file()]
    assert len(made) == 5
    assert leaks_in(made, folder, planted_identifiers(folder, "demo-tiny")) == []
    assert "up to date" in must(folder, "-m", "dvc", "status")
    # a record beside a run that has changed would be of half a run
    other = folder / "results" / "test" / "metrics.json"
    other.write_text("{}")
    stopped = run(folder, "nmb", "run", "record", "--configfiles", "config/again.yaml")
    assert stopped.returncode != 0
    assert (
        "nothing was recorded: results/test/metrics.json of the recorded run test has changed here; `nmb run pull` brings it back"
        in stopped.stderr
    )
    assert (folder / "dvc.lock").read_bytes() == lock
