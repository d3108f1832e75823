"""Write the files that are generated from the configuration (a command for people: no rule calls it)."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.cards.pages import card_pages
from neuralmedbench.cli.generated_docs import generated_files
from neuralmedbench.config.load import read_yaml
from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import ConfigError
from neuralmedbench.recording.stages import dvc_yaml
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is stale")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    folder = Path("config")
    run = Run.read(read_yaml(folder / "config.yaml"), folder)
    for name, text in {**generated_files(), **card_pages(folder), "dvc.yaml": dvc_yaml(run)}.items():
        path = Path(name)
        if args.check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            message = f"{name}: does not fit the configuration; run `make docs`"
            raise ConfigError(message)
        if not args.check:
            write_text(path, text)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
