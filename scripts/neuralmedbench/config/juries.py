"""The members of juries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from neuralmedbench.config.load import load_grader
from neuralmedbench.config.model import GraderConfig
from neuralmedbench.errors import ConfigError


def jury_members(folder: Path, graders: Mapping[str, GraderConfig]) -> dict[str, GraderConfig]:
    """Read the jury members that are not themselves in the run list.

    Parameters
    ----------
    folder : Path
        The folder `config/`.
    graders : mapping of str to GraderConfig
        The graders of the run list.

    Returns
    -------
    dict of str to GraderConfig
        By name, in the order of the juries' lists.

    Raises
    ------
    ConfigError
        If a member is missing, is a jury, or has another task than the others (there is nothing to vote on), or if a jury on errors uses
        the mean: errors are categories (absent, present, significant).
    """
    found: dict[str, GraderConfig] = {}
    for jury, config in graders.items():
        if config.kind != "jury":
            continue
        members = {name: graders.get(name) or load_grader(folder / "graders" / f"{name}.yaml") for name in config.members}
        if juries := [name for name, member in members.items() if member.kind == "jury"]:
            message = f"grader {jury}: its member {juries[0]} is a jury; name the members of that jury instead"
            raise ConfigError(message)
        # members that judge different things cannot be counted together
        tasks = {member.task for member in members.values() if member.kind == "llm"}
        if len(tasks) > 1:
            message = f"grader {jury}: its members judge different things ({', '.join(sorted(tasks))}); a jury needs one `task`"
            raise ConfigError(message)
        if tasks == {"errors"} and config.rule == "mean":
            message = f"grader {jury}: errors are categories without a mean; a jury on errors needs `rule: majority`"
            raise ConfigError(message)
        found |= {name: member for name, member in members.items() if name not in graders}
    return found
