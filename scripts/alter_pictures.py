"""Make the altered pictures that some arms of a benchmark show."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.arms import load_arms
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.imaging.alter import alter_pictures
from neuralmedbench.records.arm_changes import AlteredPicture, altered_key
from neuralmedbench.records.items import Item
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--items", type=Path, required=True, help="table of items")
    parser.add_argument("--out-pictures", type=Path, required=True, help="folder for the pictures")
    parser.add_argument("--out", type=Path, required=True, help="table of the altered pictures to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    arms = load_arms(args.config, load_benchmark(args.config, args.benchmark).arms, args.benchmark)
    rows = alter_pictures(read_records(args.items, Item), [arm for arm in arms.values() if arm.alters], args.out_pictures)
    write_records(args.out, AlteredPicture, rows, key=altered_key)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
