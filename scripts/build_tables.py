"""Build every table of results from scores, responses, grades and ratings."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from neuralmedbench.config.pipeline import ComparisonConfig
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.tables import gc_paused
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.tables.release import Release
from neuralmedbench.tables.study import Stated, add_study_arguments, study_of
from neuralmedbench.tables.write import write_tables


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_study_arguments(parser)
    parser.add_argument("--resamples", type=int, default=IntervalSettings.resamples)
    parser.add_argument("--seed", type=int, default=IntervalSettings.seed)
    parser.add_argument("--max-missing-fraction", type=float, default=IntervalSettings.max_missing_fraction)
    parser.add_argument("--margin", type=float, default=ComparisonConfig().margin, help="smallest difference that matters (default: 0.1)")
    parser.add_argument("--stated", nargs="*", default=[], help="stated comparison: day, benchmark, first and second model; none if absent")
    parser.add_argument("--profile", choices=("internal", "public"), default="internal", help="audience of tables and report")
    parser.add_argument("--min-patients-shown", type=int, default=Release.fewest, help="public profile: hide numbers about fewer patients")
    parser.add_argument("--out-tables", type=Path, required=True, help="folder for the tables")
    parser.add_argument("--out-metrics", type=Path, required=True, help="JSON file with the main numbers, for diffs")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    settings = IntervalSettings(args.resamples, args.seed, args.confidence, args.max_missing_fraction, args.margin)
    with gc_paused():
        study = replace(study_of(args, settings), stated=Stated(*args.stated) if args.stated else None)
        write_tables(study, args.out_tables, args.out_metrics, Release(args.profile, args.min_patients_shown))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
