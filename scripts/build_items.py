"""Turn cases or pictures and their answers into items (questions), gold (reference answers) and disclosures."""

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
from neuralmedbench.runtime.options import Command


def build_items(
    *,
    benchmark: str,
    folder: Path,
    vocabulary: Path,
    out_items: Path,
    out_gold: Path,
    out_disclosures: Path,
    out_exemplars: Path,
    out_lesions: Path,
    slices: Path | None = None,
    config: Path = Path("config"),
) -> None:
    own, words = load_benchmark(config, benchmark), read_vocabulary(vocabulary)
    if own.has_cases:
        table = case_table(config, benchmark)
        rows = read_records(slices, SliceRow) if slices else []
        sources = read_sources(case_files(table, folder), rows, Templates(config / "prompts"))
        built = build_cases(benchmark, own, sources, answers_of(own, table), words)
    else:
        asked, pictures = read_question_set(benchmark, own), read_pictures(folder / "pictures.json")
        built = build_questions(benchmark, own, asked, pictures, folder, vocabulary=words)
    built = add_shown_by_arms(built, load_arms(config, own.arms, benchmark).values(), words)
    write_records(out_items, Item, built.items, key=lambda item: item.item_id)
    write_records(out_gold, Gold, built.gold, key=lambda row: row.item_id)
    write_records(out_disclosures, Disclosure, built.disclosures, key=lambda row: (row.item_id, row.arm))
    write_records(out_exemplars, Exemplar, built.exemplars, key=lambda row: row.item.item_id)
    write_records(out_lesions, ShownLesion, built.lesions, key=lambda row: (row.case_id, row.image_id))


main = Command(build_items)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
