"""Write the numbers of a run in the forms that other tools and archives read; numbers about few patients are held back."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.exports.released import released_run
from neuralmedbench.exports.write import write_exports
from neuralmedbench.files.tables import gc_paused
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.tables.release import Release
from neuralmedbench.tables.study import add_study_arguments, study_of
from neuralmedbench.tables.write import released_tables


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_study_arguments(parser)
    parser.add_argument("--profile", choices=("internal", "public"), default="internal", help="audience for which the tables were written")
    parser.add_argument("--min-patients-shown", type=int, default=Release.fewest, help="numbers about fewer patients are held back")
    parser.add_argument("--out", type=Path, required=True, help="folder for the exports")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    with gc_paused():
        study = study_of(args, IntervalSettings(confidence=args.confidence))
        tables = released_tables(study, args.root / args.results / "tables", Release(args.profile, args.min_patients_shown))
        write_exports(args.root, args.out, released_run(args.root, study, tables, args.root / args.results / "provenance.json"))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
