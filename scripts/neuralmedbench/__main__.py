"""Run `nmb` as `python -m neuralmedbench`."""

from neuralmedbench.cli.main import main
from neuralmedbench.runtime.commands import run_command

if __name__ == "__main__":
    raise SystemExit(run_command(main))
