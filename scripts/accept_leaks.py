"""Accept with a reason that a text of an item names its answer (a command for people: no rule calls it)."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.benchmarks.leak_review import accept_text, read_accepted, write_accepted
from neuralmedbench.files.json_files import read_json_record
from neuralmedbench.records.answer_leaks import AnswerLeaks
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--item", required=True, help="item id, as data/leaks/<benchmark>.html shows it")
    parser.add_argument("--where", required=True, help="the text, as the page names it: question, notes, record, 'turn 1'...")
    parser.add_argument("--reason", required=True, help="why it may stay, in words that name no patient; it is kept in git")
    parser.add_argument("--reviewer", required=True, help="your initials")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    path = args.config / "benchmarks" / f"{args.benchmark}.leaks.json"
    leaks = read_json_record(args.data / "leaks" / f"{args.benchmark}.json", AnswerLeaks, remedy="run find_answer_leaks first")
    before = read_accepted(path, args.benchmark)
    after = accept_text(leaks, before, item_id=args.item, where=args.where, reason=args.reason, reviewer=args.reviewer)
    write_accepted(path, after)
    print(f"{path.as_posix()}: {len(after.accepted)} accepted; run the pipeline again")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
