"""Build every table of results from scores, responses, grades and ratings."""

from pathlib import Path

from neuralmedbench.files.tables import gc_paused
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command
from neuralmedbench.tables.release import Release
from neuralmedbench.tables.study import StudySettings, study_of
from neuralmedbench.tables.write import write_tables


def build(
    *,
    vocabulary: Path,
    settings: StudySettings,
    out_tables: Path,
    out_metrics: Path,
    results: Path = Path("results"),
    root: Path = Path(),
) -> None:
    release = Release(settings.report.profile, settings.report.min_patients_shown)
    with gc_paused():
        write_tables(study_of(root, results, vocabulary, settings), out_tables, out_metrics, release)


main = Command(build)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
