"""Gather the pictures of all cases of a benchmark, and the case flow."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.cases import read_case_table
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.tables import write_records
from neuralmedbench.imaging.gather import gather_slices
from neuralmedbench.records.case import SliceRow
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True)
    parser.add_argument("--table", type=Path, required=True, help="case table of the benchmark")
    parser.add_argument("--folder", type=Path, required=True, help="folder with sub-<case>/case.json of the slices stage")
    parser.add_argument("--max-quarantined-fraction", type=float, required=True, help="stop the run at a larger share (from 10 cases)")
    parser.add_argument("--out-slices", type=Path, required=True, help="slices.parquet to write")
    parser.add_argument("--out-flow", type=Path, required=True, help="flow.json to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    rows, flow = gather_slices(args.benchmark, read_case_table(args.table), args.folder, args.max_quarantined_fraction)
    write_records(args.out_slices, SliceRow, rows, key=lambda row: (row.case_id, row.sequence, row.plane, row.position_mm, row.image_id))
    write_json(args.out_flow, flow)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
