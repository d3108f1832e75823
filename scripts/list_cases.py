"""List the cases in a folder of your own (a command for people): case table, private index of the files, and a new key.

Writes config/benchmarks/<benchmark>.cases.tsv (pseudonyms only), and in the private zone data/raw/<benchmark>/<case>/files.json and
data/raw/<benchmark>/listing.tsv, which tells you which case id is which folder, and which files are part of no case.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_benchmark
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.pseudonyms import read_key, write_new_key
from neuralmedbench.ingest.case_tables import keyed_pseudonyms, linked_pseudonyms, write_listing
from neuralmedbench.ingest.listing import find_cases, list_cases, summarise
from neuralmedbench.ingest.picture_listing import find_picture_cases
from neuralmedbench.records.items import Kind
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--benchmark", help="name of the benchmark: config/benchmarks/<benchmark>.yaml")
    what.add_argument(
        "--new-key", type=Path, metavar="FILE", help="make a new secret key that only you can read; keep it outside the project"
    )
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    if args.new_key:
        write_new_key(args.new_key)
        print("a new key was written; keep it safe: without it the same patients get other ids")
        return 0
    benchmark = load_benchmark(args.config, args.benchmark)
    if benchmark.source == "phantoms" or not benchmark.has_cases:
        message = f"{args.benchmark}: list_cases is for folders of your own, scans or pictures of patients; the phantoms' case table is part of the project"
        raise ConfigError(message)
    key = read_key(benchmark.key_file)
    published = args.config / "demo.key"
    if published.exists() and key == read_key(published):
        message = "the key of the demo is published: whoever has it can test who is who; make your own with --new-key FILE"
        raise ConfigError(message)
    private = args.data / "raw" / args.benchmark
    pseudonyms = linked_pseudonyms(private / "linkage.json") if benchmark.profile == "safe_harbor" else keyed_pseudonyms(key)
    find = find_cases if benchmark.kind is Kind.SCANS else find_picture_cases
    listing = list_cases(Path(benchmark.source), pseudonyms, find)
    write_listing(listing, args.config / "benchmarks" / f"{args.benchmark}.cases.tsv", private)
    print(", ".join(f"{number} {what}" for what, number in summarise(listing).items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
