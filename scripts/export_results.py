"""Write the numbers of a run in the forms that other tools and archives read; numbers about few patients are held back."""

from pathlib import Path

from neuralmedbench.exports.released import released_run
from neuralmedbench.exports.write import write_exports
from neuralmedbench.files.tables import gc_paused
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command
from neuralmedbench.tables.release import Release
from neuralmedbench.tables.study import StudySettings, study_of
from neuralmedbench.tables.write import released_tables


def export(*, vocabulary: Path, settings: StudySettings, out: Path, results: Path = Path("results"), root: Path = Path()) -> None:
    release = Release(settings.report.profile, settings.report.min_patients_shown)
    with gc_paused():
        study = study_of(root, results, vocabulary, settings)
        tables = released_tables(study, root / results / "tables", release)
        write_exports(root, out, released_run(root, study, tables, root / results / "provenance.json"))


main = Command(export)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
