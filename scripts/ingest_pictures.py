"""Give the loose pictures of a benchmark neutral names, and keep nothing of their files but pixels."""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_benchmark
from neuralmedbench.ingest.pictures import ingest_pictures
from neuralmedbench.io.cases import write_pictures
from neuralmedbench.io.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--benchmark",
        required=True,
        help="name of the benchmark; its yaml says where the table lies (answers, or images.csv in questions or source)",
    )
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--out", type=Path, required=True, help="pictures.json to write; pictures/ appears beside it")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    benchmark = load_benchmark(args.config, args.benchmark)
    table = Path(benchmark.picture_table)
    root = Path(benchmark.source) if benchmark.questions else table.parent
    pictures: Path = args.out.parent / "pictures"
    shutil.rmtree(pictures, ignore_errors=True)
    pictures.mkdir(parents=True)
    write_pictures(args.out, ingest_pictures(args.benchmark, table, root, args.out.parent))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
