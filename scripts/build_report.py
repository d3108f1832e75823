"""Build the report: one offline HTML file from tables, figures and cases."""

import sys
from pathlib import Path

from neuralmedbench.config.pipeline import ReportConfig
from neuralmedbench.config.section import Section
from neuralmedbench.files.tables import gc_paused
from neuralmedbench.report.page import incomplete_line, write_report
from neuralmedbench.report.source import read_source
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


class Settings(Section):
    """Of `report` the audience and the largest size; the run lists, and the published results to compare with."""

    report: ReportConfig = ReportConfig()
    benchmarks: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    graders: tuple[str, ...] = ()
    published: tuple[str, ...] = ()


def build(*, results: Path, settings: Settings, out: Path, root: Path = Path()) -> None:
    lists = settings.model_dump(include={"benchmarks", "models", "graders", "published"})
    profile, max_megabytes = settings.report.profile, settings.report.max_megabytes
    with gc_paused():
        source = read_source(root, results, lists, profile=profile, max_megabytes=max_megabytes)
        remarks = write_report(out, source, max_megabytes)
    print(*remarks, incomplete_line(source), sep="\n", file=sys.stderr)


main = Command(build)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
