"""List the slices of normalised cases that models may ask for."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.cases import case_files, read_case
from neuralmedbench.files.json_files import record_adapter
from neuralmedbench.files.tables import write_records
from neuralmedbench.imaging.choose import SlicePolicy
from neuralmedbench.imaging.views import list_views
from neuralmedbench.records.views import ViewRules, ViewScan
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, required=True, help="case table of the benchmark")
    parser.add_argument("--folder", type=Path, required=True, help="folder with sub-<case>/case.json of the normalised cases")
    parser.add_argument("--views", type=record_adapter(ViewRules).validate_json, required=True, help="what may be shown, in JSON")
    parser.add_argument("--field-of-view-mm", type=float, default=230.0, help="side of the square field of view without zoom")
    parser.add_argument("--sent-px", type=int, default=0, help="side of a picture in pixels; 0: native in-plane resolution")
    parser.add_argument("--side-marker", action="store_true", help="draw R and L next to the brain")
    parser.add_argument("--out", type=Path, required=True, help="table to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    display = {key: getattr(args, key) for key in ("field_of_view_mm", "sent_px", "side_marker")}
    policy = SlicePolicy(policy="uniform", per_sequence=1, **display)
    listed = [scan for path in case_files(args.table, args.folder) for scan in list_views(read_case(path), path.parent, args.views, policy)]
    write_records(args.out, ViewScan, listed, key=lambda scan: (scan.case_id, scan.series_id))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
