"""Read the configuration; a mistake is reported in one line, with the nearest known word."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.checklists import ChecklistConfig
from neuralmedbench.config.model import GraderConfig, ModelConfig
from neuralmedbench.config.pipeline import PipelineConfig, RateLimit
from neuralmedbench.config.published import PublishedConfig
from neuralmedbench.config.readiness import ReadinessConfig
from neuralmedbench.config.section import NAME, RANDOM_TEXT, looks_like_key, name_rule
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.yaml_text import NestingError, load_yaml, yaml_fault

NOT_SHOWN = "a value that is not shown"
WITHHELD = "(withheld: a place on the machine of the run)"


def withhold_outside_paths(value: Any) -> Any:
    """Return a configuration value without paths outside the project: folder names can identify a patient."""
    if isinstance(value, dict):
        return {key: withhold_outside_paths(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [withhold_outside_paths(entry) for entry in value]
    leads_out = isinstance(value, str) and (
        value.startswith(("/", "~", "\\")) or ".." in PurePath(value).parts or value[1:3] in {":/", ":\\"}
    )
    return WITHHELD if leads_out else value


SHOWN_DEPTH, SHOWN_ENTRIES, SHOWN_CHARACTERS = 2, 5, 200
ADDRESS_WITH_USER = re.compile(r"//[^/\s]*@")


def shown(value: Any, depth: int = SHOWN_DEPTH) -> str:
    """Format a configuration value for a message: short, whatever it nests, without paths outside the project, keys or passwords."""
    if isinstance(value, str):
        hidden = looks_like_key(value) or RANDOM_TEXT.fullmatch(value) or ADDRESS_WITH_USER.search(value)
        return NOT_SHOWN if hidden else _shortened(repr(withhold_outside_paths(value)))
    if not isinstance(value, dict | list | tuple):
        return _shortened(repr(value))
    start, end = "{}" if isinstance(value, dict) else "()" if isinstance(value, tuple) else "[]"
    if not depth:
        return f"{start}...{end}" if value else start + end
    entries = list(islice(value.items() if isinstance(value, dict) else value, SHOWN_ENTRIES))
    parts = [
        f"{shown(entry[0], 0)}: {shown(entry[1], depth - 1)}" if isinstance(value, dict) else shown(entry, depth - 1) for entry in entries
    ]
    return _shortened(start + ", ".join([*parts, *(["..."] if len(value) > SHOWN_ENTRIES else [])]) + end)


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


C = TypeVar("C", bound=BaseModel)

RUN_LISTS = frozenset({"benchmarks", "models", "graders", "published", "rating_rounds"})

SEED_STRIDE, SEED_PLACES = 1000, 1_000_000
"""Each benchmark has its own range of seeds: longer than the samples of any request (100), and within 31 bits."""


def read_yaml(path: Path) -> Any:
    """Read a YAML file.

    Raises
    ------
    ConfigError
        If the file is missing or is not valid YAML.
    """
    try:
        return load_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        message = f"{path.as_posix()}: the file is not there{_nearest_file(path)}"
        raise ConfigError(message) from None
    except OSError as error:
        message = f"{path.as_posix()}: the file cannot be read ({type(error).__name__})"
        raise ConfigError(message) from None
    except NestingError as error:
        message = f"{path.as_posix()}: {error}; write it out, a configuration is short"
        raise ConfigError(message) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        number, fault = yaml_fault(error)
        line = f", line {number}" if number else ""
        message = f"{path.as_posix()}{line}: not valid YAML{f': {fault}' if fault else ''}"
        raise ConfigError(message) from None


def check(schema: type[C], value: Any, name: str) -> C:
    """Check a configuration value against its schema.

    Parameters
    ----------
    schema : type
        One of the classes of `config`: `PipelineConfig`, `BenchmarkConfig`, `ModelConfig`, `GraderConfig`...
    value : object
        What was read.
    name : str
        Name of the file, for the error message.

    Returns
    -------
    BaseModel
        The typed value.

    Raises
    ------
    ConfigError
        If keys are unknown (with the nearest known one) or missing, or values do not fit: all of them.
    """
    if not isinstance(value, dict):
        message = f"{name}: expected lines of the form `key: value`, found {'an empty file' if value is None else 'something else'}"
        raise ConfigError(message)
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        mistakes = (f"{name}: {mistake}" for mistake in _mistakes(schema, value, error.errors()))
        raise ConfigError(*dict.fromkeys(mistakes)) from None


def _mistakes(schema: type[BaseModel], value: Any, errors: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one line per wrong place of a value."""
    seen: set[tuple[int | str, ...]] = set()
    # a misspelt key is also reported as missing under its correct name: report what was written, and only that
    for one in sorted(errors, key=lambda one: one["type"] != "extra_forbidden"):
        loc = _without_tags(value, one["loc"])
        place = loc if one["type"] == "missing" else _place(value, loc)
        if place in seen:  # one error for each alternative type
            continue
        seen.add(place)
        where = ".".join(str(part) for part in place)
        if one["type"] == "extra_forbidden":
            known = _keys_at(schema, place[:-1])
            near = difflib.get_close_matches(str(place[-1]), known, n=1)
            seen.update((*place[:-1], key) for key in near)
            hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
            yield f"unknown key {where!r}; {hint}"
        elif one["type"] == "missing":
            yield f"the key {where!r} is missing"
        else:
            yield _misfit(one, where)


def _without_tags(value: Any, loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return an error's place without the names of the alternatives that pydantic puts before the keys of a section."""
    found: list[int | str] = []
    for part in loc[:-1]:
        there = part in value if isinstance(value, dict) else isinstance(value, list | tuple) and isinstance(part, int)
        if there:
            found.append(part)
            value = value[part]
        elif not isinstance(value, dict):  # only a section has keys behind its name
            return loc
    return (*found, *loc[-1:])


def _place(value: Any, loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return the part of an error's place that is in the value; behind it stands which alternative type did not fit."""
    for number, part in enumerate(loc):
        there = part in value if isinstance(value, dict) else isinstance(value, list | tuple) and isinstance(part, int)
        if not there:
            return loc[:number]
        value = value[part]
    return loc


def _misfit(error: Mapping[str, Any], where: str) -> str:
    reason = error["msg"].removeprefix("Value error, ")
    if error["type"] == "string_pattern_mismatch" and error["ctx"]["pattern"] == f"^{NAME}$" and "key" not in where:
        return f"{where}: {shown(error['input'])} cannot be a name: {name_rule(error['input'])}"
    expected = f"{reason[0].lower()}{reason[1:]}".replace("valid tuple", "list, as in [one, two]")
    # never show an API key pasted in place of the name of its variable
    found = NOT_SHOWN if "key" in where else shown(error["input"])
    # pydantic quotes the allowed values of an enumeration or literal
    given = error["input"]
    near = difflib.get_close_matches(
        str(given) if isinstance(given, str | int | float) else "",
        re.findall(r"'([^']+)'", str(error.get("ctx", {}).get("expected", ""))),
        n=1,
    )
    hint = f"; did you mean {near[0]!r}?" if near else ""
    hint = "; put it in quotation marks: YAML reads it as true or false" if isinstance(given, bool) and "string" in reason else hint
    # a rule about a whole section names its key itself: the section may be a page long
    whole = error["type"] == "value_error" and isinstance(given, dict)
    return f"{f'{where}: ' if where else ''}{expected}{'' if whole else f', found {found}{hint}'}"


def _keys_at(schema: type[BaseModel], place: tuple[int | str, ...]) -> list[str]:
    # follow the path of the error through nested sections, optional ones included
    for part in place:
        field = schema.model_fields.get(str(part))
        schema = (section_in(field.annotation) if field else None) or schema
    return sorted(schema.model_fields)


def section_in(hint: Any) -> type[BaseModel] | None:
    """Return the class of the section in a type: the type itself, or inside `X | None`, `tuple[X, ...]`, `dict[str, X]` and the like."""
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return hint
    parts = (part for part in get_args(hint) if get_origin(part) is not dict)  # a section below two names has no key of its own
    return next((found for part in parts if (found := section_in(part))), None)


def nearest(word: str, known: Sequence[str]) -> str:
    """Suggest the known word that was probably meant, or list all; the end of an error message."""
    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there are: {', '.join(known)}" if known else ""


def _nearest_file(path: Path) -> str:
    names = sorted(entry.stem for entry in path.parent.glob(f"*{path.suffix}")) if path.parent.is_dir() else []
    return nearest(path.stem, names)


def wildcard(name: str) -> str:
    """Return a name that is used as a wildcard; ConfigError if it is not valid."""
    if not re.fullmatch(NAME, name):
        message = f"{name!r} cannot be a name: {name_rule(name)}"
        raise ConfigError(message)
    return name


def load_pipeline(value: Any, files: Sequence[str] = ("config",)) -> PipelineConfig:
    """Check the merged configuration that Snakemake read; mistakes name its files."""
    return check(PipelineConfig, value, " with ".join(files))


def readable_part(value: Any) -> PipelineConfig:
    """Return what can be read of a wrong configuration, so that the mistakes in the files that it names are found too; the rest has its defaults."""
    entries = dict(value) if isinstance(value, dict) else {}
    for name in RUN_LISTS & entries.keys():
        given = entries[name] if isinstance(entries[name], list) else ()
        entries[name] = [one for one in given if isinstance(one, str) and re.fullmatch(NAME, one)]
    found: dict[str, Any] = {"benchmarks": (), "models": ()}
    for name in PipelineConfig.model_fields.keys() & entries.keys():
        with suppress(ValidationError):
            found[name] = getattr(PipelineConfig.model_validate({"benchmarks": ["x"], "models": ["x"], name: entries[name]}), name)
    return PipelineConfig.model_construct(**found)


def load_benchmark(folder: Path, benchmark: str) -> BenchmarkConfig:
    """Read `<folder>/benchmarks/<benchmark>.yaml`; ConfigError as in `read_yaml` and `check`."""
    return _load(BenchmarkConfig, folder / "benchmarks" / f"{benchmark}.yaml")


def load_model(path: Path) -> ModelConfig:
    """Read one model's YAML and name the model after the file; ConfigError as in `read_yaml` and `check`."""
    return _load(ModelConfig, path).named(path.stem)


def load_informant(folder: Path, benchmark: str) -> ModelConfig | None:
    """Read the model that tells the facts of a benchmark under the strategy `ask`; None if words decide.

    Raises
    ------
    ConfigError
        As in `read_yaml` and `check`; also if it is no model that can be asked to read.
    """
    name = load_benchmark(folder, benchmark).informant
    if name is None:
        return None
    model = load_model(folder / "models" / f"{name}.yaml")
    if model.backend in ("builtin", "imported"):
        message = f"{benchmark}: informant {name}: a model of `backend: {model.backend}` cannot look for facts; name one that is asked (litellm, server)"
        raise ConfigError(message)
    return model


def load_model_for(folder: Path, benchmark: str, model: str) -> ModelConfig:
    """Read one model's YAML with the seed for a benchmark.

    A model whose answers selected the items gets different seeds: with the same ones, a deterministic backend would repeat exactly the
    answers used for the selection. Models without a seed sample anew, and at temperature 0 nothing is sampled.

    Parameters
    ----------
    folder : Path
        Folder of the configuration.
    benchmark, model : str
        Their names.

    Returns
    -------
    ModelConfig
        The configuration; a model in the benchmark's `reference_pool` has a seed of this benchmark.

    Raises
    ------
    ConfigError
        As in `read_yaml` and `check`.
    """
    config = load_model(folder / "models" / f"{model}.yaml")
    if config.seed is None or model not in load_benchmark(folder, benchmark).reference_pool:
        return config
    # place 0 would give the seeds of the selection
    place = 1 + int(hashlib.sha256(benchmark.encode()).hexdigest(), 16) % SEED_PLACES
    return config.model_copy(update={"seed": config.seed + place * SEED_STRIDE})


def load_grader(path: Path) -> GraderConfig:
    """Read one grader's YAML with the file of its model, which gets the name of the grader; ConfigError as in `read_yaml` and `check`."""
    entries = read_yaml(path)
    name = entries.get("model")
    # earlier files have the keys of the model within
    if isinstance(name, str):
        model = load_model(path.parents[1] / "models" / f"{name}.yaml")
        return check(GraderConfig, entries | {"model": model}, path.as_posix()).asking(model.named(path.stem), name)
    config = check(GraderConfig, entries, path.as_posix())
    return config.asking(config.model.named(path.stem), "") if config.model else config


def load_published(path: Path) -> PublishedConfig:
    """Read the published numbers of a paper; ConfigError as in `read_yaml` and `check`."""
    return _load(PublishedConfig, path)


def load_readiness(path: Path) -> ReadinessConfig:
    """Read a site's conditions on a model; ConfigError as in `read_yaml` and `check`."""
    return _load(ReadinessConfig, path)


def load_checklists(folder: Path) -> list[ChecklistConfig]:
    """Read the reporting guidelines of `config/checklists/`, by file name; ConfigError as in `read_yaml` and `check`."""
    return [_load(ChecklistConfig, path) for path in sorted((folder / "checklists").glob("*.yaml"))]


def group_limit(model: ModelConfig, limits: Mapping[str, RateLimit]) -> RateLimit:
    """Return the rate limits of a model's group; no limits for a model without a group.

    Raises
    ------
    ConfigError
        If the group is not configured: the limits of a misspelt group would not be enforced.
    """
    group = model.rate_limit_group
    if group is None:
        return RateLimit()
    if group not in limits:
        message = (
            f"{model.name}: its rate_limit_group {group!r} is not in `rate_limits` of the configuration{nearest(group, sorted(limits))}; add"
            f" `rate_limits: {{{group}: {{requests_per_minute: 60}}}}`, or `{group}: {{}}` to share only pauses"
        )
        raise ConfigError(message)
    return limits[group]


def _load(schema: type[C], path: Path) -> C:
    return check(schema, read_yaml(path), path.as_posix())
