"""Prompt templates: files in `config/prompts/`, rendered in a sandbox where an unknown name is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
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
    paraphrase : str
        Folder below `paraphrases/` whose templates stand for those of the same name; empty for none.
    shared : mapping of str to object
        Values that every template may use, by name.
    """

    def __init__(self, folder: Path, *, paraphrase: str = "", shared: Mapping[str, object] | None = None) -> None:
        self._folder, self._reworded, self._shared = folder, paraphrase, dict(shared or {})
        folders = [*([folder / "paraphrases" / paraphrase] if paraphrase else []), folder]
        self._environment = ImmutableSandboxedEnvironment(
            loader=FileSystemLoader(folders), undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
        )

    def paraphrase(self, name: str) -> Templates:
        """Return the same templates in the words of a paraphrase; ConfigError if it has no folder."""
        if not (self._folder / "paraphrases" / name).is_dir():
            message = f"there is no paraphrase {name!r}: write it in {(self._folder / 'paraphrases' / name).as_posix()}"
            raise ConfigError(message)
        return Templates(self._folder, paraphrase=name, shared=self._shared)

    def sharing(self, **values: object) -> Templates:
        """Return the same templates with further values that every template may use; compiled ones are shared too."""
        other = copy(self)
        other._shared = {**self._shared, **values}
        return other

    def question(self, text: str) -> str:
        """Return a question in the words of these templates: `question.j2` of a paraphrase, otherwise as it is."""
        return self.render("question", question=text) if self._reworded else text

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
            return self._environment.get_template(f"{name}.j2").render(**{**self._shared, **values}).strip()
        except (TemplateError, OSError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            line = getattr(error, "lineno", None)
            message = f"prompt template {name}.j2{f', line {line}' if line else ''}: {type(error).__name__}"
            if isinstance(error, UnicodeDecodeError):
                message += "; save it as UTF-8"
            if type(error).__name__ == "UndefinedError":
                message += f"; it may use {', '.join(sorted(values))}"
            raise ConfigError(message) from None
