"""The graders that sit on a jury."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from neuralmedbench.config.load import load_grader
from neuralmedbench.config.model import GraderConfig
from neuralmedbench.errors import ConfigError


def jury_members(folder: Path, graders: Mapping[str, GraderConfig]) -> dict[str, GraderConfig]:
    """Read the members of juries that are not in the run list themselves.

    Parameters
    ----------
    folder : Path
        The folder `config/`.
    graders : mapping of str to GraderConfig
        The graders of the run list.

    Returns
    -------
    dict of str to GraderConfig
        By name, in the order in which juries name them.

    Raises
    ------
    ConfigError
        If a member is not there, is a jury, or judges something else than the others: then there is nothing to vote on. And if the mean of
        errors is asked for: an error is absent, there, or significant, and nothing in between.
    """
    found: dict[str, GraderConfig] = {}
    for jury, config in graders.items():
        if config.kind != "jury":
            continue
        members = {name: graders.get(name) or load_grader(folder / "graders" / f"{name}.yaml") for name in config.members}
        if juries := [name for name, member in members.items() if member.kind == "jury"]:
            message = f"grader {jury}: its member {juries[0]} is a jury; name the members of that one instead"
            raise ConfigError(message)
        tasks = {member.task for member in members.values() if member.kind == "llm"}
        if len(tasks) > 1:
            message = f"grader {jury}: its members judge different things ({', '.join(sorted(tasks))}); a jury needs one `task`"
            raise ConfigError(message)
        if tasks == {"errors"} and config.rule == "mean":
            message = f"grader {jury}: an error is there or not; a jury on errors needs `rule: majority`"
            raise ConfigError(message)
        found |= {name: member for name, member in members.items() if name not in graders}
    return found
