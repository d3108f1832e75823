"""Whether one model gave all the answers of a run, in words for its log."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from neuralmedbench.config.places import without_places
from neuralmedbench.records.responses import Response
from neuralmedbench.records.served import Served, served_by


def log_served_models(name: str, responses: Sequence[Response]) -> None:
    """Print `served_models_line` on standard error, when there is one."""
    if line := served_models_line(name, responses):
        print(line, file=sys.stderr)


def served_models_line(name: str, responses: Sequence[Response]) -> str:
    """Say when a provider served more than one model, or more than one build of it, under the name that was asked for.

    Parameters
    ----------
    name : str
        Name of the model or grader.
    responses : sequence of Response
        Its answers, those of the ledger among them: a change since then is one too.

    Returns
    -------
    str
        One line; empty when nothing changed, or the provider names nothing.
    """
    found = served_by((row.served_model, row.fingerprint, row.called_on) for row in responses)
    names = {one.name for one in found}
    if len(found) < 2:
        return ""
    who = "; ".join(_words(one) for one in found)
    if len(names) == 1:
        return f"{name}: served with {len(found)} fingerprints, so the provider changed something on its side: {who}"
    return (
        f"{name}: served by {len(names)} models under one name: {who}; these answers are not of one model: write a dated version as `id`,"
        " or bump `revision` to ask for all of them again"
    )


def _words(one: Served) -> str:
    days = " to ".join(sorted({one.first_called_on, one.last_called_on} - {""}))
    build = f", fingerprint {one.fingerprint}" if one.fingerprint else ""
    return f"{without_places(one.name)}{build} ({one.answers} answers{f', {days}' if days else ''})"
