"""Compare the answers of all models to one benchmark with the reference, by the similarity of text embeddings."""

import sys
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.pipeline import SimilarityConfig
from neuralmedbench.config.section import Section
from neuralmedbench.files.tables import read_by_item, read_records, write_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.responses import Response, current_rows
from neuralmedbench.records.scores import SimilarityRow, response_key
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.machine import not_installed
from neuralmedbench.runtime.options import Command
from neuralmedbench.scoring.similarity import PACKAGES, TransformerEncoder, comparable_responses, similarity_rows, weights_folder


class Settings(Section):
    """The encoder, or none."""

    similarity: SimilarityConfig = SimilarityConfig()


def embed(*, responses: Sequence[Path], items: Path, gold: Path, vocabulary: Path, settings: Settings, out: Path) -> None:
    encoder_name, layer = settings.similarity.encoder, settings.similarity.bertscore_layer
    asked, references = read_by_item(items, Item), read_by_item(gold, Gold)
    answers = (row for path in responses for row in current_rows(read_records(path, Response)))
    comparable = comparable_responses(answers, asked, references) if encoder_name else []
    rows: list[SimilarityRow] = []
    # an installation for APIs has no encoder: the empty table says that nothing was computed (tables.similarity)
    if comparable and (lacking := not_installed(PACKAGES)):
        print(f"similarity is left out: {lacking}", file=sys.stderr)
    elif comparable:
        encoder = TransformerEncoder(weights_folder(encoder_name), layer=layer)
        rows = similarity_rows(comparable, asked, references, read_vocabulary(vocabulary), encoder)
    write_records(out, SimilarityRow, rows, key=response_key)


main = Command(embed)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
