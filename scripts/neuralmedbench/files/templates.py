"""Prompt templates: files in `config/prompts/`, rendered in a sandbox where an unknown name is an error."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import FileSystemLoader, StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from neuralmedbench.errors import ConfigError

VERSION = re.compile(r"\{# version: (\d+) #\}\s*\n")
"""First line of a template: a comment, which is not rendered."""


def version_of(text: str) -> int | None:
    """Return the version in the first line of a template, or None."""
    version = VERSION.match(text)
    return int(version[1]) if version else None


class Templates:
    """The templates of one folder.

    Parameters
    ----------
    folder : Path
        Folder of the `.j2` files.
    """

    def __init__(self, folder: Path) -> None:
        self._environment = ImmutableSandboxedEnvironment(
            loader=FileSystemLoader(folder), undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
        )

    def render(self, name: str, **values: object) -> str:
        """Render a template; the values are text and never rendered as templates themselves.

        Parameters
        ----------
        name : str
            File name without `.j2`.
        **values : object
            Values by name.

        Returns
        -------
        str
            The text, without white space at its ends.

        Raises
        ------
        ConfigError
            If the template is absent, malformed or uses an unknown name.
        """
        try:
            return self._environment.get_template(f"{name}.j2").render(**values).strip()
        except TemplateError as error:
            line = getattr(error, "lineno", None)
            message = f"prompt template {name}.j2{f', line {line}' if line else ''}: {type(error).__name__}"
            if type(error).__name__ == "UndefinedError":
                message += f"; it may use {', '.join(sorted(values))}"
            raise ConfigError(message) from None
