"""`nmb score`: score a file of answers without the workflow."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from neuralmedbench.cli.verbs import VerbGroup, argument

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
def score_structured(args: Namespace) -> int:
    """Score structured answers in the JSONL format of NeuroVLM-Bench.

    With --compatible: the metrics of its published evaluator, under their published names and with their flaws. Without: metrics with fixed
    denominators and descriptive names (docs/benchmarks.md). Faulty lines of the file are counted in the output and reported on standard
    error.
    """
    from neuralmedbench.errors import ConfigError
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
        print(f"{args.predictions.name}: {'; '.join(predictions.warnings)}", file=sys.stderr)
    return 0
