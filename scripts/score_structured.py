"""Score a file of structured answers in the JSONL form of NeuroVLM-Bench (a command for people: no rule calls it).

With --compatible: the metrics of its published evaluator under their names, with their flaws. Without: metrics with fixed denominators, under
names that say what they are (docs/benchmarks.md). What was wrong with lines of the file is counted in the output and said on standard error.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--predictions", type=Path, required=True, help="JSONL, one answer a line: input, output")
    parser.add_argument("--compatible", action="store_true", help="the numbers of the published evaluator")
    parser.add_argument(
        "--own-pictures", action="store_true", help="expect of a model only the pictures that its rows name (not with --compatible)"
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.errors import ConfigError
    from neuralmedbench.files.json_files import write_json
    from neuralmedbench.scoring.structured.compatible import compatible_metrics
    from neuralmedbench.scoring.structured.corrected import corrected_metrics
    from neuralmedbench.scoring.structured.prediction_rows import read_predictions

    args = parse_args(argv)
    if args.compatible and args.own_pictures:
        message = "--own-pictures: the published evaluator expects no picture of anybody; leave one of the two out"
        raise ConfigError(message)
    found = read_predictions(args.predictions, skip_byte_order_mark=not args.compatible)
    models = compatible_metrics(found.rows) if args.compatible else corrected_metrics(found.rows, own_pictures=args.own_pictures)
    write_json(args.out, {"models": models, "reading": found.reading})
    if found.warnings:
        print(f"{args.predictions.name}: {'; '.join(found.warnings)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
