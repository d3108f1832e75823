"""Make the packet of a further rater for what the raters of a round disagree on (a command for people: no rule calls it)."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--round", required=True, help="name of the round, as in r01; its ratings lie in its folder")
    parser.add_argument(
        "--name", default="adjudication", help="of a later one, as in adjudication-2: what was asked before is not asked again"
    )
    parser.add_argument("--unfinished", action="store_true", help="do not wait for raters without a complete export")
    parser.add_argument("--configfiles", type=Path, nargs="*", default=[], help="configuration files of the run's command line")
    parser.add_argument("--form", type=Path, default=Path("config/rating.yaml"), help="axes, and what counts as a disagreement")
    parser.add_argument("--folder", type=Path, default=Path("data/ratings"), help="folder of the rounds")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.config.load import wildcard
    from neuralmedbench.config.workflow import read_run
    from neuralmedbench.ratings.adjudication import adjudication_lines, freeze_stored_adjudication, require_complete, require_new_name
    from neuralmedbench.ratings.folders import write_round
    from neuralmedbench.ratings.form import read_form
    from neuralmedbench.ratings.rounds import RoundMaterial
    from neuralmedbench.recording.rated_answers import model_names, rated_answers

    args = parse_args(argv)
    folder = args.folder / wildcard(args.round)
    require_new_name(folder, args.name)
    run, form = read_run(args.configfiles), read_form(args.form)
    if not args.unfinished:
        require_complete(folder, form)
    material = RoundMaterial(form, rated_answers(run, form.rounds.families), model_names(run.models))
    frozen = freeze_stored_adjudication(folder, args.name, material)
    write_round(folder / args.name, frozen)
    print("\n".join(adjudication_lines(folder, args.name, frozen)))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
