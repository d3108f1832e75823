"""Generated files: schemas and the table of settings from `config`, columns of the tables, and the pages of cards and guidelines."""

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

from neuralmedbench.cards.card import CardConfig, CardForm, read_card
from neuralmedbench.config.arms import ArmConfig
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.checklists import ANSWER_WORDS, AnswerSheet, ChecklistConfig
from neuralmedbench.config.layouts import LayoutConfig
from neuralmedbench.config.load import check, load_benchmark, load_checklists, read_yaml, section_in
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
    written = {path.as_posix(): path.read_text(encoding="utf-8") for path in sorted(Path("docs").glob("*.md"))}
    made = {"docs/configuration.md": _table(), "docs/results.md": _results(), "docs/arms.md": _arms(), "docs/layouts.md": _layouts()}
    pages = {path: with_contents(text) for path, text in (written | made).items() if path in made or CONTENTS.search(text)}
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


LAYOUTS_HEADING = "## Layouts and their sources"


def _layouts() -> str:
    # what precedes the layouts is written by hand
    lines = [Path("docs/layouts.md").read_text(encoding="utf-8").partition(LAYOUTS_HEADING)[0] + LAYOUTS_HEADING, ""]
    for path in sorted(Path("config/layouts").glob("*.yaml")):
        config = check(LayoutConfig, read_yaml(path), path.as_posix())
        lines += [f"### `{path.stem}`: {config.title}", "", "| key | value | source |", "| --- | --- | --- |"]
        for key, part in ((key, part) for key, part in config if isinstance(part, BaseModel)):
            values = part.model_dump(mode="json", exclude={"source"})
            words = {name: ", ".join(value) if isinstance(value, list) else str(value) for name, value in values.items()}
            shown = "; ".join(f"{name} {word}" if len(words) > 1 else word for name, word in words.items())
            lines.append(f"| `{key}` | {shown} | {part.model_dump()['source'].strip()} |")
        lines.append("")
    return "\n".join(lines)


RESULT_FILES = {
    "report.html": ("build_report", "the page; computes nothing"),
    "provenance.json": ("record_provenance", "commit, digests of all inputs, versions, served models, seeds"),
    "metrics.json": ("build_tables", "the main rates by benchmark and model, for `dvc metrics`; `pass1_patients` ranks"),
    "tables/<table>.csv": ("build_tables", "[every number](#tables) with n and interval; UTF-8, six decimals, empty = not available"),
    "tables/verdict.json": ("build_tables", "badges and sentences of the first screen"),
    "tables/notes.json": ("build_tables", "sentence and `n` line above each block of the page, and the definitions of measures"),
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


CONTENTS = re.compile(r'(<div class="contents" markdown>\n\n).*?(</div>)', re.DOTALL)
"""List of the headings of a page; the site hides it, because it has one at the side."""
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def with_contents(page: str) -> str:
    """Write the headings of a page into its contents, as links to the anchors that git hosts and the site generate."""
    lines = []
    for marks, heading in re.findall(r"^(##+) (.+)$", FENCED.sub("", page), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading).lower()).replace(" ", "-")
        lines.append(f"{'  ' * (len(marks) - 2)}- [{heading}](#{anchor})\n")
    return CONTENTS.sub(lambda found: f"{found[1]}{''.join(lines)}\n{found[2]}", page)


def _table() -> str:
    lines = [
        "# Configuration",
        "",
        "Generated from `model.py`, `benchmark.py` and `mappings.py` in `scripts/neuralmedbench/config/` by `make docs`; do not edit by hand.",
        "",
        '<div class="contents" markdown>\n\n</div>',
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


NOTICE = "Generated from `{source}` by `make docs`; do not edit by hand. What is asked stands in words of our own. `#block.element` is a part of `results/report.html`; where it is absent or empty in a run, `yes` and `partly` turn to `no` there."
INDEX = """# Cards and reporting guidelines

Generated by `make docs`; do not edit by hand.

Every question is answered `yes`, `partly`, `no` or `not applicable`, or left to the study team. Nothing is invented: a question that no card answers is left to the study team. The report shows the same under "Cards" and "Reporting guidelines".

**An answer holds only where the page has it.** `yes` and `partly` of a guideline name the elements of the page that give the answer (`where: "#leaderboard.pass1 #methods.statements"`). When the page is made, an answer of which one element is absent, empty, only dashes or hidden turns to `no`, with the reason; `yes` turns to `partly` where an element has content for some benchmarks of the run and not for others. Labels and agreement of simulated raters are no content. So the answers below are the most that a run can claim, and the page shows what this run does. A card may answer in words; if it names an element too, the same holds for its benchmark. `#block` alone is a link. An element that no page has is refused: elements are the `data-element` of the templates in `scripts/neuralmedbench/report/templates/blocks/`, and `data-benchmark` around one says of which benchmark it is.

## A card for your benchmark

Write `config/cards/<benchmark>.yaml`; without one all questions are left to you, but for those that the benchmark's own yaml answers (axis, arms, whose data, de-identification, destinations). `like: <other>` takes the answers of another card, and what you write goes before them.

```yaml
answers:
  benchmark-card:
    intended: {answer: "yes", text: Second reading of head CT at our site.}
    approval: {answer: "yes", text: "Ethics committee of the site; consent was waived."}
  datasheet:
    funding: {answer: "no", text: No funds were given for it.}
croissant:
  license: https://spdx.org/licenses/CC-BY-4.0.html
  creators: [{name: Department of Neurology, kind: organization}]
```

The questions stand in `config/cards/forms/`, the keys in `docs/configuration.md`. Write no name, no value of a patient and no right answer: the texts go into the report, and some into the file below.

## Croissant

For every benchmark that is not private a run writes `results/croissant/<benchmark>.json`: [Croissant 1.1](http://mlcommons.org/croissant/1.1) with the properties of its responsible-AI vocabulary (`rai:`, version 1.0). It names the table of the questions with its SHA-256, every column, and the pictures. Right answers are not in it. Paths count from the project's folder; put the file there when you publish, or set `croissant.files_url`. What nobody stated is left out, and the log says which required properties are then missing (`url`, `license`, `creator`, `datePublished`). Of a private benchmark nothing is written.
"""


def card_pages(folder: Path) -> dict[str, str]:
    """Render every page, by path relative to the repository.

    Parameters
    ----------
    folder : Path
        Folder of the configuration.

    Returns
    -------
    dict of str to str
        Markdown text by path.

    Raises
    ------
    ConfigError
        If a card, a form or a guideline is invalid.
    """
    pages, lines = {}, [INDEX, "## Cards that are here", "", "| benchmark | form | answers |", "| --- | --- | --- |"]
    for name in sorted(path.stem for path in (folder / "cards").glob("*.yaml")):
        forms = read_card(folder, name).forms
        title = load_benchmark(folder, name).title if (folder / "benchmarks" / f"{name}.yaml").is_file() else name
        source = f"config/cards/{name}.yaml"
        pages[f"docs/cards/{name}.md"] = _page(title, source, forms, level=2)
        lines += [f"| [{title}]({name}.md) | {form.title} | {_answer_counts(form)} |" for form in forms]
    lines += ["", "## Reporting guidelines", "", "| guideline | answers | not here |", "| --- | --- | --- |"]
    # both lists are sorted by file name
    for path, checklist in zip(sorted((folder / "checklists").glob("*.yaml")), load_checklists(folder), strict=True):
        pages[f"docs/cards/{path.stem}.md"] = _page(checklist.title, f"config/checklists/{path.name}", [checklist], level=1)
        lines.append(f"| [{checklist.title}]({path.stem}.md) | {_answer_counts(checklist)} | {checklist.missing} |")
    return pages | {"docs/cards/README.md": "\n".join([*lines, ""])}


def _page(title: str, source: str, forms: list[AnswerSheet], *, level: int) -> str:
    lines = [f"# {title}", "", NOTICE.format(source=source), ""]
    for form in forms:
        lines += [f"{'#' * level} {form.title}", ""] if level > 1 else []
        lines += [
            f"{_answer_counts(form).capitalize()}.",
            "",
            f"{form.source}{' ' * bool(form.missing)}{form.missing}",
        ]
        # one table per part
        for part, items in form.parts.items():
            lines += ["", *([f"{'#' * (level + 1)} {part}", ""] if part else [])]
            lines += ["| item | what it asks | answer | where, and what else there is to say |", "| --- | --- | --- | --- |"]
            for item in items:
                remarks = [", ".join(f"`{place}`" for place in item.where.split())] if item.where else []
                remarks += [item.note] if item.note else []
                lines.append(f"| {item.id} | {item.about} | {ANSWER_WORDS[item.answer]} | {': '.join(remarks)} |")
        lines.append("")
    return "\n".join(lines)


def _answer_counts(form: AnswerSheet) -> str:
    return ", ".join(f"{n} {answer}" for answer, n in form.counts.items())
