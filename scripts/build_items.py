"""Turn cases or pictures and their answers into items (questions), gold (reference answers) and disclosures."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.benchmarks.case_items import answers_of, build_cases
from neuralmedbench.benchmarks.question_items import build_questions, read_question_set
from neuralmedbench.benchmarks.sources import read_sources
from neuralmedbench.benchmarks.told_by_arms import add_shown_by_arms
from neuralmedbench.config.arms import load_arms
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.files.cases import case_files, case_table, read_pictures
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.files.templates import Templates
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.case import SliceRow
from neuralmedbench.records.items import Disclosure, Exemplar, Gold, Item, ShownLesion
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--vocabulary", type=Path, required=True, help="vocabulary of diagnoses and anatomy")
    parser.add_argument("--slices", type=Path, help="slices.parquet (scans)")
    parser.add_argument("--folder", type=Path, help="folder with sub-<case>/case.json of the de-identified cases (scans)")
    parser.add_argument("--pictures", type=Path, help="pictures.json, de-identified (pictures)")
    parser.add_argument("--out-items", type=Path, required=True, help="table of items to write")
    parser.add_argument("--out-gold", type=Path, required=True, help="table of gold to write")
    parser.add_argument("--out-disclosures", type=Path, required=True, help="table of disclosures to write")
    parser.add_argument("--out-exemplars", type=Path, required=True, help="table of few-shot examples to write")
    parser.add_argument("--out-lesions", type=Path, required=True, help="table to write: the part of the known lesion on each picture")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    config, vocabulary = load_benchmark(args.config, args.benchmark), read_vocabulary(args.vocabulary)
    if args.pictures and not config.has_cases:
        asked, pictures = read_question_set(args.benchmark, config), read_pictures(args.pictures)
        built = build_questions(args.benchmark, config, asked, pictures, args.pictures.parent, vocabulary=vocabulary)
    else:
        table = case_table(args.config, args.benchmark)
        slices = [] if args.pictures else read_records(args.slices, SliceRow)
        sources = read_sources(case_files(table, args.folder or args.pictures.parent), slices, Templates(args.config / "prompts"))
        built = build_cases(args.benchmark, config, sources, answers_of(config, table), vocabulary)
    built = add_shown_by_arms(built, load_arms(args.config, config.arms, args.benchmark).values(), vocabulary)
    write_records(args.out_items, Item, built.items, key=lambda item: item.item_id)
    write_records(args.out_gold, Gold, built.gold, key=lambda row: row.item_id)
    write_records(args.out_disclosures, Disclosure, built.disclosures, key=lambda row: (row.item_id, row.arm))
    write_records(args.out_exemplars, Exemplar, built.exemplars, key=lambda row: row.item.item_id)
    write_records(args.out_lesions, ShownLesion, built.lesions, key=lambda row: (row.case_id, row.image_id))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
