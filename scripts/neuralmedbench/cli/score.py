"""`nmb score`: score files of answers, and test the default grader on pairs of one's own, without the workflow."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from neuralmedbench.cli.verbs import VOCABULARY, VerbGroup, argument, note
from neuralmedbench.errors import ConfigError

SCORE = VerbGroup("score", "score a file of answers without the workflow")


@SCORE.verb(
    "structured",
    argument("--predictions", type=Path, required=True, help="JSONL, one answer per line: input, output"),
    argument("--compatible", action="store_true", help="compute the metrics of the published evaluator"),
    argument(
        "--own-pictures", action="store_true", help="expect from each model only the pictures that its rows name (not with --compatible)"
    ),
    argument("--out", type=Path, required=True, help="JSON file to write"),
    example="--predictions answers.jsonl --out corrected.json",
)
def score_structured(args: Namespace) -> None:
    """Score structured answers in the JSONL format of NeuroVLM-Bench.

    With --compatible: the metrics of its published evaluator, under their published names and with their flaws. Without: metrics with fixed
    denominators and descriptive names (docs/benchmarks.md). Faulty lines of the file are counted in the output and reported on standard
    error.
    """
    from neuralmedbench.files.json_files import write_json
    from neuralmedbench.scoring.structured.metrics import compatible_metrics, corrected_metrics
    from neuralmedbench.scoring.structured.prediction_rows import read_predictions

    if args.compatible and args.own_pictures:
        message = "--own-pictures: the published evaluator does not check for missing pictures; leave out one of the two options"
        raise ConfigError(message)
    predictions = read_predictions(args.predictions, skip_byte_order_mark=not args.compatible)
    models = (
        compatible_metrics(predictions.rows) if args.compatible else corrected_metrics(predictions.rows, own_pictures=args.own_pictures)
    )
    write_json(args.out, {"models": models, "reading": predictions.reading})
    if predictions.warnings:
        note(f"{args.predictions.name}: {'; '.join(predictions.warnings)}")


PAIRS = argument("--pairs", type=Path, required=True, help="TSV with a first line of column names; further columns are kept")
OUT = argument("--out", type=Path, required=True, help="TSV file to write")


@SCORE.verb(
    "diagnoses",
    PAIRS,
    OUT,
    argument("--whole-answers", action="store_true", help="the column `answer` holds whole answers of a model: read them first"),
    VOCABULARY,
    example="--pairs our-pairs.tsv --out graded.tsv",
)
def score_diagnoses(args: Namespace) -> Iterator[str]:
    """Test the default grader on answers that clinicians wrote.

    Columns: reference, answer, and side and location where the reference has them. Adds `verdict` (pass, fail, not_graded) and `relation`.
    With a column `expected` (pass or fail) the summary has sensitivity and specificity (docs/graders.md).
    """
    from neuralmedbench.files.vocabulary import read_vocabulary
    from neuralmedbench.scoring.pairs import DIAGNOSES, grade_diagnoses, read_pairs, summary

    rows = grade_diagnoses(read_pairs(args.pairs, DIAGNOSES), read_vocabulary(args.vocabulary), whole_answers=args.whole_answers)
    _write(args.out, rows)
    yield from summary(rows, DIAGNOSES)


@SCORE.verb("statements", PAIRS, OUT, example="--pairs our-statements.tsv --out graded.tsv")
def score_statements(args: Namespace) -> Iterator[str]:
    """Test the default grader on texts that do or do not make a statement.

    Columns: statement, text. Adds `verdict` (stated, not_stated, unclear). With a column `expected` (stated or not_stated) the summary has
    sensitivity and specificity (docs/graders.md).
    """
    from neuralmedbench.scoring.pairs import STATEMENTS, grade_statements, read_pairs, summary

    rows = grade_statements(read_pairs(args.pairs, STATEMENTS))
    _write(args.out, rows)
    yield from summary(rows, STATEMENTS)


def _write(path: Path, rows: Sequence[dict[str, str]]) -> None:
    from neuralmedbench.files.tables import guard_cell
    from neuralmedbench.runtime.atomic_write import write_tsv

    names = list(dict.fromkeys(name for row in rows for name in row))
    write_tsv(path, [names, *([guard_cell(row.get(name, "")) for name in names] for row in rows)])
