"""Compare published numbers with ours: a tidy table, and the tables of the paper as Markdown and LaTeX."""

from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_grader, load_model, load_published
from neuralmedbench.config.pipeline import StatisticsConfig
from neuralmedbench.config.section import Section
from neuralmedbench.files.tables import write_table
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command
from neuralmedbench.tables.papers.comparison import COLUMNS, comparison_rows, latex, markdown
from neuralmedbench.tables.papers.own_results import OwnResults


class Settings(Section):
    """The level of the intervals, and why we have no result for this benchmark (empty if it is in the run)."""

    statistics: StatisticsConfig = StatisticsConfig()
    absent: str = ""


def compare(
    *,
    published: Path,
    models: Sequence[Path],
    graders: Sequence[Path],
    settings: Settings,
    out: Path,
    results: Path = Path("results"),
) -> None:
    paper = load_published(published)
    ours = OwnResults(
        benchmark=paper.benchmark,
        models={path.stem: load_model(path) for path in models},
        graders={path.stem: load_grader(path) for path in graders},
        folder=results / "tables",
        results=results.as_posix(),
        absent=settings.absent,
        confidence=settings.statistics.confidence,
    )
    rows = comparison_rows(paper, ours)
    write_table(out, rows, COLUMNS)
    write_text(out.with_suffix(".md"), markdown(paper, rows))
    write_text(out.with_suffix(".tex"), latex(paper, rows))


main = Command(compare)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
