"""Compare the answers of all models to one benchmark with the reference, by the similarity of text embeddings."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.tables import read_by_item, read_records, write_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.responses import Response, current_rows
from neuralmedbench.records.scores import SimilarityRow, response_key
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.machine import not_installed
from neuralmedbench.scoring.similarity import PACKAGES, TransformerEncoder, comparable_responses, similarity_rows, weights_folder


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=Path, nargs="+", required=True, help="responses, one table per model")
    parser.add_argument("--items", type=Path, required=True, help="items of the benchmark")
    parser.add_argument("--gold", type=Path, required=True, help="gold of the benchmark")
    parser.add_argument("--vocabulary", type=Path, required=True, help="vocabulary, for expanding abbreviations")
    parser.add_argument("--encoder", required=True, help="packaged encoder, or folder with weights; empty: none")
    parser.add_argument("--layer", type=int, required=True, help="hidden layer that BERTScore compares")
    parser.add_argument("--out", type=Path, required=True, help="table of similarities to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    items = read_by_item(args.items, Item)
    gold = read_by_item(args.gold, Gold)
    rows_read = (row for path in args.responses for row in current_rows(read_records(path, Response)))
    responses = comparable_responses(rows_read, items, gold) if args.encoder else []
    rows: list[SimilarityRow] = []
    # an installation for APIs has no encoder: the empty table says that nothing was computed (tables.similarity)
    if responses and (lacking := not_installed(PACKAGES)):
        print(f"similarity is left out: {lacking}", file=sys.stderr)
    elif responses:
        encoder = TransformerEncoder(weights_folder(args.encoder), layer=args.layer)
        rows = similarity_rows(responses, items, gold, read_vocabulary(args.vocabulary), encoder)
    write_records(args.out, SimilarityRow, rows, key=response_key)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
