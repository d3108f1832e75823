"""Cut the pictures that models are sent from one normalised case."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.cases import run_case_stage
from neuralmedbench.files.known_lesions import read_known_lesion
from neuralmedbench.imaging.choose import LAYOUTS, POLICIES, SlicePolicy
from neuralmedbench.imaging.review_pieces import REVIEW, write_chosen_pieces
from neuralmedbench.imaging.slices import cut_slices, with_slices
from neuralmedbench.imaging.windows import CT_WINDOWS
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", type=Path, required=True, help="case.json of one normalised case")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration (policy lesion, --at-lesion)")
    parser.add_argument("--policy", choices=POLICIES, default="uniform")
    parser.add_argument("--per-sequence", type=int, default=8, help="slices per sequence; with three_plane, per plane")
    parser.add_argument("--field-of-view-mm", type=float, default=230.0, help="side of the square field of view")
    parser.add_argument("--sent-px", type=int, default=0, help="side of a picture in pixels; 0: native in-plane resolution")
    parser.add_argument("--layout", choices=LAYOUTS, default="single")
    parser.add_argument("--side-marker", action="store_true", help="draw R and L next to the brain")
    parser.add_argument("--ct-windows", nargs="+", choices=tuple(CT_WINDOWS), default=("brain",))
    parser.add_argument("--at-lesion", action="store_true", help="cut oracle slices too, for the arm that shows them")
    parser.add_argument("--out-pictures", type=Path, required=True, help="folder for the pictures, next to --out")
    parser.add_argument("--out", type=Path, required=True, help="case.json that lists them; review/ is written next to it")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    keys = ("policy", "per_sequence", "field_of_view_mm", "sent_px", "layout", "side_marker")
    policy = SlicePolicy(**{key: getattr(args, key) for key in keys}, ct_windows=tuple(args.ct_windows))

    def cut(case: CaseRecord, source: Path) -> CaseRecord:
        sought = policy.policy == "lesion" or args.at_lesion
        lesion = read_known_lesion(args.config, case.benchmark, case.case_id) if sought else None
        chosen = with_slices(case, cut_slices(case, source, args.out_pictures, policy, lesion, at_lesion=args.at_lesion))
        write_chosen_pieces(chosen, args.out.parent)
        return chosen

    run_case_stage("slices", args.case, args.out, cut, folders=(args.out_pictures, args.out.parent / REVIEW))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
