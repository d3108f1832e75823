"""Find texts that give the answer away in the requests to models, before anything is sent."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.benchmarks.answer_leaks import find_leaks
from neuralmedbench.benchmarks.leak_review import leak_page, read_accepted
from neuralmedbench.files.json_files import write_json_record
from neuralmedbench.files.tables import read_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.requests import Request
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--items", type=Path, required=True, help="table of items")
    parser.add_argument("--gold", type=Path, required=True, help="table of gold")
    parser.add_argument("--prompts", type=Path, required=True, help="table of requests")
    parser.add_argument("--vocabulary", type=Path, required=True, help="vocabulary of diagnoses and anatomy")
    parser.add_argument("--accepted", type=Path, help="leaks that a person accepted, with reasons (JSON)")
    parser.add_argument("--out-page", type=Path, required=True, help="page to write (HTML)")
    parser.add_argument("--out", type=Path, required=True, help="leaks to write (JSON)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    items, gold = read_records(args.items, Item), read_records(args.gold, Gold)
    vocabulary = read_vocabulary(args.vocabulary)
    requests = read_records(args.prompts, Request)
    accepted = read_accepted(args.accepted, args.benchmark) if args.accepted else None
    leaks = find_leaks(args.benchmark, items, gold, requests, vocabulary, accepted=accepted)
    write_text(args.out_page, leak_page(leaks, items, gold, requests, vocabulary))
    write_json_record(args.out, leaks)
    summary = f"{leaks.leaking} of {leaks.items} items name their answer in a prompt ({leaks.accepted} accepted)"
    print(f"{args.benchmark}: {summary}; see {args.out_page.as_posix()}")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
