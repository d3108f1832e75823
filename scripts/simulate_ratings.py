"""Let two SIMULATED raters fill in a round of the demo: values are made up by a program, so that the demo shows the tables of ratings."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_model
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.tables import read_records
from neuralmedbench.ratings.form import read_form
from neuralmedbench.ratings.simulated_raters import simulate_round
from neuralmedbench.recording.reader_answers import answers_of, model_names
from neuralmedbench.records.scores import Grade
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmarks", nargs="+", required=True, help="benchmarks of simulated patients")
    parser.add_argument("--models", nargs="+", required=True, help="models whose answers may be drawn")
    parser.add_argument("--results", default="results", help="folder of the results of the run (default: results)")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--form", type=Path, required=True, help="axes, and how rounds are drawn (config/rating.yaml)")
    parser.add_argument("--grades", type=Path, nargs="+", required=True, help="grades of the deterministic grader")
    parser.add_argument("--out-key", type=Path, required=True, help="key of the round to write")
    parser.add_argument("--out", type=Path, nargs="+", required=True, help="exports to write, one per rater, named by pseudonym")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    form = read_form(args.form)
    models = {name: load_model(args.config / "models" / f"{name}.yaml") for name in args.models}
    candidates = [
        one for name in args.benchmarks for one in answers_of(name, models, form.rounds.families, folder=args.config, results=args.results)
    ]
    grades = [row for path in args.grades for row in read_records(path, Grade)]
    key, exports = simulate_round(form, candidates, grades, model_names(models))
    write_json(args.out_key, key.model_dump(mode="json", by_alias=True))
    for path in args.out:
        write_json(path, exports[path.stem].model_dump(mode="json", by_alias=True))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
