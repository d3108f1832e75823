"""Generated files: schemas and the table of settings, from the classes of `config`, and the columns of the tables, from `tables`."""

from __future__ import annotations

import json
import types
from enum import StrEnum
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from neuralmedbench.cards.card import CardConfig, CardForm
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.checklists import ChecklistConfig
from neuralmedbench.config.curation import CurationConfig
from neuralmedbench.config.mappings import MappingConfig
from neuralmedbench.config.model import GraderConfig, ModelConfig
from neuralmedbench.config.pipeline import PipelineConfig
from neuralmedbench.config.published import PublishedConfig
from neuralmedbench.config.readiness import ReadinessConfig
from neuralmedbench.tables.all_tables import result_columns

FILES: dict[str, type[BaseModel]] = {
    "config": PipelineConfig,
    "benchmark": BenchmarkConfig,
    "model": ModelConfig,
    "grader": GraderConfig,
    "mapping": MappingConfig,
    "curation": CurationConfig,
    "published": PublishedConfig,
    "readiness": ReadinessConfig,
    "checklist": ChecklistConfig,
    "card-form": CardForm,
    "card": CardConfig,
}


def generated_files() -> dict[str, str]:
    """Return the text of every generated file, by path relative to the repository root."""
    schemas = {
        f"config/schemas/{name}.schema.json": json.dumps(schema.model_json_schema(), indent=1, sort_keys=True) + "\n"
        for name, schema in FILES.items()
    }
    columns = {"scripts/neuralmedbench/records/result_columns.py": result_columns()}
    return {**schemas, **columns, "docs/configuration.md": _table()}


def _table() -> str:
    lines = [
        "# Configuration",
        "",
        "Generated from `models.py`, `mappings.py` and `curation.py` in `scripts/neuralmedbench/config/` by `make docs`; do not edit by hand.",
        "",
    ]
    for schema in FILES.values():
        lines += [f"## {(schema.__doc__ or '').splitlines()[0]}", "", "| key | type | default | meaning |", "| --- | --- | --- | --- |"]
        lines += _rows(schema, "")
        lines.append("")
    return "\n".join(lines)


def _rows(schema: type[BaseModel], prefix: str) -> list[str]:
    rows = []
    for name, field in schema.model_fields.items():
        section = _section(field.annotation)
        default = "" if section and _default(field) != "null" else _default(field)
        rows.append(f"| `{prefix}{field.alias or name}` | {_type_name(field.annotation)} | {default} | {field.description} |")
        if section:
            # nested sections follow their key, with dotted names
            rows += _rows(section, f"{prefix}{name}.<name>." if get_origin(field.annotation) is dict else f"{prefix}{name}.")
    return rows


def _section(hint: Any) -> type[BaseModel] | None:
    # the section class itself, or inside `X | None`, `tuple[X, ...]` or `dict[str, X]`
    candidates = (hint, *get_args(hint))
    return next((entry for entry in candidates if isinstance(entry, type) and issubclass(entry, BaseModel)), None)


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return ""
    if field.default is PydanticUndefined:
        return "required"
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    return f"`{json.dumps(value)}`" if value is not None else "null"


def _type_name(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_name(argument) for argument in arguments if argument is not type(None))
    if origin in (tuple, dict):
        return f"list of {_type_name(arguments[0])}" if origin is tuple else f"{_type_name(arguments[1])} by name"
    if arguments:
        return " or ".join(f"`{argument}`" for argument in arguments) if origin is not None and str(origin).endswith("Literal") else "text"
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return " or ".join(f"`{member}`" for member in hint)
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return "section"
    return {"str": "text", "int": "integer", "float": "number", "bool": "true or false"}.get(getattr(hint, "__name__", ""), "text")
