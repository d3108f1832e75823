"""Gather the pictures of all cases of a benchmark, and the case flow."""

from pathlib import Path

from neuralmedbench.config.section import Section
from neuralmedbench.files.cases import read_case_table
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.tables import write_records
from neuralmedbench.imaging.gather import gather_slices
from neuralmedbench.records.case import SliceRow
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


class Settings(Section):
    """The largest fraction of quarantined cases (from 10 cases up)."""

    max_quarantined_fraction: float


def gather(*, benchmark: str, table: Path, folder: Path, settings: Settings, out_slices: Path, out_flow: Path) -> None:
    rows, flow = gather_slices(benchmark, read_case_table(table), folder, settings.max_quarantined_fraction)
    write_records(out_slices, SliceRow, rows, key=lambda row: (row.case_id, row.sequence, row.plane, row.position_mm, row.image_id))
    write_json(out_flow, flow)


main = Command(gather)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
