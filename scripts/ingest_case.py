"""Copy the usable raw files of one case under neutral names, and label every scan by its headers before they are cleaned."""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from neuralmedbench.config.load import load_benchmark
from neuralmedbench.files.cases import quarantine_on_error, read_overrides, write_case
from neuralmedbench.files.identity import Identity, write_identity
from neuralmedbench.files.raw_folder import read_raw_index
from neuralmedbench.ingest.cases import ingest_case, new_case
from neuralmedbench.ingest.persons_labels import NamedKinds
from neuralmedbench.records.case import State, VoxelSizes
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--case", required=True, help="case id")
    parser.add_argument("--files", type=Path, required=True, help="private index of the case's raw files (files.json)")
    parser.add_argument("--overrides", default="", help="sequence labels set by a person: series-02=FLAIR;series-03=T1w")
    parser.add_argument("--mapped", metavar="DIGEST", help="read `sequence_map` from the benchmark's YAML file; its words are in no log")
    parser.add_argument("--voxel-sizes", choices=get_args(VoxelSizes), help="what counts in NIfTI headers whose voxel sizes differ")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument(
        "--out", type=Path, required=True, help="case.json to write; series/, text/ and identity.json are written next to it"
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    folder: Path = args.out.parent
    make_empty(folder)
    index = read_raw_index(args.files)
    base = new_case(args.benchmark, args.case, index)
    mapping = load_benchmark(args.config, args.benchmark).sequence_map if args.mapped else ()
    named = NamedKinds(read_overrides(args.overrides), mapping)
    case = quarantine_on_error(base, lambda: ingest_case(base, index, args.files.parent, folder, named, sizes=args.voxel_sizes))
    if case.state is State.QUARANTINED:
        make_empty(folder)
    write_case(args.out, case)
    return 0


def make_empty(folder: Path) -> None:
    """Create the outputs that even a case without scans has."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("series", "text"):
        (folder / name).mkdir(parents=True)
    write_identity(folder / "identity.json", Identity())


if __name__ == "__main__":
    raise SystemExit(run_command(main))
