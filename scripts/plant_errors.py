"""Write answers with planted errors, made from the references of a benchmark, on which graders are tested."""

from pathlib import Path

from neuralmedbench.config.section import Section
from neuralmedbench.files.tables import read_by_item, read_records, write_records
from neuralmedbench.files.vocabulary import read_urgency, read_vocabulary, urgency_path
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.scores import PlantedAnswer
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command
from neuralmedbench.scoring.planted.planting import plant_errors


class Settings(Section):
    """Answers per edit, each of another patient."""

    patients: int


def plant(*, items: Path, gold: Path, vocabulary: Path, settings: Settings, out: Path) -> None:
    words = read_vocabulary(vocabulary)
    urgency = read_urgency(urgency_path(vocabulary), words)
    asked, references = read_records(items, Item), read_by_item(gold, Gold)
    planted = plant_errors(asked, references, vocabulary=words, urgency=urgency, patients=settings.patients)
    write_records(out, PlantedAnswer, planted, key=lambda row: (row.edit, row.number, row.item_id))


main = Command(plant)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
