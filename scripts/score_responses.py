"""Score the responses of one model."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Grade, PlantedAnswer, Score
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.scoring.planted.checks import believed_grades
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
    parser.add_argument("--word-graders", nargs="*", default=[], help="graders that judge rubrics by words: keyword coverage")
    parser.add_argument("--rubric-graders", nargs="*", default=[], help="language models, or juries of them, that judge rubrics")
    parser.add_argument("--vocabulary", type=Path, required=True, help="vocabulary of diagnoses and anatomy")
    parser.add_argument("--out", type=Path, required=True, help="table of scores to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    scores = score_responses(
        read_records(args.responses, Response),
        {row.item_id: row for row in read_records(args.items, Item)},
        {row.item_id: row for row in read_records(args.gold, Gold)},
        believed_grades(
            [read_records(path, Grade) for path in args.grades],
            read_records(args.planted, PlantedAnswer),
            [read_records(path, Grade) for path in args.planted_grades],
            floor=args.floor,
            confidence=args.confidence,
        ),
        vocabulary=read_vocabulary(args.vocabulary),
        rubrics=RubricGraders(args.word_graders, args.rubric_graders),
    )
    write_records(args.out, Score, scores, key=response_key)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
