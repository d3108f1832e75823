"""Grade the open answers and dialogues of one model, and some again with planted errors; or planted answers; with one grader."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_benchmark, load_grader
from neuralmedbench.files.cases import read_audit
from neuralmedbench.files.tables import read_by_item, read_records, write_records
from neuralmedbench.models.model_run import ModelRun, add_call_arguments, call_arguments
from neuralmedbench.prompts.coverage import check_asked
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.scores import Grade, response_key
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.scoring.llm.grader_requests import grader_model, read_model_grader
from neuralmedbench.scoring.llm.model_grading import GraderRun, GraderTests, grade_table


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--grader", required=True, help="name of the grader")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--audit", type=Path, required=True, help="audit.json of the de-identification")
    parser.add_argument("--responses", type=Path, required=True, help="responses of one model, or planted answers")
    parser.add_argument("--patients", type=int, help="of planted answers: patients per edit")
    parser.add_argument("--in-answers", type=int, default=0, help="of answers: patients per edit, graded again with planted errors")
    parser.add_argument("--tested", type=Path, help="grades of planted answers; if there are none, nothing is planted in answers")
    parser.add_argument("--by-default", action="store_true", help="of planted answers: leave a grader untested that graded before")
    parser.add_argument("--items", type=Path, required=True, help="items of the benchmark")
    parser.add_argument("--gold", type=Path, required=True, help="gold of the benchmark")
    parser.add_argument("--vocabulary", type=Path, required=True, help="vocabulary of diagnoses and anatomy")
    parser.add_argument("--names", nargs="*", default=[], help="names of the answering model, which are hidden from graders")
    add_call_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, help="table of grades to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    check_asked((), read_audit(args.audit))
    grader = load_grader(args.config / "graders" / f"{args.grader}.yaml")
    items = read_by_item(args.items, Item)
    gold = read_by_item(args.gold, Gold)
    by: str | GraderRun = args.grader
    if grader.kind != "rubric":
        allowed = load_benchmark(args.config, args.benchmark).allowed_destinations
        run = ModelRun(grader_model(args.grader, grader), destinations=allowed, **call_arguments(args))
        by = GraderRun(read_model_grader(args.grader, grader, args.names), run, by_default=args.by_default)
    tests = GraderTests(args.patients, args.in_answers if not args.tested or read_records(args.tested, Grade) else 0)
    grades = grade_table(args.responses, items, gold, vocabulary=args.vocabulary, grader=by, tests=tests)
    write_records(args.out, Grade, grades, key=lambda row: (response_key(row), row.criterion))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
