"""The workflow as users see it: it runs, repeats nothing, detects an edit, and explains a mistake."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import yaml

from conftest import NMB, ROOT, planted_identifiers
from fixtures.leak import leaks_in
from neuralmedbench.config import code_hash
from neuralmedbench.config.code_hash import reached_files
from neuralmedbench.recording.metadata import METADATA, read_metadata

pytestmark = pytest.mark.workflow

Snakemake = Callable[..., "subprocess.CompletedProcess[str]"]
TINY = ("--configfile", "config/test.yaml")
SHARED = {"records", "files", "runtime", "config"}
RULES = sorted(
    path.stem
    for path in (ROOT / "scripts").glob("*.py")
    if f"rule {path.stem}:" in "".join(p.read_text() for p in (ROOT / "rules").glob("*.smk"))
    and path.stem not in {"decide_jury", "alter_pictures", "list_views", "export_results"}
)
"""Rules of the small run; it has no jury, no altered pictures (`test_all_arms`) and no viewer (`test_viewer_run`), and
exports are made on request."""


def test_the_small_run_makes_the_report(finished_run: Path) -> None:
    page = (finished_run / "results" / "test" / "report.html").read_text(encoding="utf-8")
    assert "no number here is about patients" in page.lower()


def test_jobs_on_one_machine_share_its_memory(finished_run: Path) -> None:
    log = min((finished_run / ".snakemake" / "log").glob("*.log"))
    provided = re.search(r'Provided resources: .*Resource\("mem_mb", (\d+)\)', log.read_text(encoding="utf-8"))
    assert provided
    assert 3000 <= int(provided[1]) <= max(3000, psutil.virtual_memory().total / 1e6)


def test_a_second_run_has_nothing_to_do(finished_run: Path, run_snakemake: Snakemake) -> None:
    done = run_snakemake(finished_run, *TINY, "--", "results/test/report.html")
    assert done.returncode == 0
    assert "Nothing to be done" in done.stdout + done.stderr


def test_results_that_are_gone_are_made_again_and_with_them_what_was_made_from_them(
    finished_run: Path, tmp_path: Path, run_snakemake: Snakemake
) -> None:
    """A person deletes a damaged table, as the message says; Snakemake alone takes the report for up to date."""
    folder = tmp_path / "project"
    shutil.copytree(finished_run, folder, symlinks=True)
    gone = folder / "results/test/scores/demo-tiny/text.parquet"
    gone.unlink()
    done = run_snakemake(folder, "-n", "-p", *TINY, "--", "results/test/report.html")
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "results/test/scores/demo-tiny/text.parquet is gone; it is made again, and what is made from it" in said
    assert {"score_responses", "build_tables", "draw_figures", "build_report"} <= set(re.findall(r"^rule (\w+):", said, re.MULTILINE))
    assert "rule run_inference:" not in said


def test_no_planted_identifier_leaves_the_private_zone(finished_run: Path) -> None:
    planted = planted_identifiers(finished_run, "demo-tiny")
    assert len(planted) > 70
    private = {finished_run / "data" / "raw", finished_run / "data" / "ingested"}
    places = [finished_run / top for top in ("data", "results", "logs", ".snakemake")]
    files = [path for place in places for path in place.rglob("*") if path.is_file() and not private & set(path.parents)]
    assert len(files) > 100
    assert leaks_in(files, finished_run, planted) == []


def test_exports_are_made_on_request_without_a_planted_identifier(finished_run: Path, tmp_path: Path, run_snakemake: Snakemake) -> None:
    folder = tmp_path / "project"
    shutil.copytree(finished_run, folder, symlinks=True)
    shutil.copy(ROOT / "CITATION.cff", folder)
    done = run_snakemake(folder, *TINY, "--", "results/test/exports")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    files = [path for path in (folder / "results/test/exports").rglob("*") if path.is_file()]
    assert {"scores.parquet", "ro-crate-metadata.json", "zenodo.json", "text.eval"} <= {path.name for path in files}
    assert leaks_in(files, folder, planted_identifiers(folder, "demo-tiny")) == []


def test_every_planted_identity_is_removed_and_research_values_stay(finished_run: Path) -> None:
    """The goal of de-identification: all required removals, and at least 99.9 % of all requested actions."""
    table = csv.DictReader((finished_run / "results" / "test" / "tables" / "deidentification.csv").open(encoding="utf-8"))
    totals = {row["action"]: row for row in table if row["benchmark"] == "demo-tiny" and row["place"] == "all"}
    removals, actions = totals["removals"], totals["actions"]
    assert int(removals["required"]) > 20_000
    assert removals["count"] == removals["required"]
    assert removals["patients_right"] == removals["patients"] == "2"
    assert float(actions["share"]) >= 0.999


def module_of(command: str) -> Path:
    """Pick a module that the command reaches, preferably of its own room."""
    files = sorted(path for path in reached_files(ROOT / "scripts", command) if path.suffix == ".py" and path.name != "__init__.py")
    library = [path for path in files if path.parent != ROOT / "scripts"]
    own = [path for path in library if path.relative_to(ROOT / "scripts" / "neuralmedbench").parts[0] not in SHARED]
    return (own or library)[-1]


@pytest.fixture(scope="module")
def edited(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the finished run and edit a module of every rule."""
    folder = tmp_path_factory.mktemp("edited") / "project"
    shutil.copytree(finished_run, folder)
    for module in {module_of(rule).relative_to(ROOT) for rule in RULES}:
        append_comment(folder / module)
    return folder


@pytest.fixture(scope="module")
def changed(edited: Path, run_snakemake: Snakemake) -> set[str]:
    """Return the outputs that Snakemake would make again because the params of their rule changed."""
    done = run_snakemake(edited, *TINY, "--list-changes", "params", "--", "results/test/report.html")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return set(done.stdout.splitlines())


def append_comment(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")


def code_params(scripts: Path, rule: str) -> str:
    """Return the digest of a rule's code as Snakemake writes it, reading the files again."""
    for function in (code_hash.code_hash, code_hash._content, code_hash._imports, code_hash._data_files):
        function.cache_clear()
    return repr(code_hash.code_hash(scripts, rule))


@pytest.mark.parametrize("rule", RULES)
def test_an_edit_of_a_reached_module_plans_the_rule(finished_run: Path, changed: set[str], tmp_path: Path, rule: str) -> None:
    made = [made for made in read_metadata(finished_run / METADATA) if made.rule == rule]
    assert made
    for part in ("scripts", "rules", "envs"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    before = code_params(tmp_path / "scripts", rule)
    append_comment(tmp_path / module_of(rule).relative_to(ROOT))
    assert code_params(tmp_path / "scripts", rule) != before
    assert all(before in one.params for one in made), "what Snakemake compares is the digest of the rule's code"
    assert {one.path for one in made} <= changed, "and a digest that changed makes the rule's files anew"


def test_an_edit_of_one_module_plans_the_rules_that_reach_it_and_what_follows_from_them(
    finished_run: Path, run_snakemake: Snakemake, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(finished_run, folder)
    append_comment(folder / module_of("draw_figures").relative_to(ROOT))
    plan = run_snakemake(folder, *TINY, "-n", "--", "results/test/report.html")
    assert re.findall(r"^(?:local)?rule (\w+):$", plan.stdout, flags=re.MULTILINE) == ["draw_figures", "build_report"]
    assert plan.stdout.count("reason: Params have changed since last execution") == 1


def test_the_default_configuration_can_be_planned_on_a_fresh_copy(project: Path, run_snakemake: Snakemake) -> None:
    plan = run_snakemake(project, "-n", "--configfile", "config/config.yaml")
    assert plan.returncode == 0, plan.stdout[-2000:] + plan.stderr[-2000:]
    assert "build_report" in plan.stdout


def test_the_cluster_profile_judges_a_run_by_the_same_rules() -> None:
    default, slurm = (yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text()) for name in ("default", "slurm"))
    keys = set(default) - {"default-resources", "resources"}  # available resources, which do not make a result out of date
    assert {key: default[key] for key in keys} == {key: slurm.get(key) for key in keys}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--config", "models=[txt]"), "config/models/txt.yaml: the file is not there; did you mean 'text'?"),
        pytest.param(
            ("--config", "benchmark=[demo]"),
            "config/config.yaml with --config: unknown key 'benchmark'; did you mean 'benchmarks'?",
            marks=pytest.mark.long,
        ),
        (
            ("--config", "models=[gpt-4o]"),
            "2 mistakes demo: model gpt-4o: its requests would go to api.openai.com, allowed are: local; add",
        ),
    ],
)
def test_a_wrong_run_list_stops_with_one_clear_line(
    project: Path, run_snakemake: Snakemake, arguments: tuple[str, ...], message: str
) -> None:
    done = run_snakemake(project, "-n", *arguments)
    assert done.returncode != 0
    assert f"ConfigError: {message}" in " ".join((done.stdout + done.stderr).split())


def test_a_missing_case_table_is_named_with_the_command_that_writes_it(project: Path, run_snakemake: Snakemake) -> None:
    (project / "config" / "benchmarks" / "demo-tiny.cases.tsv").unlink()
    done = run_snakemake(project, "-n", *TINY, "--", "results/test/report.html")
    assert done.returncode != 0
    assert "demo-tiny.cases.tsv: the case table is not there" in done.stdout + done.stderr
    assert "`nmb cases list`" in done.stdout + done.stderr


@pytest.mark.long
def test_a_skipped_grade_is_final_counted_in_the_last_line_and_asked_for_again_alone(
    finished_run: Path, run_snakemake: Snakemake, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(finished_run, folder)
    settings = yaml.safe_load((folder / "config" / "test.yaml").read_text()) | {"graders": ["rubric", "llm"]}
    (folder / "config" / "graded.yaml").write_text(yaml.safe_dump(settings))
    graded = ("--configfile", "config/graded.yaml")
    target = "results/graded/grades/demo-tiny/text/llm.parquet"
    done = run_snakemake(folder, *graded, "--", target)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    said = (done.stdout + done.stderr).splitlines()
    assert any(
        line.startswith("missing: ") and "skipped, " in line and "`nmb run retry --configfiles config/graded.yaml`" in line for line in said
    )
    assert not any("Error" in line for line in said), "a part that was made is no failure"
    assert "Nothing to be done" in run_snakemake(folder, "-n", *graded, "--", target).stdout

    command = [*NMB, "run", "incomplete", "--configfiles", "config/graded.yaml"]
    incomplete = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    listed = incomplete.stdout.split()
    assert (incomplete.returncode, listed) == (3, [target])
    plan = run_snakemake(folder, "-n", *graded, "--forcerun", *listed, "--", target)
    assert re.findall(r"^(?:local)?rule (\w+):$", plan.stdout, flags=re.MULTILINE) == ["grade_responses"]
