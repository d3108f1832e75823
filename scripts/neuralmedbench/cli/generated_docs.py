"""Generated files: schemas and the table of settings from `config`, columns of the tables, and the list of arms."""

from __future__ import annotations

import inspect
import json
import re
import types
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from neuralmedbench.cards.card import CardConfig, CardForm
from neuralmedbench.config.arms import ArmConfig
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.checklists import ChecklistConfig
from neuralmedbench.config.layouts import LayoutConfig
from neuralmedbench.config.load import check, read_yaml, section_in
from neuralmedbench.config.mappings import CurationConfig, MappingConfig
from neuralmedbench.config.model import GraderConfig, ModelConfig
from neuralmedbench.config.pipeline import PipelineConfig
from neuralmedbench.config.published import PublishedConfig
from neuralmedbench.config.readiness import ReadinessConfig
from neuralmedbench.files.tables import arrow_schema
from neuralmedbench.tables.frames import RECORDS, dtype_of, record_dtypes
from neuralmedbench.tables.rows import SHAPES
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
    pages = {"docs/configuration.md": _table(), "docs/results.md": _results(), "docs/arms.md": _arms()}
    return {**schemas, **columns, **pages}


ARMS_HEADING = "## Arms with a file"


def _arms() -> str:
    # what precedes the arms is written by hand
    lines = [Path("docs/arms.md").read_text(encoding="utf-8").partition(ARMS_HEADING)[0] + ARMS_HEADING, ""]
    lines += ["| arm | tests | shows |", "| --- | --- | --- |"]
    for path in sorted(Path("config/arms").glob("*.yaml")):
        config = check(ArmConfig, read_yaml(path), path.as_posix())
        name = "-".join((path.stem, *(f"<{key}>" for key in config.parameters)))
        values = [f"{key}: {', '.join(allowed)}" for key, allowed in config.parameters.items() if allowed]
        lines.append(f"| `{name}` | {config.group} | {' '.join([config.description, *(f'({value})' for value in values)])} |")
    return "\n".join([*lines, ""])


RESULT_FILES = {
    "report.html": ("build_report", "the page; computes nothing"),
    "provenance.json": ("record_provenance", "commit, digests of all inputs, versions, served models, seeds"),
    "metrics.json": ("build_tables", "the main rates by benchmark and model, for `dvc metrics`; `pass1_patients` ranks"),
    "tables/<table>.csv": ("build_tables", "[every number](#tables) with n and interval; UTF-8, six decimals, empty = not available"),
    "tables/verdict.json": ("build_tables", "badges and sentences of the first screen"),
    "tables/notes.json": ("build_tables", "sentence and `n` line above each block of the page"),
    "tables/paper/<paper>.csv": ("compare_published", "published cells with ours below (also `.md`, `.tex`); [Reproduce](reproduce.md)"),
    "figures/<figure>.svg": ("draw_figures", "the figures, drawn from the tables alone"),
    "responses/<benchmark>/<model>.parquet": ("run_inference", "[answers](#responses)"),
    "grades/<benchmark>/<model>/<grader>.parquet": (
        "grade_responses",
        "[grades](#grades) of a grader, or of a jury (`decide_jury`); `planted` in place of a model: answers with planted errors",
    ),
    "similarity/<benchmark>.parquet": ("embed_similarity", "[similarity to the reference](#similarity), descriptive"),
    "scores/<benchmark>/<model>.parquet": ("score_responses", "[scores](#scores), from which all tables are made"),
    "planted/<benchmark>.parquet": ("plant_errors", "[answers with planted errors](#planted), which test the graders"),
    "ratings/ratings.parquet": ("import_ratings", "[clinicians' values](#ratings)"),
    "cases/<benchmark>.parquet": ("bundle_cases", "[the case browser's content](#cases)"),
    "exports/": (
        "export_results",
        "the numbers that may travel, in other tools' forms ([Hand the numbers on](reproduce.md#hand-the-numbers-on))",
    ),
    "croissant/<benchmark>.json": ("describe_benchmark", "description of a public benchmark ([Cards](cards/README.md))"),
}
"""Files of results by path, with the rule that writes each and its content."""


FILES_HEADING = "## Files"


def _results() -> str:
    # what precedes the files is written by hand
    lines = [Path("docs/results.md").read_text(encoding="utf-8").partition(FILES_HEADING)[0] + FILES_HEADING, ""]
    lines += [
        "| file | rule | content |",
        "| --- | --- | --- |",
        *(f"| `{path}` | `{rule}` | {content} |" for path, (rule, content) in RESULT_FILES.items()),
    ]
    lines += ["", "## Records", "", "One row per record, in Parquet with zstd; the schema stands in the file.", ""]
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
    lines += ["## Topics", "", "Rows of `measures.csv`, `contrasts.csv` and `counts.csv` by the columns `topic` and `measure`.", ""]
    for table in TABLES:
        if table.is_topic:
            lines += [f"### Topic `{table.name}`", "", _first_paragraph(table.rows), ""]
            lines += [f"- `{measure.name}` ({measure.title}): {measure.text}" for measure in table.measures]
            lines.append("")
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
    rows = []
    for name, field in schema.model_fields.items():
        section = section_in(field.annotation)
        default = "" if section and _default(field) != "null" else _default(field)
        rows.append(f"| `{prefix}{field.alias or name}` | {_type_name(field.annotation)} | {default} | {field.description} |")
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


def _type_name(hint: Any) -> str:
    if get_origin(hint) is Annotated and section_in(hint):
        hint = get_args(hint)[0]
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
