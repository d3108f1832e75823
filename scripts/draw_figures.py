"""Draw every figure of the report from the tables of results."""

from pathlib import Path

from neuralmedbench.config.pipeline import ReportConfig
from neuralmedbench.config.section import Section
from neuralmedbench.figures.gallery import draw_figures
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


class Settings(Section):
    """Of `report`: groups of how few patients are marked as small."""

    report: ReportConfig = ReportConfig()


def draw(*, tables: Path, settings: Settings, out: Path) -> None:
    draw_figures(tables, out, fewest=settings.report.min_patients_shown)


main = Command(draw)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
