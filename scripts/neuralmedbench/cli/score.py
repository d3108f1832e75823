"""`nmb score`: answers that were given elsewhere, scored without the workflow."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from neuralmedbench.cli.verbs import VerbGroup, argument

SCORE = VerbGroup("score", "score a file of answers without the workflow")


@SCORE.verb(
    "structured",
    argument("--predictions", type=Path, required=True, help="JSONL, one answer a line: input, output"),
    argument("--compatible", action="store_true", help="the numbers of the published evaluator"),
    argument("--own-pictures", action="store_true", help="expect of a model only the pictures that its rows name (not with --compatible)"),
    argument("--out", type=Path, required=True, help="JSON file to write"),
    example="--predictions answers.jsonl --out corrected.json",
)
def score_structured(args: Namespace) -> int:
    """Score structured answers in the JSONL form of NeuroVLM-Bench.

    With --compatible: the metrics of its published evaluator under their names, with their flaws. Without: metrics with fixed denominators,
    under names that say what they are (docs/benchmarks.md). What was wrong with lines of the file is counted in the output and said on
    standard error.
    """
    from neuralmedbench.errors import ConfigError
    from neuralmedbench.files.json_files import write_json
    from neuralmedbench.scoring.structured.metrics import compatible_metrics, corrected_metrics
    from neuralmedbench.scoring.structured.prediction_rows import read_predictions

    if args.compatible and args.own_pictures:
        message = "--own-pictures: the published evaluator expects no picture of anybody; leave one of the two out"
        raise ConfigError(message)
    found = read_predictions(args.predictions, skip_byte_order_mark=not args.compatible)
    models = compatible_metrics(found.rows) if args.compatible else corrected_metrics(found.rows, own_pictures=args.own_pictures)
    write_json(args.out, {"models": models, "reading": found.reading})
    if found.warnings:
        print(f"{args.predictions.name}: {'; '.join(found.warnings)}", file=sys.stderr)
    return 0
