"""`nmb GROUP VERB`: finds the verb, prints the map, answers what it does not know."""

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
    """Do what `nmb` was asked for.

    Parameters
    ----------
    argv : sequence of str, optional
        Group, verb and the verb's arguments; nothing when absent (`run_command` hands over what was typed).

    Returns
    -------
    int
        The exit code.

    Raises
    ------
    ConfigError
        If the group, the verb or an argument is not there, or none is named.
    """
    words = list(argv or [])
    if words[:1] and words[0] in HELP:
        print(help_of(GROUPS.values()))
        return 0
    group = GROUPS[_known("nmb", "group", words[:1], GROUPS)]
    if words[1:] and words[1] in HELP:
        print(help_of([group]))
        return 0
    verb = group.verbs[_known(f"nmb {group.name}", "command", words[1:2], group.verbs)]
    return verb.main(words[2:])


def help_of(groups: Iterable[VerbGroup]) -> str:
    """Draw the map: groups and verbs, one line each."""
    lines = ["usage: nmb GROUP VERB [arguments]", ""]
    for group in groups:
        lines += [f"{group.name}: {group.about}", *(f"  {name:<15} {verb.summary}" for name, verb in group.verbs.items()), ""]
    lines += ["`nmb GROUP VERB --help` explains a verb and shows an example; `--debug` shows the traceback of an error."]
    lines += ["The pipeline itself is run by `snakemake --cores 8 results/report.html`."]
    return "\n".join(lines)


def _known(command: str, what: str, word: Sequence[str], choices: Iterable[str]) -> str:
    names = list(choices)
    if word and word[0] in names:
        return word[0]
    step = f"`{command} --help` explains them"
    if not word:
        message = f"{command}: name a {what}, one of {', '.join(names)}; {step}"
        raise ConfigError(message)
    near = difflib.get_close_matches(word[0], names, n=1)
    meant = f"did you mean `{command} {near[0]}`?" if near else f"there are {', '.join(names)};"
    message = f"{command}: there is no {what} {word[0]!r}; {meant} {step}"
    raise ConfigError(message)
