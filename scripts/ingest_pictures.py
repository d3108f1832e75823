"""Copy the pictures of a benchmark under neutral names, pixels only; cases of users keep notes and record too."""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_benchmark
from neuralmedbench.files.cases import case_table, read_case_table, write_pictures
from neuralmedbench.ingest.pictures import ingest_picture_cases, ingest_pictures
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--benchmark",
        required=True,
        help="name of the benchmark; its YAML file gives the path of the table (answers, or images.csv in questions or source; for patients, the case table)",
    )
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data, with the private index of own cases")
    parser.add_argument("--out", type=Path, required=True, help="pictures.json to write; pictures/ and sub-<case>/ are written next to it")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    benchmark = load_benchmark(args.config, args.benchmark)
    out: Path = args.out.parent
    shutil.rmtree(out / "pictures", ignore_errors=True)
    (out / "pictures").mkdir(parents=True)
    if benchmark.has_cases:
        rows = read_case_table(case_table(args.config, args.benchmark))
        manifest = ingest_picture_cases(args.benchmark, rows, args.data / "raw" / args.benchmark, out)
    else:
        table = Path(benchmark.picture_table)
        root = Path(benchmark.source) if benchmark.questions else table.parent
        manifest = ingest_pictures(args.benchmark, table, root, out)
    write_pictures(args.out, manifest)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
