"""Write the numbers of a run in the forms that other tools and archives read; numbers about few patients are held back."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.pipeline import GraderChecksConfig
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.exports.released import released_run
from neuralmedbench.exports.write import write_exports
from neuralmedbench.files.tables import gc_paused
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.tables.release import Release
from neuralmedbench.tables.study import read_study
from neuralmedbench.tables.write import released_tables


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="repository root; inputs lie where the rules write them")
    parser.add_argument("--results", type=Path, default=Path("results"), help="results of the run, relative to the root (default: results)")
    parser.add_argument("--benchmarks", nargs="*", default=[], help="run list")
    parser.add_argument("--models", nargs="*", default=[], help="run list")
    parser.add_argument("--graders", nargs="*", default=[], help="run list; the first grader with a value counts")
    parser.add_argument("--vocabulary", type=Path, required=True, help="vocabulary, relative to the root")
    parser.add_argument(
        "--grader-floor", type=float, default=GraderChecksConfig().floor, help="share of planted errors a grader must detect"
    )
    parser.add_argument(
        "--confidence", type=float, default=IntervalSettings.confidence, help="confidence level of the intervals in the tables"
    )
    parser.add_argument("--limit", type=int, default=0, help="most answers per model and benchmark; a limited run is refused")
    parser.add_argument("--profile", choices=("internal", "public"), default="internal", help="audience for which the tables were written")
    parser.add_argument("--min-patients-shown", type=int, default=Release.fewest, help="numbers about fewer patients are held back")
    parser.add_argument("--out", type=Path, required=True, help="folder for the exports")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    lists, results = (args.benchmarks, args.models, args.graders), args.root / args.results
    settings = IntervalSettings(confidence=args.confidence)
    with gc_paused():
        known = {"vocabulary": args.vocabulary, "grader_floor": args.grader_floor, "limit": args.limit, "results": args.results}
        study = read_study(args.root, *lists, settings=settings, **known)
        tables = released_tables(study, results / "tables", Release(args.profile, args.min_patients_shown))
        write_exports(args.root, args.out, released_run(args.root, study, tables, results / "provenance.json"))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
