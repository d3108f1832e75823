"""Generated files: schemas and the table of settings from `config`, and columns of the tables."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from neuralmedbench.cards.card import CardConfig, CardForm
from neuralmedbench.config.arms import ArmConfig
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.checklists import ChecklistConfig
from neuralmedbench.config.layouts import LayoutConfig
from neuralmedbench.config.load import section_in
from neuralmedbench.config.mappings import CurationConfig, MappingConfig
from neuralmedbench.config.model import GraderConfig, ModelConfig
from neuralmedbench.config.pipeline import PipelineConfig
from neuralmedbench.config.published import PublishedConfig
from neuralmedbench.config.readiness import ReadinessConfig
from neuralmedbench.files.tables import arrow_schema
from neuralmedbench.tables.declare import SHAPES
from neuralmedbench.tables.frames import RECORDS, dtype_of, record_dtypes
from neuralmedbench.tables.write import TABLES, file_columns, result_columns

FILES: dict[str, type[BaseModel]] = {
    "config": PipelineConfig,
    "benchmark": BenchmarkConfig,
    "arm": ArmConfig,
    "layout": LayoutConfig,
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
    columns = {"scripts/neuralmedbench/records/result_columns/columns.json": result_columns()}
    pages = {"docs/configuration.md": _table(), "docs/results.md": _results()}
    return {**schemas, **columns, **pages}


RECORDS_HEADING = "## Records"


def _results() -> str:
    # what precedes the records is written by hand
    lines = [Path("docs/results.md").read_text(encoding="utf-8").partition(RECORDS_HEADING)[0] + RECORDS_HEADING, ""]
    lines += ["One row per record, in Parquet with zstd; the schema stands in the file.", ""]
    for folder, record in RECORDS.items():
        documentation = inspect.getdoc(record) or ""
        lines += [
            f"### {folder}",
            "",
            documentation.partition("\n\n")[0].replace("\n", " "),
            "",
            "| column | type | meaning |",
            "| --- | --- | --- |",
        ]
        meanings, schema = KEYS | _meanings(documentation), arrow_schema(record)
        for name, dtype in record_dtypes(record).items():
            # parts of a record are named, their columns stand with their classes
            kind = re.sub(r"struct<.*>", "record", str(schema.field(name).type)) if dtype == "object" else dtype
            lines.append(f"| `{name}` | {kind} | {meanings.get(name, '')} |")
        lines.append("")
    lines += ["## Tables", "", "One CSV each in `results/tables/`; columns in the order of the file. " + MARKS, ""]
    rows = {table.name: table.row for table in TABLES if not table.is_topic} | SHAPES
    for name, columns in file_columns().items():
        by_type: dict[str, list[str]] = {}
        for column, kind in columns.items():
            by_type.setdefault(dtype_of(column, kind), []).append(f"`{column}`")
        lines += [f"### `{name}.csv`", "", _first_paragraph(rows[name]), ""]
        lines += [*(f"- {kind}: {', '.join(names)}" for kind, names in by_type.items()), ""]
    lines += ["## Topics", "", TOPICS, ""]
    for table in TABLES:
        if table.is_topic:
            lines += [f"### Topic `{table.name}`", "", _first_paragraph(table.rows), ""]
    return "\n".join(lines)


def _first_paragraph(documented: object) -> str:
    return (inspect.getdoc(documented) or "").partition("\n\n")[0].replace("\n", " ")


KEYS = {
    "item_id": "One question about a case.",
    "case_id": "One examination; a pseudonym.",
    "patient_id": "The independent unit of all statistics; a pseudonym.",
    "benchmark": "File in `config/benchmarks/`.",
    "axis": "`depth`, `breadth` or `control`.",
    "family": "What the item asks for.",
    "level": "`direct`, `complex`, `dialogue` or `none`.",
    "runner": "`choice`, `open`, `dialogue` or `structured`.",
    "arm": "What the request leaves out, exchanges or adds; `full` is the main one.",
    "strategy": "How the model is asked; `direct` is the main one.",
    "model": "File in `config/models/`.",
    "revision": "As in the model's file when it was asked.",
    "repeat": "Number of the sample, from 0.",
    "request_id": "SHA-256 of the rendered prompt; equal prompts share it.",
    "text_sha256": "Digest of the text that was judged.",
    "grader": "File in `config/graders/`.",
    "round_id": "Round of ratings.",
}
"""Columns that every record means alike."""

TOPICS = (
    "Rows of `measures.csv`, `contrasts.csv` and `counts.csv` by the column `topic`. "
    "`nmb run columns <topic>` defines its measures; the page does so below each table."
)

MARKS = "Tables of rates over patients end with `few_patients` (their number if there are fewer than five) and `cluster` (what is counted as patients)."


def _meanings(documentation: str) -> dict[str, str]:
    """Return the meaning of every field that the section Attributes of a docstring names."""
    section = documentation.partition("Attributes\n----------\n")[2]
    meanings: dict[str, str] = {}
    for names, text in re.findall(r"^(\S[^:\n]*) : [^\n]*\n((?: +[^\n]*\n?)+)", section, re.MULTILINE):
        meanings |= dict.fromkeys(names.split(", "), re.sub(r":class:`(\w+)`", r"`\1`", " ".join(text.split())).replace("|", "\\|"))
    return meanings


def _table() -> str:
    lines = [
        "# Configuration",
        "",
        "Generated from `model.py`, `benchmark.py` and `mappings.py` in `scripts/neuralmedbench/config/` by `make docs`; do not edit by hand.",
        "",
    ]
    for schema in FILES.values():
        lines += [f"## {(schema.__doc__ or '').splitlines()[0]}", "", "| key | type | default | meaning |", "| --- | --- | --- | --- |"]
        lines += _rows(schema, "")
        lines.append("")
    return "\n".join(lines)


def _rows(schema: type[BaseModel], prefix: str) -> list[str]:
    rows, whole = [], schema.model_json_schema()
    for name, field in schema.model_fields.items():
        kind = _type_name(whole["properties"][field.alias or name], whole.get("$defs", {}))
        section = section_in(field.annotation)
        default = "" if section and _default(field) != "null" else _default(field)
        rows.append(f"| `{prefix}{field.alias or name}` | {kind} | {default} | {field.description} |")
        if section:
            # nested sections follow their key, with dotted names
            rows += _rows(section, f"{prefix}{name}.<name>." if get_origin(field.annotation) is dict else f"{prefix}{name}.")
    return rows


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return ""
    if field.default is PydanticUndefined:
        return "required"
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    return f"`{json.dumps(value)}`" if value is not None else "null"


def _type_name(value: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Describe the type of a key in words, by its part of the JSON schema."""
    if "$ref" in value:
        value = definitions[value["$ref"].rpartition("/")[2]]
    for choice in ("anyOf", "oneOf"):
        if choice in value:
            return " or ".join(_type_name(part, definitions) for part in value[choice] if part.get("type") != "null")
    if labels := value.get("enum") or [value[name] for name in ("const",) if name in value]:
        return " or ".join(f"`{label}`" for label in labels)
    if value.get("type") == "array":
        return f"list of {_type_name(value.get('items') or value['prefixItems'][0], definitions)}"
    # names may have to fit a pattern
    for named in (value.get("additionalProperties"), *value.get("patternProperties", {}).values()):
        if named:
            return f"{_type_name(named, definitions)} by name"
    return TYPES.get(value.get("type", ""), "text")


TYPES = {"integer": "integer", "number": "number", "boolean": "true or false", "object": "section"}
