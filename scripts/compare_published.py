"""Compare published numbers with ours: a tidy table, and the tables of the paper as Markdown and LaTeX."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_grader, load_model, load_published
from neuralmedbench.files.tables import write_table
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.tables.papers.comparison import COLUMNS, comparison_rows, latex, markdown
from neuralmedbench.tables.papers.own_results import OwnResults


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--published", type=Path, required=True, help="YAML file with the published numbers")
    parser.add_argument("--models", type=Path, nargs="*", default=[], help="YAML files of the models of the run")
    parser.add_argument("--graders", type=Path, nargs="*", default=[], help="YAML files of the graders of the run, for the estimate")
    parser.add_argument("--tables", type=Path, required=True, help="folder of the tables of results")
    parser.add_argument("--results", default="results", help="folder of the results as remarks name it (default: results)")
    parser.add_argument("--absent", default="", help="why we have no result for this benchmark; empty if it is in the run")
    parser.add_argument("--confidence", type=float, default=0.95, help="level of the intervals")
    parser.add_argument("--out", type=Path, required=True, help="CSV file; .md and .tex are written next to it")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    published = load_published(args.published)
    ours = OwnResults(
        benchmark=published.benchmark,
        models={path.stem: load_model(path) for path in args.models},
        graders={path.stem: load_grader(path) for path in args.graders},
        folder=args.tables,
        results=args.results,
        absent=args.absent,
        confidence=args.confidence,
    )
    rows = comparison_rows(published, ours)
    write_table(args.out, rows, COLUMNS)
    write_text(args.out.with_suffix(".md"), markdown(published, rows))
    write_text(args.out.with_suffix(".tex"), latex(published, rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
