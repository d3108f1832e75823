"""Declare a verb of `nmb`: one function with its arguments and an example; its docstring is the help, the first line the summary."""

from __future__ import annotations

import argparse
import inspect
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from neuralmedbench.errors import ConfigError

if TYPE_CHECKING:
    from neuralmedbench.config.workflow import Run

Argument = Callable[[Any], object]
"""Adds itself to a parser or to an argument group."""


Function = Callable[[argparse.Namespace], Iterable[object] | int | None]
"""A verb: it yields the lines of its result, or returns an exit code, or None."""


def note(*lines: object) -> None:
    """Print lines on the error output, beside the result."""
    print(*lines, sep="\n", file=sys.stderr)


def run_of(args: argparse.Namespace, also: Callable[[Run], Iterable[str]] | None = None) -> Run:
    """Read the run of the configuration files in the arguments; ConfigError as in `read_run`."""
    from neuralmedbench.config.workflow import read_run

    return read_run(args.configfiles, also=also) if also else read_run(args.configfiles)


def argument(*names: str, **settings: Any) -> Argument:
    """Declare an argument; parameters as of `ArgumentParser.add_argument`."""
    return lambda parser: parser.add_argument(*names, **settings)


def one_of(*arguments: Argument) -> Argument:
    """Declare arguments of which exactly one must be given."""

    def add(parser: Any) -> None:
        group = parser.add_mutually_exclusive_group(required=True)
        for declared in arguments:
            declared(group)

    return add


BENCHMARK = argument("--benchmark", required=True, help="name of the benchmark")
CONFIG = argument("--config", type=Path, default=Path("config"), help="configuration folder (default: config)")
DATA = argument("--data", type=Path, default=Path("data"), help="data folder (default: data)")
CORES = argument("--cores", type=int, default=None, help="number of cores to use (default: those of this machine)")
REVIEWER = argument("--reviewer", required=True, help="your initials")
VOCABULARY = argument(
    "--vocabulary",
    type=Path,
    default=Path("config/vocabulary/neurology.yaml"),
    help="vocabulary of diagnoses (default: config/vocabulary/neurology.yaml)",
)
CONFIGFILES = argument("--configfiles", type=Path, nargs="*", default=[], help="configuration files of the run, as given to snakemake")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise a wrong argument as the one-line error that `run_command` prints."""
        text = f"{self.prog}: {message}; `{self.prog} --help` shows an example"
        raise ConfigError(text)


@dataclass(frozen=True)
class Verb:
    """One command for people."""

    command: str
    """`nmb GROUP VERB`."""
    about: str
    example: str
    """Arguments of the example in the help."""
    arguments: tuple[Argument, ...]
    function: Function
    appendix: Callable[[Sequence[str]], str] | None = None
    """Text for the end of the help, made from the arguments; called for `--help` only."""

    @property
    def summary(self) -> str:
        """One line for the overview of `nmb --help`."""
        return self.about.partition("\n")[0]

    def parse_args(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse the arguments after the verb; ConfigError if one is wrong."""
        epilog = [f"example:\n  {self.command} {self.example}".rstrip()]
        # the appendix may read files, so it is made for --help only
        if self.appendix and {"-h", "--help"} & set(argv):
            epilog.append(self.appendix(argv))
        width = min(shutil.get_terminal_size().columns, 120)
        about = "\n\n".join(textwrap.fill(" ".join(part.split()), width) for part in self.about.split("\n\n"))
        parser = _Parser(
            prog=self.command, description=about, epilog="\n\n".join(epilog), formatter_class=argparse.RawDescriptionHelpFormatter
        )
        for declared in self.arguments:
            declared(parser)
        return parser.parse_args(argv)

    def main(self, argv: Sequence[str]) -> int:
        """Parse the arguments after the verb, run it, print its lines as a terminal may show them, and return its exit code."""
        from neuralmedbench.files.texts import for_terminal

        result = self.function(self.parse_args(argv))
        if isinstance(result, int):
            return result
        for line in result or ():
            print(for_terminal(str(line)), flush=True)
        return 0


@dataclass(frozen=True)
class VerbGroup:
    """A group of verbs: `nmb GROUP`."""

    name: str
    about: str
    verbs: dict[str, Verb] = field(default_factory=dict)

    def verb(
        self, name: str, *arguments: Argument, example: str, appendix: Callable[[Sequence[str]], str] | None = None
    ) -> Callable[[Function], Verb]:
        """Declare a function as a verb of this group; its docstring is the help."""

        def declare(function: Function) -> Verb:
            about = inspect.cleandoc(function.__doc__ or "")
            self.verbs[name] = Verb(f"nmb {self.name} {name}", about, example, arguments, function, appendix)
            return self.verbs[name]

        return declare
