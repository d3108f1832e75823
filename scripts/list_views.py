"""List the slices of normalised cases that models may ask for."""

from pathlib import Path

from neuralmedbench.config.imaging import SlicesConfig
from neuralmedbench.config.section import Section
from neuralmedbench.files.cases import case_files, read_case
from neuralmedbench.files.tables import write_records
from neuralmedbench.imaging.views import list_views
from neuralmedbench.records.views import ViewRules, ViewScan
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


class Settings(Section):
    """What may be shown on request, and how: of `slices` the field of view, the size and the side marker."""

    views: ViewRules
    slices: SlicesConfig = SlicesConfig()


def list_scans(*, table: Path, folder: Path, settings: Settings, out: Path) -> None:
    scans: list[ViewScan] = []
    for path in case_files(table, folder):
        scans += list_views(read_case(path), path.parent, settings.views, settings.slices)
    write_records(out, ViewScan, scans, key=lambda scan: (scan.case_id, scan.series_id))


main = Command(list_scans)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
