"""Import a data set that you downloaded (a command for people: no rule calls it); nothing is ever fetched from a network.

Writes data/questions/<name>/ (questions, answers, list of pictures, import.json), data/raw/<name>/ (the pictures, never shared) and, when
it is not there, config/benchmarks/<name>.yaml. Every row is taken or refused with a reason.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.benchmarks.adapters.registry import data_sets, table
from neuralmedbench.benchmarks.importing import ImportPaths, check_name, import_set, import_summary, write_yaml
from neuralmedbench.config.load import wildcard
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    first = argparse.ArgumentParser(add_help=False)
    first.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    # mappings in the configuration's folder are data sets too, so that folder is needed before the rest is read
    sets = data_sets(first.parse_known_args(argv)[0].config)
    text = f"{__doc__}\nData sets:\n\n{table(sets)}"
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter, parents=[first])
    parser.add_argument("data_set", choices=sorted(sets), metavar="DATA_SET", help="name of the data set, from the list above")
    parser.add_argument("--from", dest="folder", type=Path, required=True, metavar="DIR", help="folder where you put its files")
    parser.add_argument("--name", help="name of the benchmark here; the data set's name when absent")
    parser.add_argument("--part", action="store_true", help="the folder holds a part of the data set on purpose")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    data_set = data_sets(args.config)[args.data_set]
    name = wildcard(args.name or data_set.name)
    places = ImportPaths(tables=args.data / "questions" / name, pictures=args.data / "raw" / name)
    path = args.config / "benchmarks" / f"{name}.yaml"
    check_name(path, places)
    record = import_set(data_set, args.folder, name, places, part=args.part)
    written = write_yaml(path, data_set, record, places)
    print(import_summary(record, written=written))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
