"""Freeze a round for clinicians: sample, packets and key (a command for people: no rule calls it); a round is never made again."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--round", required=True, help="name of the round, as in r01")
    parser.add_argument("--mode", choices=("rate", "answer"), default="rate", help="whether answers are rated, or questions answered")
    parser.add_argument("--configfiles", type=Path, nargs="*", default=[], help="configuration files of the run's command line")
    parser.add_argument("--form", type=Path, default=Path("config/rating.yaml"), help="axes, and how rounds are drawn")
    parser.add_argument("--folder", type=Path, default=Path("data/ratings"), help="folder of the rounds")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.config.load import wildcard
    from neuralmedbench.config.workflow import read_run
    from neuralmedbench.ratings.answering.answer_rounds import freeze_answers
    from neuralmedbench.ratings.folders import answer_round_lines, require_new, round_lines, write_round
    from neuralmedbench.ratings.form import read_form
    from neuralmedbench.ratings.rounds import RoundMaterial, freeze_round
    from neuralmedbench.recording.rated_answers import model_names, rated_answers
    from neuralmedbench.recording.reader_answers import asked_items

    args = parse_args(argv)
    folder = args.folder / wildcard(args.round)
    require_new(folder)
    run, form = read_run(args.configfiles), read_form(args.form)
    if args.mode == "answer":
        asked = freeze_answers(args.round, form.answers, asked_items(run, form.answers.families))
        write_round(folder, asked)
        print("\n".join(answer_round_lines(folder, asked)))
        return 0
    frozen = freeze_round(args.round, RoundMaterial(form, rated_answers(run, form.rounds.families), model_names(run.models)))
    write_round(folder, frozen)
    print("\n".join(round_lines(folder, frozen)))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
