"""`nmb benchmark`: import, check and curate questions and answers before any model is called."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.cli.verbs import BENCHMARK as NAME
from neuralmedbench.cli.verbs import CONFIG, DATA, REVIEWER, VOCABULARY, VerbGroup, argument
from neuralmedbench.errors import ConfigError

if TYPE_CHECKING:
    from neuralmedbench.records.items import Gold

MOST_NAMED = 8
"""Most references named in one line."""

BENCHMARK = VerbGroup("benchmark", "import, check and curate questions and answers before any model is called")


def _data_sets(argv: Sequence[str]) -> str:
    from neuralmedbench.benchmarks.adapters.registry import data_sets, table

    first = argparse.ArgumentParser(add_help=False)
    CONFIG(first)  # the mappings in the configuration folder are data sets too
    return f"Data sets:\n\n{table(data_sets(first.parse_known_args(argv)[0].config))}"


@BENCHMARK.verb(
    "import",
    argument("data_set", metavar="DATA_SET", help="name of the data set, from the list below"),
    argument("--from", dest="folder", type=Path, required=True, metavar="DIR", help="folder with its downloaded files"),
    argument("--name", help="name of the benchmark here (default: the name of the data set)"),
    argument("--part", action="store_true", help="accept a folder that holds only part of the data set"),
    CONFIG,
    DATA,
    VOCABULARY,
    example="medframeqa --from ~/medframeqa",
    appendix=_data_sets,
)
def import_benchmark(args: Namespace) -> Iterator[str]:
    """Import a data set that you downloaded; nothing is fetched from the network.

    Writes data/questions/<name>/ (questions, answers, list of pictures, import.json), data/raw/<name>/ (the pictures, never shared) and,
    unless it exists, config/benchmarks/<name>.yaml. Every row is imported, or refused with a reason.
    """
    from neuralmedbench.benchmarks.adapters.registry import data_sets
    from neuralmedbench.benchmarks.importing import ImportPaths, check_name, import_set, import_summary, write_yaml
    from neuralmedbench.benchmarks.question_items import read_questions
    from neuralmedbench.config.load import nearest, wildcard
    from neuralmedbench.runtime.commands import close_folders

    sets = data_sets(args.config, args.data_set)
    if args.data_set not in sets:
        message = f"{args.data_set}: no data set has this name{nearest(args.data_set, sorted(sets))}"
        raise ConfigError(message)
    data_set = sets[args.data_set]
    name = wildcard(args.name or data_set.name)
    places = ImportPaths(tables=args.data / "questions" / name, pictures=args.data / "raw" / name)
    path = args.config / "benchmarks" / f"{name}.yaml"
    # a name in use by another kind of benchmark is refused before anything is read
    check_name(path, places)
    close_folders([places.pictures], [args.data / "raw"])
    record = import_set(data_set, args.folder, name, places, part=args.part)
    written = write_yaml(path, data_set, record, places)
    yield import_summary(record, written=written)
    for line in _outside(read_questions(places.tables).diagnoses, args.vocabulary):
        yield f"look at this: {line}"


def _outside(diagnoses: Sequence[Gold], vocabulary: Path) -> list[str]:
    """Say which references no rule can grade, because the vocabulary does not have them; nothing if it has all."""
    from neuralmedbench.files.vocabulary import read_vocabulary
    from neuralmedbench.records.words import listing
    from neuralmedbench.scoring.matching import outside_references

    outside = outside_references(diagnoses, read_vocabulary(vocabulary)) if diagnoses else []
    if not outside:
        return []
    of = len({gold.answer for gold in diagnoses})
    line = (
        f"{len(outside)} of {of} diagnoses are not in the vocabulary: `rubric` does not grade their answers, which count as missing. Add a"
        f" grader that asks a model, or their names to the vocabulary (docs/graders.md): {listing(outside, MOST_NAMED)}"
    )
    return [line]


@BENCHMARK.verb(
    "check",
    argument("--benchmark", required=True, help="name of the benchmark: config/benchmarks/<benchmark>.yaml"),
    CONFIG,
    DATA,
    VOCABULARY,
    argument("--out", type=Path, help="page to write (default: data/checks/<benchmark>.html)"),
    example="--benchmark mine",
)
def check_benchmark(args: Namespace) -> Iterator[str]:
    """Check your own benchmark and preview what a model would be sent.

    Reads its YAML file, case table and answers, and whatever the workflow has already made of it; writes one offline page. A mistake is
    reported in one line.
    """
    from neuralmedbench.benchmarks.check import check_benchmark, check_page
    from neuralmedbench.config.load import wildcard
    from neuralmedbench.runtime.atomic_write import write_text

    name = wildcard(args.benchmark)
    result = check_benchmark(name, args.config, args.data)
    result.warnings += _outside(result.diagnoses, args.vocabulary)
    out = args.out or args.data / "checks" / f"{name}.html"
    write_text(out, check_page(result, args.data.parent))
    for label, value in result.rows:
        yield f"{label}: {value}"
    for text in result.warnings:
        yield f"look at this: {text}"
    yield f"written: {out.as_posix()}"


@BENCHMARK.verb(
    "curate",
    argument("--benchmark", required=True, help="name of the imported set"),
    argument("--settings", type=Path, help="stages and thresholds (default: config/curation.yaml)"),
    argument("--decisions", type=Path, metavar="CSV", help="decisions of the experts: case_id, expert, decision (keep or drop)"),
    argument("--to", metavar="NAME", help="name of the curated benchmark; without it, only the lists are written"),
    CONFIG,
    DATA,
    argument("--scores", type=Path, default=Path("results/scores"), help="folder of the scores (default: results/scores)"),
    example="--benchmark exam --decisions decisions.csv --to exam-curated",
)
def curate_benchmark(args: Namespace) -> Iterator[str]:
    """Curate an imported data set in four stages.

    The stages keep complete cases, apply the experts' decisions, require structured ground truth, and remove the questions that a pool of
    reference models solves. Writes kept.csv, removed.csv and curation.json to data/questions/<benchmark>/ and, with --to, the kept questions
    as a new benchmark.
    """
    from neuralmedbench.benchmarks.curation import curate_folder, read_scores, write_curated, write_curated_yaml
    from neuralmedbench.benchmarks.question_items import read_questions
    from neuralmedbench.config.load import wildcard
    from neuralmedbench.config.mappings import load_curation

    path = args.settings or args.config / "curation.yaml"
    config = load_curation(path)
    folder = args.data / "questions" / wildcard(args.benchmark)
    curated = wildcard(args.to) if args.to else ""
    # scores of the reference pool are needed for the challenge stage only
    pool = config.pool if "challenge" in config.stages else ()
    scores = read_scores(args.scores / args.benchmark, args.config, pool)
    record, result = curate_folder(folder, (path, config), args.decisions, scores, curated)
    for stage in record.stages:
        yield f"{stage.stage}: {stage.entered} questions, {stage.removed} removed"
    yield f"{record.kept} kept; {folder.as_posix()}/removed.csv has the reason for each removed one"
    if curated:
        target = args.data / "questions" / curated
        written = write_curated_yaml(args.config, args.benchmark, curated, target, pool)
        write_curated(read_questions(folder), result, folder, target)
        yield f"config/benchmarks/{curated}.yaml {'written' if written else 'exists and was left unchanged'}"


@BENCHMARK.verb(
    "accept-leaks",
    NAME,
    argument("--item", required=True, help="item id, as on data/leaks/<benchmark>.html"),
    argument("--where", required=True, help="the text, as named on that page: question, notes, record, 'turn 1'..."),
    argument("--reason", required=True, help="why it may stay, without naming a patient; kept in git"),
    REVIEWER,
    CONFIG,
    DATA,
    example='--benchmark mine --item mine/c0ffee/differential_diagnosis --where notes --reason "the referral asks to confirm it" --reviewer AB',
)
def accept_leaks(args: Namespace) -> Iterator[str]:
    """Accept, with a reason, that a text of an item names its answer."""
    from neuralmedbench.benchmarks.leak_review import accept_text, read_accepted, write_accepted
    from neuralmedbench.config.run_names import how_to_make
    from neuralmedbench.files.json_files import read_json_record
    from neuralmedbench.records.answer_leaks import AnswerLeaks

    path = args.config / "benchmarks" / f"{args.benchmark}.leaks.json"
    page = Path("data/leaks", f"{args.benchmark}.html")
    leaks = read_json_record(
        args.data / "leaks" / f"{args.benchmark}.json",
        AnswerLeaks,
        remedy=f"make it first: {how_to_make(page, args.benchmark)}",
    )
    before = read_accepted(path, args.benchmark)
    after = accept_text(leaks, before, item_id=args.item, where=args.where, reason=args.reason, reviewer=args.reviewer)
    write_accepted(path, after)
    yield f"{path.as_posix()}: {len(after.accepted)} accepted; run the pipeline again"
