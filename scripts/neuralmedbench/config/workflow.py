"""One run: configuration and case lists, read and validated before any job starts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from neuralmedbench.config.arms import AT_LESION, ArmVariant, load_arms
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.juries import jury_members
from neuralmedbench.config.layouts import load_layout
from neuralmedbench.config.load import (
    group_limit,
    load_benchmark,
    load_grader,
    load_informant,
    load_model,
    load_pipeline,
    load_published,
    read_yaml,
    readable_part,
)
from neuralmedbench.config.model import GraderConfig, ModelConfig, indistinct_models
from neuralmedbench.config.pipeline import PipelineConfig
from neuralmedbench.config.published import PublishedConfig
from neuralmedbench.config.run_names import extra_configfiles, results_folder, run_name, run_of
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.cases import CaseRow, case_table, read_case_table, unlisted_cases, unlisted_notice
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.files.json_files import read_json_record
from neuralmedbench.files.known_lesions import MASK_SUFFIX
from neuralmedbench.files.vocabulary import diseases_path, names_path, urgency_path
from neuralmedbench.records.items import Kind, Strategy
from neuralmedbench.records.questions import IMPORT_RECORD, QUESTION_FILES
from neuralmedbench.records.review import AcceptedIdentityLeak, AcceptedIdentityLeaks
from neuralmedbench.records.scores import PLANTED, SIMULATED_ROUND

T = TypeVar("T")
Check = Callable[["Run"], Iterable[str]]


def _no_further_mistakes(_: Run) -> Iterable[str]:
    """Return no mistakes: a check that checks nothing."""
    return ()


class Mistakes:
    """Mistakes of several files, so that all are reported together."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, line: str) -> None:
        """Add one mistake."""
        self._lines.append(line)

    def of(self, read: Callable[..., T], *arguments: Any) -> T | None:
        """Return what `read` returns; None if it raises a ConfigError, whose mistakes are added."""
        try:
            return read(*arguments)
        except ConfigError as error:
            self._lines += map(str, error.args)
            return None

    def raise_all(self) -> None:
        """Raise a ConfigError if there are mistakes."""
        if self._lines:
            raise ConfigError(*dict.fromkeys(self._lines))


def used_cases(folder: Path, benchmark: str) -> list[str]:
    """Return the case ids of a benchmark's table that are not excluded; ConfigError as in `read_case_table`."""
    return [row.case_id for row in read_case_table(case_table(folder, benchmark)) if not row.exclude]


def _check_questions(name: str, benchmark: BenchmarkConfig) -> None:
    if benchmark.questions and not Path(benchmark.picture_table).is_file():
        message = f"{name}: its questions are not there; import the data set (nmb benchmark import --help), or correct `questions`"
        raise ConfigError(message)
    if benchmark.kind is Kind.TEXT and not benchmark.questions:
        message = f"{name}: a benchmark of `kind: text` is an imported data set; name its folder as `questions`"
        raise ConfigError(message)
    if benchmark.questions and benchmark.subjects == "patient":
        message = (
            f"{name}: an imported data set is used as published, its texts are not searched for names; set `subjects: public` if it is"
            " public, and add your own patients as scans or pictures with a case table (docs/own-data.md)"
        )
        raise ConfigError(message)


def _check_benchmark(name: str, benchmark: BenchmarkConfig, config: PipelineConfig, folder: Path) -> None:
    # Snakemake treats a vanished input as unchanged; files that are not private may be missing in a clone
    if benchmark.private and benchmark.answers and not Path(benchmark.answers).is_file():
        message = f"{name}: the answers table is not there; correct `answers` in {folder.name}/benchmarks/{name}.yaml, or take it out"
        raise ConfigError(message)
    _check_questions(name, benchmark)
    # a recorded run is reproduced from a clone
    if benchmark.record and benchmark.answers and not benchmark.answers.startswith("data/answers/"):
        message = f"{name}: `record: true` needs `answers` in data/answers/, so that a clone has them; move the table there"
        raise ConfigError(message)
    masks = Path(benchmark.lesion_masks) if benchmark.lesion_masks else None
    if masks and benchmark.source != "phantoms" and not masks.is_dir() and benchmark.private:
        message = f"{name}: the folder `lesion_masks` is not there; correct it in {folder.name}/benchmarks/{name}.yaml, or take it out"
        raise ConfigError(message)
    if benchmark.record and masks and not masks.is_relative_to("data/answers"):
        message = f"{name}: `record: true` needs `lesion_masks` in data/answers/, so that a clone has them; move the folder there"
        raise ConfigError(message)
    if config.slices.policy == "lesion" and benchmark.kind is Kind.SCANS and not benchmark.answers:
        message = (
            f"{name}: slices.policy is lesion, which needs positions from an answers table; name it as `answers`, or choose another policy"
        )
        raise ConfigError(message)


def _check_oracle(name: str, benchmark: BenchmarkConfig, arms: Mapping[str, ArmVariant], policy: str) -> None:
    for arm in (arm for arm, variant in arms.items() if variant.config.pictures == AT_LESION):
        lacking = "slices of scans" if benchmark.kind is not Kind.SCANS else "" if benchmark.answers else "positions from an answers table"
        if lacking:
            message = f"{name}: the arm {arm} needs {lacking}, which this benchmark has not; take it out of `arms`"
            raise ConfigError(message)
        if policy == "lesion":
            message = f"{name}: slices.policy is lesion, so the arm {arm} would show what `full` shows; choose another policy, or take it out of `arms`"
            raise ConfigError(message)


def _check_worked_up(name: str, benchmark: BenchmarkConfig, table: Sequence[CaseRow]) -> None:
    known = {row.case_id for row in table}
    if table and (unknown := [case for case in benchmark.workup_cases if case not in known]):
        message = f"{name}: workup_cases: {unknown[0]} is in no row of {name}.cases.tsv; correct the case id, or take it out"
        raise ConfigError(message)


def _missing_file(folder: Path, name: str) -> str:
    """Return the first missing file that a benchmark needs; empty if all exist."""
    path = folder / "benchmarks" / f"{name}.yaml"
    needed = [path]
    if path.is_file():
        benchmark = load_benchmark(folder, name)
        needed += [Path(benchmark.picture_table)] if benchmark.questions else []
        needed += [path.with_name(f"{name}.cases.tsv")] if benchmark.has_cases else []
        needed += [Path(benchmark.answers)] if benchmark.private and benchmark.answers else []
    return next((file.as_posix() for file in needed if not file.is_file()), "")


def merged_config(configfiles: Sequence[Path] = (), folder: Path = Path("config")) -> dict[str, Any]:
    """Merge `config.yaml` and further configuration files as Snakemake does: later files override earlier ones, key by key."""
    from snakemake.utils import update_config

    merged: dict[str, Any] = {}
    for path in (folder / "config.yaml", *configfiles):
        settings = read_yaml(path)
        if not isinstance(settings, dict):
            found = "it is empty" if settings is None else f"found a {type(settings).__name__}"
            message = f"{path.as_posix()}: expected keys and their values ({found}); write a line such as `seed: 1`, or take the file out"
            raise ConfigError(message)
        update_config(merged, settings)
    return merged


def _sources(value: Any, folder: Path, configfiles: Sequence[str]) -> list[str]:
    """Name the files of a merged configuration, and the command line if a key is in none of them."""
    names = [(folder / "config.yaml").as_posix(), *configfiles]
    if not isinstance(value, dict) or value.keys() <= PipelineConfig.model_fields.keys():
        return names  # nothing to look for in the files
    try:
        files = merged_config([Path(name) for name in configfiles], folder)
    except ConfigError:
        return names
    return [*names, "--config"] if value.keys() - files.keys() else names


def read_run(configfiles: Sequence[Path] = (), folder: Path = Path("config"), also: Check = _no_further_mistakes) -> Run:
    """Read a run outside Snakemake, merging its files as Snakemake does.

    Parameters
    ----------
    configfiles : sequence of Path
        Files given on the run's command line; `config.yaml` of the folder comes first.
    folder : Path
        The folder `config/`.
    also : callable
        As in `Run.read`.

    Returns
    -------
    Run
        The run.

    Raises
    ------
    ConfigError
        If keys, files or tables are wrong or missing: all of them.
    """
    return Run.read(merged_config(configfiles, folder), folder, also, configfiles=extra_configfiles(configfiles, folder))


@dataclass(frozen=True)
class Run:
    """Everything that a run is configured with.

    Attributes
    ----------
    config : PipelineConfig
        The merged configuration.
    folder : Path
        The folder `config/`.
    benchmarks, models, graders : dict
        The run lists' files by name, in the order of the lists.
    members : dict
        Members of the run list's juries that are not in the list themselves; they grade, but give no score.
    tables : dict of str to list of CaseRow
        Case table of each benchmark with cases: scans, and pictures of own patients.
    published : dict
        Published numbers by name.
    absent : dict of str to str
        Benchmarks of the run list that the run leaves out, with the missing file.
    configfiles : tuple of str
        Configuration files of the command line, as `extra_configfiles` returns them.
    """

    config: PipelineConfig
    folder: Path
    benchmarks: dict[str, BenchmarkConfig]
    models: dict[str, ModelConfig]
    graders: dict[str, GraderConfig]
    tables: dict[str, list[CaseRow]]
    members: dict[str, GraderConfig] = field(default_factory=dict)
    published: dict[str, PublishedConfig] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    configfiles: tuple[str, ...] = ()

    @classmethod
    def read(cls, value: Any, folder: Path, also: Check = _no_further_mistakes, configfiles: Sequence[str] = ()) -> Run:
        """Read everything in the run lists.

        Parameters
        ----------
        value : object
            The merged configuration, as Snakemake read it.
        folder : Path
            The folder `config/`.
        also : callable
            Further check; it gets what could be read, and its mistakes are reported with the others.
        configfiles : sequence of str
            Configuration files of the command line, as `extra_configfiles` returns them; the last one names the run.

        Returns
        -------
        Run
            The run.

        Raises
        ------
        ConfigError
            If keys, files or tables are wrong or missing: all of them.
        """
        mistakes = Mistakes()
        config = mistakes.of(load_pipeline, value, _sources(value, folder, configfiles)) or readable_part(value)
        if config.limit and not configfiles:
            mistakes.add(
                "limit: a limited run has a configfile and results of its own; take `limit` out of config.yaml (`nmb run try --help`)"
            )
        mistakes.of(run_name, configfiles)
        # benchmarks, some of which may be left out
        missing = {name: mistakes.of(_missing_file, folder, name) or "" for name in config.benchmarks} if config.leave_out_absent else {}
        absent = {name: path for name, path in missing.items() if path}
        read = {name: mistakes.of(load_benchmark, folder, name) for name in config.benchmarks if name not in absent}
        benchmarks = {name: benchmark for name, benchmark in read.items() if benchmark}
        for name, benchmark in benchmarks.items():
            mistakes.of(_check_benchmark, name, benchmark, config, folder)
            mistakes.of(_check_oracle, name, benchmark, mistakes.of(load_arms, folder, benchmark.arms, name) or {}, config.slices.policy)
            if informant := mistakes.of(load_informant, folder, name):
                mistakes.of(group_limit, informant, config.rate_limits)
        # models and graders, all of whose rate limit groups must exist
        if PLANTED in config.models:
            mistakes.add(
                f"models: no model may be called {PLANTED!r}: results of planted errors have this name; rename config/models/{PLANTED}.yaml"
            )
        models = {name: mistakes.of(load_model, folder / "models" / f"{name}.yaml") for name in config.models}
        graders = {name: mistakes.of(load_grader, folder / "graders" / f"{name}.yaml") for name in config.graders}
        known = {name: grader for name, grader in graders.items() if grader}
        members = mistakes.of(jury_members, folder, known) or {}
        for name, grader in (known | members).items():
            mistakes.of(load_arms, folder, grader.arms or (), name)
        for model in [*models.values(), *(grader.model for grader in (known | members).values())]:
            if model:
                mistakes.of(group_limit, model, config.rate_limits)
        for name, found in models.items():
            if found and found.layout:
                mistakes.of(load_layout, folder, found.layout, f"model {name}: layout")
        for line in indistinct_models(model for model in models.values() if model):
            mistakes.add(line)
        tables = {
            name: mistakes.of(read_case_table, case_table(folder, name)) for name, benchmark in benchmarks.items() if benchmark.has_cases
        }
        for name, table in tables.items():
            mistakes.of(_check_worked_up, name, benchmarks[name], table or ())
        published = {name: mistakes.of(load_published, folder / "published" / f"{name}.yaml") for name in config.published}
        run = cls(
            config=config,
            folder=folder,
            benchmarks=benchmarks,
            models={name: model for name, model in models.items() if model},
            graders=known,
            members=members,
            tables={name: table for name, table in tables.items() if table is not None},
            published={name: paper for name, paper in published.items() if paper},
            absent=absent,
            configfiles=tuple(configfiles),
        )
        for mistake in also(run):
            mistakes.add(mistake)
        mistakes.raise_all()
        return run

    @property
    def name(self) -> str:
        """Name of the run: the stem of its last configuration file."""
        return run_name(self.configfiles)

    @property
    def results(self) -> str:
        """Folder of the results: no other module builds this path."""
        return results_folder(self.name)

    @property
    def report(self) -> str:
        """Path of the report."""
        return f"{self.results}/report.html"

    @property
    def logs(self) -> str:
        """Folder of the logs of the jobs."""
        return self.results.replace("results", "logs", 1)

    def round_folder(self, name: str) -> str:
        """Return the folder of a rating round; simulated raters rate the answers of this run, so their round lies among its results."""
        return f"{self.results}/ratings/{name}" if name == SIMULATED_ROUND and self.configfiles else f"data/ratings/{name}"

    def settings(self, *keys: str, **values: Any) -> str:
        """Return the settings of a command in JSON.

        Parameters
        ----------
        keys : str
            Keys of the configuration: a value (`limit`), a section (`slices`), or one key of it (`slices/sent_px`). One that has its
            default is left out, so that a new key replans nothing.
        values : object
            What the configuration alone does not say. Never a private value: this text stands in logs and in the metadata of Snakemake.
        """
        for key in keys:
            section, _, name = key.partition("/")
            if name and name in self._changed.get(section, {}):
                values.setdefault(section, {})[name] = self._changed[section][name]
            elif not name and section in self._changed:
                values[section] = self._changed[section]
        return json.dumps(values, sort_keys=True)

    @cached_property
    def _changed(self) -> dict[str, Any]:
        """Keys of the configuration that are not at their defaults."""
        return self.config.model_dump(mode="json", exclude_defaults=True)

    def options(self, flag: str) -> list[str]:
        """Return the words of a command line that choose this run: `flag` and its configuration files, none for the run `config`."""
        return [flag, *self.configfiles] if self.configfiles else []

    def owns(self, path: str) -> bool:
        """Return True for a file among the results of this run; those of other runs may lie in folders below it."""
        found = run_of(path)
        return found is not None and found[0] == self.name

    def check_targets(self, words: Iterable[str]) -> None:
        """Refuse a target of the command line that belongs to another run: Snakemake would take an existing one for up to date.

        Raises
        ------
        ConfigError
            With the path of the same file in this run.
        """
        for word in words:
            found = run_of(os.path.relpath(word or "."))
            if found is None or found[0] == self.name:
                continue
            owner, rest = found
            message = (
                f"{word} is of the run {owner} ({self.folder.name}/{owner}.yaml), and this is the run {self.name}:"
                f" name {Path(self.results, *rest).as_posix()}, or no target for the report"
            )
            raise ConfigError(message)

    def why_absent(self, paper: str) -> str:
        """Return why the benchmark of published numbers has no result in this run; empty if it has."""
        published = self.published[paper]
        if published.benchmark in self.absent:
            return f"{self.absent[published.benchmark]} is not there: {published.import_}"
        return "" if published.benchmark in self.benchmarks else f"{published.benchmark} is not among the benchmarks of this run"

    def grader_files(self, *names: str) -> list[str]:
        """Return the files of some graders, by default of all, and those of the models that they ask."""
        graders = {name: self.all_graders[name] for name in names or self.all_graders}
        models = sorted({grader.asks for grader in graders.values() if grader.asks})
        return [f"config/graders/{name}.yaml" for name in graders] + [f"config/models/{model}.yaml" for model in models]

    @property
    def all_graders(self) -> dict[str, GraderConfig]:
        """All graders: the run list, then the members of its juries."""
        return self.graders | self.members

    def patients_per_edit(self, grader: str) -> int:
        """Return on how many patients per planted error a grader is tested."""
        checks = self.config.grader_checks
        return checks.rubric_items_per_edit if self.all_graders[grader].kind == "rubric" else checks.for_models

    def answers_per_edit(self, grader: str) -> int:
        """Return on how many patients per planted error a grader is tested with the answers of each model."""
        checks = self.config.grader_checks
        return checks.rubric_items_per_edit if self.all_graders[grader].kind == "rubric" else checks.answers_per_edit

    def grader_tests(self, model: str, grader: str) -> dict[str, object]:
        """Return how a grader is tested, for its command: with planted answers, or with those of a model."""
        if model == PLANTED:
            # a grader that was paid for before it could be tested is tested only if the configuration asks for it
            return {"patients": self.patients_per_edit(grader), "by_default": self.config.grader_checks.items_per_edit is None}
        return {"in_answers": self.answers_per_edit(grader), "names": list(self.models[model].names)}

    def recorded(self) -> list[str]:
        """Return the benchmarks that may be recorded: not private, or with `record: true`."""
        return [name for name, benchmark in self.benchmarks.items() if not benchmark.private or benchmark.record]

    @property
    def simulated(self) -> list[str]:
        """Benchmarks that simulated raters rate: only the demo's phantoms, and only with a deterministic grader."""
        wanted = SIMULATED_ROUND in self.config.rating_rounds and bool(self.graders_of("rubric"))
        return [name for name in self.of_kind(Kind.SCANS) if wanted and self.benchmarks[name].source == "phantoms"]

    @property
    def rating_rounds(self) -> list[str]:
        """Rating rounds to import; the simulated round only with simulated patients, whatever the configuration says."""
        return [name for name in self.config.rating_rounds if name != SIMULATED_ROUND or self.simulated]

    def notices(self) -> list[str]:
        """Return messages about settings that have no effect in this run, and about cases that left the case table but not this machine."""
        notices = []
        if SIMULATED_ROUND in self.config.rating_rounds and not self.simulated:
            message = f"rating_rounds: {SIMULATED_ROUND!r} is left out: simulated raters rate only the scans of the built-in demo"
            notices.append(f"{message}, and need a grader of kind rubric")
        for name, table in self.tables.items():
            if gone := unlisted_cases(Path("data"), name, table):
                notices.append(f"{name}: {unlisted_notice(name, gone)}")
        return notices

    def graders_of(self, kind: str) -> list[str]:
        """Return the graders of one kind, in run-list order."""
        return [name for name, grader in self.graders.items() if grader.kind == kind]

    @property
    def rubric_graders(self) -> list[str]:
        """Graders that judge rubrics by a language model: of the task `rubric`, and juries with such a member; in run-list order."""
        judging = {name for name, grader in self.all_graders.items() if grader.kind == "llm" and grader.task == "rubric"}
        return [name for name, grader in self.graders.items() if name in judging or judging & set(grader.members)]

    def places(self, benchmark: str, model: str) -> dict[str, object]:
        """Return the settings by which places in answers are read: what was asked for, and how the provider scales pictures down."""
        limit, config = self.models[model].provider_downscale, self.benchmarks[benchmark]
        if self.models[model].max_picture_px and str(config.coordinates).endswith("pixels"):
            message = (
                f"{model}: max_picture_px changes the pixels in which {benchmark} asks for places (`coordinates: {config.coordinates}`); write"
                " `coordinates: thousandths` there, or take max_picture_px out"
            )
            raise ConfigError(message)
        return {
            "form": config.answer_form,
            "coordinates": config.coordinates,
            "downscale": limit.model_dump(exclude_none=True) if limit else {},
            "layout_arms": list(self.layout_arms(benchmark, model)),
        }

    def layout_arms(self, benchmark: str, model: str) -> dict[str, ArmVariant]:
        """Return the arms that ask a model in its documented layout, if answers state places."""
        layout, config = self.models[model].layout, self.benchmarks[benchmark]
        arms = {} if layout is None or config.answer_form == "short" else self.arms[benchmark]
        return {name: arm for name, arm in arms.items() if arm.layout and arm.layout.name == layout}

    def layout_files(self, benchmark: str, model: str) -> list[str]:
        """Return the files of those arms and of their layouts."""
        return sorted({path.as_posix() for arm in self.layout_arms(benchmark, model).values() for path in arm.files})

    def cases(self, benchmark: str) -> list[str]:
        """Return the case ids of a benchmark that are not excluded."""
        return [row.case_id for row in self.tables[benchmark] if not row.exclude]

    def case(self, benchmark: str, case: str) -> CaseRow:
        """Look up one case."""
        return self._rows[benchmark][case]

    def accepted_leaks(self, benchmark: str, case: str = "") -> str:
        """Return a digest of what a person accepted in the files of a case, or of all cases; empty if nothing."""
        accepted = [f"{row.digest} {row.file} {row.place}" for row in self._accepted[benchmark] if case in {"", row.case_id}]
        return sha256_of_value(accepted) if accepted else ""

    @cached_property
    def _accepted(self) -> dict[str, tuple[AcceptedIdentityLeak, ...]]:
        paths = {name: self.folder / "benchmarks" / f"{name}.identity-leaks.json" for name in self.benchmarks}
        remedy = "delete it and accept again with `nmb deid accept-leaks`"
        return {
            name: read_json_record(path, AcceptedIdentityLeaks, remedy=remedy).accepted if path.exists() else ()
            for name, path in paths.items()
        }

    @cached_property
    def _rows(self) -> dict[str, dict[str, CaseRow]]:
        """Rows by case id, for the lookups of the jobs."""
        return {name: {row.case_id: row for row in table} for name, table in self.tables.items()}

    def of_kind(self, *kinds: Kind) -> list[str]:
        """Return the benchmarks of the given kinds, in run-list order."""
        return [name for name, benchmark in self.benchmarks.items() if benchmark.kind in kinds]

    def case_table(self, benchmark: str) -> str:
        """Return the path of a benchmark's case table."""
        return f"{self.folder.as_posix()}/benchmarks/{benchmark}.cases.tsv"

    def source_table(self, benchmark: str) -> str | list[str]:
        """Return the table that lists loose pictures: the case table of own patients, else the data set's."""
        return self.case_table(benchmark) if self.benchmarks[benchmark].has_cases else self.benchmarks[benchmark].picture_table

    def audit_files(self, benchmark: str) -> dict[str, str | list[str]]:
        """Return the files that the audit of a benchmark gathers, by name."""
        folder, config = f"data/deidentified/{benchmark}", self.benchmarks[benchmark]
        scans = config.kind is Kind.SCANS
        return {
            "table": self.case_table(benchmark) if config.has_cases else [],
            "pictures": [] if scans else f"{folder}/pictures.json",
            "cases": [f"{folder}/sub-{case}/case.json" for case in self.cases(benchmark)] if scans else [],
        }

    def review_files(self, benchmark: str) -> dict[str, str | list[str]]:
        """Return the files that the review of a benchmark shows, by name: each case's last record, which changes with earlier ones."""
        files = self.audit_files(benchmark)
        if self.benchmarks[benchmark].kind is Kind.SCANS:
            files["cases"] = [f"data/slices/{benchmark}/sub-{case}/case.json" for case in self.cases(benchmark)]
        return files

    def description_files(self, benchmark: str) -> list[str]:
        """Return the BIDS description of the de-identified cases; empty for benchmarks without scans."""
        return [f"data/deidentified/{benchmark}/dataset_description.json"] if self.benchmarks[benchmark].kind is Kind.SCANS else []

    def item_files(self, benchmark: str) -> dict[str, str | list[str]]:
        """Return the files from which the items of a benchmark are built, by name."""
        return {
            **self.audit_files(benchmark),
            "answers": self.benchmarks[benchmark].answers or [],
            "questions": self.question_files(benchmark),
            "slices": self.slice_tables(benchmark),
            "lesion_masks": self.lesion_masks(benchmark) if self.benchmarks[benchmark].kind is Kind.SCANS else [],
        }

    def lesion_masks(self, benchmark: str, *cases: str) -> list[str]:
        """Return the lesion masks of some cases of a benchmark, of all if none is named: those of phantoms, which are made, and those that are there."""
        folder, made = self.benchmarks[benchmark].lesion_masks, self.benchmarks[benchmark].source == "phantoms"
        paths = [Path(folder, f"{case}{MASK_SUFFIX}") for case in cases or self.cases(benchmark)] if folder else []
        return [path.as_posix() for path in paths if made or path.is_file()]

    def question_files(self, benchmark: str) -> list[str]:
        """Return the files of an imported data set; empty for other benchmarks."""
        questions = self.benchmarks[benchmark].questions
        return [f"{questions}/{name}" for name in QUESTION_FILES] if questions else []

    def import_record(self, benchmark: str) -> list[str]:
        """Return the import record of a data set, if it exists."""
        questions = self.benchmarks[benchmark].questions
        return [path] if questions and Path(path := f"{questions}/{IMPORT_RECORD}").is_file() else []

    @property
    def names_files(self) -> list[str]:
        """Return the further names of diagnoses and the terminology beside the vocabulary, if they exist."""
        vocabulary = Path(self.config.vocabulary)
        return [path.as_posix() for path in (names_path(vocabulary), diseases_path(vocabulary)) if path.is_file()]

    @property
    def urgency_files(self) -> list[str]:
        """Return the list of time-critical diagnoses beside the vocabulary, if it exists."""
        path = urgency_path(Path(self.config.vocabulary))
        return [path.as_posix()] if path.is_file() else []

    def oracle_files(self, benchmark: str, case: str) -> list[str]:
        """Return the answers table, and the lesion mask of a case if there is one, if slices are chosen with them; else empty."""
        answers = self.benchmarks[benchmark].answers
        if not answers or not (self.config.slices.policy == "lesion" or self.shows_oracle(benchmark)):
            return []
        return [answers, *self.lesion_masks(benchmark, case)]

    def shows_oracle(self, benchmark: str) -> bool:
        """Return True if an arm of a benchmark shows oracle slices."""
        return any(arm.config.pictures == AT_LESION for arm in self.arms[benchmark].values())

    @cached_property
    def arms(self) -> dict[str, dict[str, ArmVariant]]:
        """Arms with a file of each benchmark."""
        return {name: load_arms(self.folder, benchmark.arms, name) for name, benchmark in self.benchmarks.items()}

    @cached_property
    def informants(self) -> dict[str, ModelConfig]:
        """The models that tell facts under the strategy `ask`, by benchmark; without one words decide."""
        found = {name: load_informant(self.folder, name) for name, benchmark in self.benchmarks.items() if benchmark.informant}
        return {name: model for name, model in found.items() if model}

    def asked(self, benchmark: str, model: str) -> tuple[ModelConfig | None, ...]:
        """Return the models that the inference of a model asks: itself, and its informant."""
        return self.models[model], self.informants.get(benchmark)

    def all_asked(self) -> list[ModelConfig]:
        """Return the models, their informants and the models of the graders, each by its name or that of its grader."""
        judges = [grader.model.named(name) for name, grader in self.all_graders.items() if grader.model]
        return [*self.models.values(), *{model.name: model for model in self.informants.values()}.values(), *judges]

    def informant_files(self, *benchmarks: str) -> list[str]:
        """Return the files of these models."""
        names = {self.informants[name].name for name in benchmarks if name in self.informants}
        return [f"{self.folder.as_posix()}/models/{name}.yaml" for name in sorted(names)]

    def arm_files(self, benchmark: str) -> list[str]:
        """Return the files of a benchmark's arms and of their layouts; empty if all are built in."""
        return sorted({path.as_posix() for arm in self.arms[benchmark].values() for path in arm.files})

    def alters(self, benchmark: str) -> bool:
        """Return True if an arm of a benchmark shows altered pictures."""
        return any(arm.alters for arm in self.arms[benchmark].values())

    @property
    def dialogue_requests(self) -> list[str]:
        """Requests of the benchmarks in which models ask for evidence or views, whose measures need what the case held."""
        asking = {Strategy.ASK, Strategy.WORKUP, Strategy.VIEWER}
        return [f"data/prompts/{name}.parquet" for name, config in self.benchmarks.items() if asking & set(config.strategies)]

    def view_tables(self, benchmark: str) -> list[str]:
        """Return the table of what models may look at, for the prompts; empty for benchmarks that are not asked by `viewer`."""
        return [f"data/views/{benchmark}.parquet"] if Strategy.VIEWER in self.benchmarks[benchmark].strategies else []

    def view_volumes(self, benchmark: str, model: str) -> list[str]:
        """Return the normalised cases from which views for a model are cut; empty if it is not asked by `viewer`, or takes no pictures."""
        looks = self.view_tables(benchmark) and self.models[model].max_images != 0
        return [f"data/normalised/{benchmark}/sub-{case}/case.json" for case in self.cases(benchmark)] if looks else []

    @property
    def chosen_disclosures(self) -> list[str]:
        """Tables of what arms show that was chosen with the answer, of the benchmarks with an arm that shows such pictures."""
        return [f"data/disclosures/{name}.parquet" for name, arms in self.arms.items() if any(arm.chosen for arm in arms.values())]

    def altered_tables(self, benchmark: str) -> list[str]:
        """Return the table of a benchmark's altered pictures, for the prompts; empty if no arm shows any."""
        return [f"data/altered/{benchmark}/pictures.parquet"] if self.alters(benchmark) else []

    def slice_tables(self, benchmark: str) -> list[str]:
        """Return the table that maps pictures to scans; empty for benchmarks without scans."""
        return [f"data/slices/{benchmark}/slices.parquet"] if self.benchmarks[benchmark].kind is Kind.SCANS else []
