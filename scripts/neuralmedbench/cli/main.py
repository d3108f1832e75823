"""`nmb GROUP VERB`: find the verb and run it, print the help, and suggest the nearest name for a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from neuralmedbench.cli.benchmark import BENCHMARK
from neuralmedbench.cli.cases import CASES
from neuralmedbench.cli.deid import DEID
from neuralmedbench.cli.model import MODEL
from neuralmedbench.cli.ratings import RATINGS
from neuralmedbench.cli.run import RUN
from neuralmedbench.cli.score import SCORE
from neuralmedbench.cli.verbs import VerbGroup
from neuralmedbench.errors import ConfigError

GROUPS = {group.name: group for group in (CASES, DEID, BENCHMARK, MODEL, SCORE, RATINGS, RUN)}
HELP = {"-h", "--help"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run `nmb`.

    Parameters
    ----------
    argv : sequence of str, optional
        Group, verb and the arguments of the verb; empty if absent (`run_command` passes the command line).

    Returns
    -------
    int
        Exit code.

    Raises
    ------
    ConfigError
        If the group, the verb or an argument is missing or unknown.
    """
    # argparse is used from the verb on; groups and verbs are looked up here, without importing the library
    words = list(argv or [])
    if words[:1] and words[0] in HELP:
        print(help_of(GROUPS.values()))
        return 0
    group = GROUPS[_choose("nmb", "group", words[:1], GROUPS)]
    if words[1:] and words[1] in HELP:
        print(help_of([group]))
        return 0
    verb = group.verbs[_choose(f"nmb {group.name}", "command", words[1:2], group.verbs)]
    return verb.main(words[2:])


def help_of(groups: Iterable[VerbGroup]) -> str:
    """Return the overview: groups and verbs, one line each."""
    lines = ["usage: nmb GROUP VERB [arguments]", ""]
    for group in groups:
        lines += [f"{group.name}: {group.about}", *(f"  {name:<15} {verb.summary}" for name, verb in group.verbs.items()), ""]
    lines += ["`nmb GROUP VERB --help` explains a command and shows an example; `--debug` shows the traceback of an error."]
    lines += ["To run the pipeline: `snakemake --cores 8 results/report.html`."]
    return "\n".join(lines)


def _choose(command: str, kind: str, word: Sequence[str], choices: Iterable[str]) -> str:
    names = list(choices)
    if word and word[0] in names:
        return word[0]
    step = f"`{command} --help` explains them"
    if not word:
        message = f"{command}: name a {kind}, one of {', '.join(names)}; {step}"
        raise ConfigError(message)
    nearest = difflib.get_close_matches(word[0], names, n=1)
    meant = f"did you mean `{command} {nearest[0]}`?" if nearest else f"there are {', '.join(names)};"
    message = f"{command}: there is no {kind} {word[0]!r}; {meant} {step}"
    raise ConfigError(message)
