"""Score the responses of one model."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.tables import read_by_item, read_records, write_records
from neuralmedbench.files.vocabulary import read_urgency, read_vocabulary, urgency_path
from neuralmedbench.records.coordinates import Convention
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Grade, PlantedAnswer, Score, response_key
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.scoring.evidence import ASKED, read_pictures
from neuralmedbench.scoring.planted.checks import believed_grades
from neuralmedbench.scoring.planted.planting import References, planted_in_answers
from neuralmedbench.scoring.scores import RubricGraders, score_responses


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=Path, required=True, help="responses of one model")
    parser.add_argument("--items", type=Path, required=True, help="items of the benchmark")
    parser.add_argument("--gold", type=Path, required=True, help="gold of the benchmark; without rows, nothing is scored")
    parser.add_argument("--grades", type=Path, nargs="*", default=[], help="grades by grader; the first with a believed value counts")
    parser.add_argument("--planted", type=Path, required=True, help="answers with planted errors")
    parser.add_argument("--planted-grades", type=Path, nargs="*", default=[], help="grades of them, in the order of --grades")
    parser.add_argument("--floor", type=float, required=True, help="share of planted errors that a grader must detect")
    parser.add_argument("--confidence", type=float, required=True, help="of the interval of that share")
    parser.add_argument("--word-graders", nargs="*", default=[], help="graders that judge rubrics by words")
    parser.add_argument("--rubric-graders", nargs="*", default=[], help="language models, or juries of them, that judge rubrics")
    parser.add_argument("--lesions", type=Path, help="table: the part of the known lesion on each picture; without it no place is judged")
    parser.add_argument("--form", choices=list(ASKED), default="short", help="form of the answers, which says what they were asked for")
    parser.add_argument("--coordinates", type=Convention, default=Convention.THOUSANDTHS, help="unit of the coordinates in answers")
    parser.add_argument("--shrinks", type=int, nargs=2, help="longest and shortest side of the provider's pictures; 0: no limit")
    parser.add_argument("--layout-arms", nargs="*", default=[], help="arms that ask the model in another input layout")
    parser.add_argument("--vocabulary", type=Path, required=True, help="vocabulary of diagnoses and anatomy")
    parser.add_argument("--out", type=Path, required=True, help="table of scores to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    responses, vocabulary = read_records(args.responses, Response), read_vocabulary(args.vocabulary)
    items, gold = (read_by_item(*source) for source in ((args.items, Item), (args.gold, Gold)))
    references = References(items, gold, vocabulary, read_urgency(urgency_path(args.vocabulary), vocabulary))
    grades, tested = ([read_records(path, Grade) for path in paths] for paths in (args.grades, args.planted_grades))
    planted, in_answers = read_records(args.planted, PlantedAnswer), [planted_in_answers(responses, rows, references) for rows in grades]
    believed = believed_grades(grades, planted, tested, in_answers=in_answers, floor=args.floor, confidence=args.confidence)
    rubrics = RubricGraders(args.word_graders, args.rubric_graders)
    pictures = read_pictures(args.lesions, args.form, args.coordinates, args.shrinks, args.layout_arms)
    scores = score_responses(responses, items, gold, believed, vocabulary=vocabulary, rubrics=rubrics, pictures=pictures)
    write_records(args.out, Score, scores, key=response_key)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
