"""Score the responses of one model."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from neuralmedbench.config.pipeline import GraderChecksConfig, StatisticsConfig
from neuralmedbench.config.section import Section
from neuralmedbench.files.tables import read_by_item, read_records, write_records
from neuralmedbench.files.vocabulary import read_urgency, read_vocabulary, urgency_path
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Grade, PlantedAnswer, Score, response_key
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command
from neuralmedbench.scoring.evidence import PlaceSettings, read_pictures
from neuralmedbench.scoring.planted.checks import believed_grades
from neuralmedbench.scoring.planted.planting import References, planted_in_answers
from neuralmedbench.scoring.scores import RubricGraders, score_responses


class Settings(Section):
    """Which grades are believed, who judges rubrics, and how places are read."""

    grader_checks: GraderChecksConfig = GraderChecksConfig()
    statistics: StatisticsConfig = StatisticsConfig()
    word_graders: tuple[str, ...] = Field((), description="Graders that judge rubrics by words.")
    rubric_graders: tuple[str, ...] = Field((), description="Language models, or juries of them, that judge rubrics.")
    places: PlaceSettings = PlaceSettings()


def score(
    *, responses: Path, items: Path, gold: Path, grades: Sequence[Path], planted: Path,
    planted_grades: Sequence[Path], vocabulary: Path, settings: Settings, out: Path,
    lesions: Path | None = None,
) -> None:  # fmt: skip
    answers, words = read_records(responses, Response), read_vocabulary(vocabulary)
    asked, known = read_by_item(items, Item), read_by_item(gold, Gold)
    references = References(asked, known, words, read_urgency(urgency_path(vocabulary), words))
    tables = [read_records(path, Grade) for path in grades]
    floor, confidence = settings.grader_checks.floor, settings.statistics.confidence
    tested, in_answers = (
        [read_records(path, Grade) for path in planted_grades],
        [planted_in_answers(answers, rows, references) for rows in tables],
    )
    believed = believed_grades(
        tables, read_records(planted, PlantedAnswer), tested, in_answers=in_answers, floor=floor, confidence=confidence
    )
    rubrics = RubricGraders(settings.word_graders, settings.rubric_graders)
    pictures = read_pictures(lesions, settings.places)
    scores = score_responses(answers, asked, known, believed, vocabulary=words, rubrics=rubrics, pictures=pictures)
    write_records(out, Score, scores, key=response_key)


main = Command(score)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
