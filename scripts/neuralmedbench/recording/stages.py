"""Generate the stages of `dvc.yaml` from the run lists of the recorded runs, list the rules that Snakemake would still run, and rerun files."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from neuralmedbench.config.run_names import results_of
from neuralmedbench.config.workflow import Run, read_run
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.dvc_lock import read_dvc_lock
from neuralmedbench.records.items import Kind
from neuralmedbench.records.scores import PLANTED, SIMULATED_ROUND

HEADER = "# Generated from the run lists by `make docs`; do not edit by hand. Snakemake is the engine, this is its ledger.\n"
CODE = ("Snakefile", "rules", "scripts")
BENCHMARK, MODEL, GRADER = "${item.benchmark}", "${item.model}", "${item.grader}"
PROMPTS = f"data/prompts/{BENCHMARK}.parquet"
ACCEPTED = f"config/benchmarks/{BENCHMARK}.leaks.json"
LEAKS, LEAK_PAGE = f"data/leaks/{BENCHMARK}.json", f"data/leaks/{BENCHMARK}.html"
GOLD = f"data/gold/{BENCHMARK}.parquet"
ALTERED = f"data/altered/{BENCHMARK}"
VIEWS = f"data/views/{BENCHMARK}.parquet"
LESIONS = f"data/gold/{BENCHMARK}/lesions.parquet"
EXEMPLARS = f"data/disclosures/{BENCHMARK}/exemplars.parquet"
PLOT = {"template": "leaderboard", "x": "pass1", "y": "model", "x_label": "pass@1", "y_label": "model", "title": "pass@1 by benchmark"}
Stages = dict[str, dict[str, Any]]


def dvc_yaml(*runs: Run) -> str:
    """Return the text of `dvc.yaml` for the runs that are recorded.

    Parameters
    ----------
    runs : Run
        The runs; private benchmarks are left out. A benchmark's data are recorded once, with the first run that uses it.

    Returns
    -------
    str
        The file. Every stage calls Snakemake for its output, so that there is one way to make a file; every out persists, so that
        Snakemake can resume from it; the last stage owns Snakemake's own records. Stages of a named run end in `-<name>`.
    """
    stages: Stages = {"by_hand": _outs_without_rule("written by people", [path for run in runs for path in _by_hand(run)])}
    described: set[str] = set()
    for run in sorted(runs, key=lambda run: (bool(run.configfiles), run.name)):
        new = [name for name in run.recorded() if name not in described]
        described.update(new)
        # DVC allows no dot in the name of a stage
        suffix = f"-{run.name.replace('.', '_')}" if run.configfiles else ""
        head = shlex.join(["snakemake", "--cores", "8", *run.options("--configfile")])
        stages |= {
            f"{name}{suffix}": {**stage, "cmd": f"{head} {stage['cmd']}"}
            for name, stage in (_data_stages(run, new) | _result_stages(run, run.recorded())).items()
        }
    stages["ledgers"] = _outs_without_rule("appended to by models and graders", [path for run in runs for path in _ledgers(run)])
    stages["records"] = _outs_without_rule("written by Snakemake", [".snakemake/metadata"])
    # a stage with an empty matrix has nothing to make, and is left out
    used = {name: stage for name, stage in stages.items() if all(stage.get("matrix", {"": True}).values())}
    plots = [{f"{run.results}/tables/leaderboard.csv": PLOT} for run in runs]
    return HEADER + yaml.dump({"stages": used, "plots": plots}, Dumper=_Plain, sort_keys=False, width=140)


def _data_stages(run: Run, shared: list[str]) -> Stages:
    """Return the stages of some benchmarks' data, which all runs share."""
    scans = [name for name in shared if run.benchmarks[name].kind is Kind.SCANS]
    cased = [name for name in shared if run.benchmarks[name].has_cases]
    # pictures and text have no scans, so no normalisation and no slices
    loose = [name for name in shared if name not in scans]
    phantoms = [name for name in scans if run.benchmarks[name].source == "phantoms"]
    # all benchmarks of a stage share its dependencies, and most have no such file: those that do get a stage of their own
    accepted = [name for name in shared if (run.folder / "benchmarks" / f"{name}.leaks.json").is_file()]
    return {
        "answers": _stage(
            {"benchmark": phantoms},
            [f"config/benchmarks/{BENCHMARK}.cases.tsv"],
            [f"data/answers/{BENCHMARK}.csv", f"data/answers/{BENCHMARK}"],
        ),
        "deidentify": _stage(
            {"benchmark": cased},
            [f"config/benchmarks/{BENCHMARK}.yaml", f"config/benchmarks/{BENCHMARK}.cases.tsv"],
            [f"data/deidentified/{BENCHMARK}"],
            target="/audit.json",
        ),
        "deidentify_pictures": _stage(
            {"benchmark": [name for name in loose if name not in cased]},
            [f"config/benchmarks/{BENCHMARK}.yaml"],
            [f"data/deidentified/{BENCHMARK}"],
            target="/audit.json",
        ),
        "slices": _stage(
            {"benchmark": scans},
            [f"data/deidentified/{BENCHMARK}"],
            [f"data/slices/{BENCHMARK}", f"data/normalised/{BENCHMARK}"],
            target="/slices.parquet",
        ),
        "review": _stage(
            {"benchmark": scans},
            [f"data/deidentified/{BENCHMARK}", f"data/normalised/{BENCHMARK}", f"data/slices/{BENCHMARK}"],
            [f"data/reviews/{BENCHMARK}"],
            target="/review.json",
        ),
        "review_pictures": _stage(
            {"benchmark": loose}, [f"data/deidentified/{BENCHMARK}"], [f"data/reviews/{BENCHMARK}"], target="/review.json"
        ),
        "alter": _stage(
            {"benchmark": [name for name in shared if run.alters(name)]},
            [f"data/items/{BENCHMARK}.parquet", f"config/benchmarks/{BENCHMARK}.yaml", *_arm_folders(run, shared)],
            [ALTERED],
            target="/pictures.parquet",
        ),
        "views": _stage(
            {"benchmark": [name for name in shared if run.view_tables(name)]},
            [f"data/normalised/{BENCHMARK}", f"config/benchmarks/{BENCHMARK}.yaml"],
            [VIEWS],
        ),
        "prompts": _prompts(run, [name for name in shared if name not in accepted]),
        "prompts_with_accepted_leaks": _prompts(run, accepted, ACCEPTED),
    }


def _result_stages(run: Run, shared: list[str]) -> Stages:
    """Return the stages of the results of one run, from inference on."""
    results, models = run.results, list(run.models)
    responses, scores = f"{results}/responses/{BENCHMARK}/{MODEL}.parquet", f"{results}/scores/{BENCHMARK}/{MODEL}.parquet"
    grades, planted_grades = (f"{results}/grades/{BENCHMARK}/{one}/{GRADER}.parquet" for one in (MODEL, PLANTED))
    planted = f"{results}/planted/{BENCHMARK}.parquet"
    described = [name for name in shared if not run.benchmarks[name].private]
    graders = _graders_by_kind(run)
    simulated = [name for name in run.simulated if name in shared]
    grade_deps = [responses, GOLD, f"config/graders/{GRADER}.yaml", *run.urgency_files]
    planted_deps = [planted, GOLD, f"config/graders/{GRADER}.yaml"]
    # the stages of one matrix share their dependencies: the members of all juries
    members = list(dict.fromkeys(member for jury in graders["jury"] for member in run.graders[jury].members))
    asked, looking = [PROMPTS, LEAKS, f"config/models/{MODEL}.yaml"], [name for name in shared if run.view_tables(name)]
    # DVC takes no file twice: the yaml of a model of the run list is a dependency of its own stage
    asked += [path for path in run.informant_files(*shared) if Path(path).stem not in run.models]
    stages = {
        "infer": _stage({"benchmark": [name for name in shared if name not in looking], "model": models}, asked, [responses]),
        "infer_with_views": _stage({"benchmark": looking, "model": models}, [*asked, VIEWS, f"data/normalised/{BENCHMARK}"], [responses]),
        "plant_errors": _stage({"benchmark": shared}, [GOLD, run.config.vocabulary, *run.urgency_files], [planted]),
        "grade_planted": _stage({"benchmark": shared, "grader": graders["rubric"]}, planted_deps, [planted_grades]),
        "grade_planted_with_model": _stage(
            {"benchmark": shared, "grader": graders["llm"]}, [*planted_deps, "config/prompts"], [planted_grades]
        ),
        "decide_jury_planted": _stage(
            {"benchmark": shared, "grader": graders["jury"]},
            [f"config/graders/{GRADER}.yaml", *(f"{results}/grades/{BENCHMARK}/{PLANTED}/{member}.parquet" for member in members)],
            [planted_grades],
        ),
        "grade": _stage({"benchmark": shared, "model": models, "grader": graders["rubric"]}, grade_deps, [grades]),
        "grade_with_model": _stage(
            {"benchmark": shared, "model": models, "grader": graders["llm"]}, [*grade_deps, "config/prompts"], [grades]
        ),
        "decide_jury": _stage(
            {"benchmark": shared, "model": models, "grader": graders["jury"]},
            [f"config/graders/{GRADER}.yaml", *(f"{results}/grades/{BENCHMARK}/{MODEL}/{member}.parquet" for member in members)],
            [grades],
        ),
        "similarity": _stage(
            {"benchmark": shared},
            [GOLD, *(f"{results}/responses/{BENCHMARK}/{model}.parquet" for model in models)],
            [f"{results}/similarity/{BENCHMARK}.parquet"],
        ),
        "score": _stage(
            {"benchmark": shared, "model": models},
            [
                responses,
                GOLD,
                LESIONS,
                *(f"{results}/grades/{BENCHMARK}/{one}/{grader}.parquet" for one in (MODEL, PLANTED) for grader in run.graders),
                *run.urgency_files,
            ],
            [scores],
        ),
        "cases": _stage(
            {"benchmark": shared},
            [f"{results}/scores/{BENCHMARK}/{model}.parquet" for model in models],
            [f"{results}/cases/{BENCHMARK}.parquet"],
        ),
        "describe": _stage(
            {"benchmark": described},
            [f"data/items/{BENCHMARK}.parquet", f"config/benchmarks/{BENCHMARK}.yaml", "config/cards"],
            [f"{results}/croissant/{BENCHMARK}.json"],
        ),
        "simulated_ratings": _simulated_ratings(run, simulated),
        "ratings": _stage(
            {},
            [run.round_folder(name) for name in run.rating_rounds if name != SIMULATED_ROUND or simulated],
            [f"{results}/ratings/ratings.parquet"],
        ),
        "tables": _stage(
            {},
            [
                *(f"{results}/scores/{name}/{model}.parquet" for name in shared for model in models),
                *(f"{results}/similarity/{name}.parquet" for name in shared),
                *(f"{results}/grades/{name}/{PLANTED}/{grader}.parquet" for name in shared for grader in run.all_graders),
                f"{results}/ratings/ratings.parquet",
                "config/rating.yaml",
                *run.urgency_files,
                *(f"config/published/{name}.yaml" for name in run.published),
            ],
            [f"{results}/tables"],
            target=" ".join(["/verdict.json", *(f"{results}/tables/paper/{name}.csv" for name in run.published)]),
        ),
        "report": _stage(
            {},
            [
                f"{results}/tables",
                *(f"{results}/cases/{name}.parquet" for name in shared),
                *(f"{results}/croissant/{name}.json" for name in described),
            ],
            [run.report, f"{results}/figures", f"{results}/provenance.json"],
        ),
    }
    stages["tables"]["metrics"] = [_out(f"{results}/metrics.json")]
    return stages


def _graders_by_kind(run: Run) -> dict[str, list[str]]:
    return {kind: [name for name, grader in run.all_graders.items() if grader.kind == kind] for kind in ("rubric", "llm", "jury")}


def _ledgers(run: Run) -> list[str]:
    """Return the ledgers of a run; runs share them, so that no answer is paid for twice."""
    shared, asking = run.recorded(), _graders_by_kind(run)["llm"]
    answers = [f"data/ledger/{name}/{model}.jsonl" for name in shared for model in run.models]
    graded = [f"data/ledger/{name}/graders/{one}/{grader}.jsonl" for name in shared for one in (PLANTED, *run.models) for grader in asking]
    return answers + graded


class _Plain(yaml.SafeDumper):
    """YAML without anchors, which DVC reads but people do not."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _arm_folders(run: Run, benchmarks: list[str]) -> list[str]:
    """Return the folders of the arms and layouts of some benchmarks; none if all arms are built in."""
    arms = [arm for name in benchmarks for arm in run.arms[name].values()]
    return [*(["config/arms"] if arms else []), *(["config/layouts"] if any(arm.layout for arm in arms) else [])]


def _prompts(run: Run, benchmarks: list[str], *more: str) -> dict[str, Any]:
    return _stage(
        {"benchmark": benchmarks},
        [
            f"data/deidentified/{BENCHMARK}",
            f"config/benchmarks/{BENCHMARK}.yaml",
            *more,
            "config/prompts",
            *_arm_folders(run, benchmarks),
            run.config.vocabulary,
            *run.names_files,
        ],
        [
            LEAKS,
            PROMPTS,
            *(f"data/{part}/{BENCHMARK}.parquet" for part in ("items", "gold", "disclosures")),
            LESIONS,
            EXEMPLARS,
            LEAK_PAGE,
        ],
    )


def _simulated_ratings(run: Run, benchmarks: Sequence[str]) -> dict[str, Any]:
    """Return the stage of the demo's simulated raters; an empty matrix leaves it out."""
    answers = [(name, model) for name in benchmarks for model in run.models]
    deps = [
        *(f"{run.results}/responses/{name}/{model}.parquet" for name, model in answers),
        *(f"{run.results}/grades/{name}/{model}/{grader}.parquet" for name, model in answers for grader in run.graders_of("rubric")[:1]),
        "config/rating.yaml",
    ]
    stage = _stage({}, deps, [run.round_folder(SIMULATED_ROUND)], target="/key.json")
    return stage if benchmarks else {**stage, "matrix": {"": []}}


def _by_hand(run: Run) -> list[str]:
    """Return the files by people: signatures, answers, imported questions and ratings; a clone needs them, and no rule makes them."""
    shared = run.recorded()
    signed = [f"data/reviews/{name}.json" for name in shared if run.benchmarks[name].subjects == "patient"]
    own = [run.benchmarks[name] for name in shared if run.benchmarks[name].source != "phantoms"]
    answers = [path for benchmark in own for path in (benchmark.answers, benchmark.lesion_masks) if path]
    questions = [questions for name in shared if (questions := run.benchmarks[name].questions)]
    return [*signed, *answers, *questions, *(run.round_folder(name) for name in run.rating_rounds if name != SIMULATED_ROUND)]


def _outs_without_rule(who: str, outs: Sequence[str]) -> dict[str, Any]:
    """Return a stage of files that no stage makes, each named once; without files it is left out."""
    unique = list(dict.fromkeys(outs))
    stage = {"cmd": f"echo {who}", "frozen": True, "outs": [_out(path) for path in unique]}
    return stage if unique else {**stage, "matrix": {"": []}}


def _stage(matrix: dict[str, list[str]], deps: Sequence[str], outs: Sequence[str], *, target: str = "") -> dict[str, Any]:
    """Return a stage; its command is a call of Snakemake for the first out, or for `target` in it."""
    head: dict[str, Any] = {"matrix": matrix} if matrix else {}
    return {**head, "cmd": f"-- {outs[0]}{target}", "deps": [*deps, *CODE], "outs": [_out(path) for path in outs]}


def _out(path: str) -> dict[str, dict[str, bool]]:
    return {path: {"persist": True}}


NOTHING_TO_DO = "Nothing to be done"


def recorded_runs(run: Run) -> list[Run]:
    """Read the other runs that `dvc.lock` records, from the commands of their reports; a run whose configfile is gone is left out.

    Raises
    ------
    ConfigError
        If the configuration of one cannot be read.
    """
    others = []
    for path, out in read_dvc_lock().items():
        words = [word for word in shlex.split(out.command) if word != "--"]
        if not path.endswith("/report.html") or words[-1:] != [path] or path == run.report:
            continue
        names = words[words.index("--configfile") + 1 : -1] if "--configfile" in words else []
        # before runs had names, the run of any configfile lay in results/
        if all(Path(name).is_file() for name in names) and path == f"{results_of(names)}/report.html":
            others.append(read_run([Path(name) for name in names], run.folder))
    return others


def planned_rules(run: Run) -> list[str]:
    """Return the rules that Snakemake would run for the report, with reasons, sorted; empty if the report is complete."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "-n", "--nolock", *run.options("--configfile"), "--", run.report]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
    output = done.stdout + done.stderr
    if done.returncode != 0:
        message = (
            f"the run cannot be planned; `{shlex.join(['snakemake', '-n', *run.options('--configfile'), '--', run.report])}` shows why"
        )
        raise ConfigError(message)
    # Snakemake's dry run states this line if the target is complete
    return [] if NOTHING_TO_DO in output else sorted(set(_rules(output.splitlines())))


def _rules(lines: Sequence[str]) -> list[str]:
    """Read rules and their reasons from Snakemake's dry run: a line `rule NAME:`, below it a line `reason: ...`."""
    rules, rule = [], ""
    for line in lines:
        words = line.strip()
        if words.startswith(("rule ", "localrule ")):
            rule = words.split()[1].rstrip(":")
        elif words.startswith("reason:") and rule:
            rules.append(f"{rule} ({words.removeprefix('reason:').strip().split(':')[0]})")
    return rules


def run_again(files: Sequence[str], run: Run, *, cores: int = 1) -> int:
    """Run Snakemake to make some files and the report again; return its exit code."""
    return make_files([run.report], run, cores=cores, again=files)


def make_files(targets: Sequence[str], run: Run, *, cores: int = 1, again: Sequence[str] = ()) -> int:
    """Run Snakemake to make the targets of a run, and some files again even if they are up to date; return its exit code."""
    forced = ["--forcerun", *again] if again else []
    command = [sys.executable, "-m", "snakemake", "--cores", str(cores), *run.options("--configfile"), *forced, "--", *targets]
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ.get('PATH', '')}"  # rules call `python`
    # Snakemake answers Ctrl-C (`runtime.terminal`): here it is ignored, and there too until its rules are read, instead of a traceback
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.run(command, check=False, env={**os.environ, "PATH": path}).returncode
    finally:
        signal.signal(signal.SIGINT, handler)
