"""The options of a rule's command: the parameters of one function."""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError


class Command:
    """A function whose parameters are options: paths, names, and settings as a record in JSON.

    Parameters
    ----------
    function : callable
        `Path` and `str` are one word, `Path | None` at most one, `Sequence[Path]` any number.
        A section of the configuration is JSON: keys that are left out have their defaults.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function

    def __call__(self, argv: Sequence[str] | None = None) -> int:
        """Run the function with the options of a command line; return the exit code 0."""
        self.function(**vars(self.parse_args(argv)))
        return 0

    def parse_args(self, argv: Sequence[str] | None) -> argparse.Namespace:
        """Read a command line; ConfigError if settings are wrong."""
        parameters = inspect.signature(self.function, eval_str=True).parameters.values()
        records = [value.annotation for value in parameters if _is_record(value.annotation)]
        parser = argparse.ArgumentParser(
            description=inspect.getdoc(inspect.getmodule(self.function)),
            epilog="\n".join(line for record in records for line in _described(record)),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for parameter in parameters:
            _add_option(parser, parameter)
        return parser.parse_args(argv)


def _add_option(parser: argparse.ArgumentParser, parameter: inspect.Parameter) -> None:
    name, kind = f"--{parameter.name.replace('_', '-')}", parameter.annotation
    if _is_record(kind):
        # argparse reads a default that is a text: a key without a default is reported as missing
        parser.add_argument(name, type=partial(read_settings, kind, name), default="{}", metavar="JSON")
        return
    required = parameter.default is parameter.empty
    default = None if required else parameter.default
    if kind is str:
        parser.add_argument(name, required=required, default=default)
    else:
        nargs = "?" if kind == Path | None else None if kind is Path else "*"
        parser.add_argument(name, type=Path, nargs=nargs, required=required, default=default)


def read_settings(record: type[BaseModel], option: str, text: str) -> BaseModel:
    """Read the settings of a command from JSON; ConfigError if keys or values are wrong."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None  # reported as any other wrong value
    try:
        return record.model_validate(value)
    except ValidationError:
        from neuralmedbench.config.load import check  # it words mistakes, and reads all of `config`

        return check(record, value, option)


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _described(record: type[BaseModel], place: str = "") -> Iterator[str]:
    """Yield a line for each key of a record, those of its sections included."""
    for name, field in record.model_fields.items():
        if _is_record(field.annotation):
            yield from _described(field.annotation, f"{place}{name}.")  # type: ignore[arg-type]
        else:
            default = "" if field.is_required() else f" (default: {field.get_default(call_default_factory=True)!r})"
            yield f"  {place}{name}{default}  {field.description or ''}".rstrip()
