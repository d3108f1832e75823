"""Build every table of results from scores, responses, grades and ratings."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.pipeline import ComparisonConfig, GraderChecksConfig
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.tables import gc_paused
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.tables.release import Release
from neuralmedbench.tables.study import read_study
from neuralmedbench.tables.write import write_tables


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="repository root; inputs lie where the rules write them")
    parser.add_argument("--results", type=Path, default=Path("results"), help="results of the run, relative to the root (default: results)")
    parser.add_argument("--benchmarks", nargs="*", default=[], help="run list")
    parser.add_argument("--models", nargs="*", default=[], help="run list")
    parser.add_argument("--graders", nargs="*", default=[], help="run list; the first grader with a value counts")
    parser.add_argument("--vocabulary", type=Path, required=True, help="vocabulary, relative to the root")
    parser.add_argument("--grader-floor", type=float, default=GraderChecksConfig().floor, help="share of planted errors to detect")
    parser.add_argument("--resamples", type=int, default=IntervalSettings.resamples)
    parser.add_argument("--seed", type=int, default=IntervalSettings.seed)
    parser.add_argument("--confidence", type=float, default=IntervalSettings.confidence)
    parser.add_argument("--max-missing-fraction", type=float, default=IntervalSettings.max_missing_fraction)
    parser.add_argument("--limit", type=int, default=0, help="most answers per model and benchmark, of a limited run (default: 0, all)")
    parser.add_argument("--margin", type=float, default=ComparisonConfig().margin, help="smallest difference that matters (default: 0.1)")
    parser.add_argument("--profile", choices=("internal", "public"), default="internal", help="audience of tables and report")
    parser.add_argument("--min-patients-shown", type=int, default=Release.fewest, help="public profile: hide numbers about fewer patients")
    parser.add_argument("--out-tables", type=Path, required=True, help="folder for the tables")
    parser.add_argument("--out-metrics", type=Path, required=True, help="JSON file with the main numbers, for diffs")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    settings = IntervalSettings(args.resamples, args.seed, args.confidence, args.max_missing_fraction)
    with gc_paused():
        study = read_study(
            args.root,
            args.benchmarks,
            args.models,
            args.graders,
            vocabulary=args.vocabulary,
            settings=settings,
            grader_floor=args.grader_floor,
            limit=args.limit,
            margin=args.margin,
            results=args.results,
        )
        write_tables(study, args.out_tables, args.out_metrics, Release(args.profile, args.min_patients_shown))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
