"""Declarations of tables: columns that figures, page and records can rely on, cells of the declared types, one takeaway per block."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
from jinja2 import Environment, nodes

from conftest import ROOT
from fixtures.reference import WRITTEN, read_rows
from fixtures.tables import BREADTH, DEPTH, GRADERS, write_study
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.figures.gallery import FIGURES
from neuralmedbench.figures.table import FEWEST
from neuralmedbench.records.result_columns import TABLES as SCHEMA
from neuralmedbench.records.result_columns import TOPICS
from neuralmedbench.records.results import types_of_table
from neuralmedbench.tables.declare import KINDS, SHAPES, Results, Table, types_of
from neuralmedbench.tables.study import read_study
from neuralmedbench.tables.write import TABLES, file_columns

PYTHON_TYPES = {"str": str, "int": int, "float": (int, float), "bool": bool}
TEMPLATES = ROOT / "scripts" / "neuralmedbench" / "report" / "templates"
OF_ROWS = {"selectattr", "rejectattr", "groupby", "mask", "without", "by"}
"""Filters of templates whose first argument is a column."""

ROW_NAMES = {"row", "rows", "part", "own", "first", "best", "last"}
"""Names of rows in figures."""


@cache
def made(root: Path) -> Results:
    write_study(root, models=("alpha", "beta"), patients=6)
    study = read_study(
        root,
        (DEPTH, BREADTH),
        ("alpha", "beta"),
        GRADERS,
        vocabulary=Path("config/vocabulary.yaml"),
        settings=IntervalSettings(resamples=20, seed=1, margin=0.3),
    )
    return Results(study)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return made(tmp_path_factory.mktemp("declared"))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_cells_are_of_the_declared_types(results: Results, table) -> None:  # type: ignore[no-untyped-def]
    for row in results.once(table.rows):
        assert type(row) in (SHAPES.values() if table.is_topic else {table.row})
        optional = {one.name for one in fields(row) if one.type in KINDS}
        for column, kind in types_of(type(row)).items():
            value = row[column]
            fits = isinstance(value, PYTHON_TYPES[kind]) and (kind == "bool" or not isinstance(value, bool))
            assert fits or (value is None and column in optional), (column, value)


def test_a_column_that_a_table_does_not_declare_is_refused() -> None:
    for table in TABLES:
        with pytest.raises(TypeError, match="unexpected keyword"):
            table.row(**dict.fromkeys(types_of(table.row)), misspelt=1)


def test_every_table_and_every_class_of_rows_is_declared_once() -> None:
    own = [table.row for table in TABLES if not table.is_topic]
    assert len(set(own)) == len(own)
    assert len({table.name for table in TABLES}) == len(TABLES)
    assert list(SCHEMA) == list(file_columns())
    assert list(TOPICS) == [table.name for table in TABLES if table.is_topic]


TOPIC_TABLES = [table for table in TABLES if table.is_topic]
UNITS = {"share", "points", "number", "count", "dollars"}


@pytest.mark.parametrize("topic", TOPIC_TABLES, ids=lambda table: table.name)
def test_every_number_of_a_topic_has_one_definition(results: Results, topic: Table) -> None:
    names = [measure.name for measure in topic.measures]
    assert len(set(names)) == len(names)
    made_here = {row["measure"] for row in results.once(topic.rows)}
    assert numbers_of_references()[topic.name] | made_here <= set(names)


@pytest.mark.parametrize("topic", TOPIC_TABLES, ids=lambda table: table.name)
def test_a_definition_is_one_short_sentence_with_a_short_heading(topic: Table) -> None:
    for measure in topic.measures:
        assert measure.unit in UNITS
        assert len(measure.title.split()) <= 4, measure.title
        assert len(measure.text.split()) <= 25, measure.text
        assert measure.text.endswith(".")
        assert ". " not in measure.text


@pytest.mark.parametrize("topic", TOPIC_TABLES, ids=lambda table: table.name)
def test_a_topic_says_in_one_sentence_what_it_is_about(topic: Table) -> None:
    sentence = (inspect.getdoc(topic.rows) or "").partition("\n\n")[0]
    assert sentence.endswith(".")
    assert ". " not in sentence.replace("\n", " ")


def test_a_table_of_the_page_has_at_most_eight_numbers() -> None:
    # calibration, and the answers without a confidence, are two tables
    tables = {topic.name: 2 if topic.name == "confidence" else 1 for topic in TOPIC_TABLES}
    crowded = {topic.name: sum(measure.main for measure in topic.measures) for topic in TOPIC_TABLES}
    assert {name: number for name, number in crowded.items() if not 1 <= number <= 8 * tables[name]} == {}


@cache
def numbers_of_references() -> dict[str, set[str]]:
    """Return the measures by topic that the reference runs wrote."""
    numbers: dict[str, set[str]] = defaultdict(set)
    for path in WRITTEN.glob("*.csv.xz"):
        for row in read_rows(path):
            cells = dict(part.split("=", 1) for part in row.slice.split("; ") if "=" in part)
            if "topic" in cells:
                numbers[cells["topic"]].add(cells["measure"])
    return numbers


def columns_of(tables: set[str]) -> set[str]:
    return {column for table in tables for column in types_of_table(table)}


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.j2")), ids=lambda path: path.name)
def test_a_template_reads_columns_that_its_tables_have(path: Path) -> None:
    unknown: list[str] = []
    _walk(Environment(extensions=["jinja2.ext.do"]).parse(path.read_text(encoding="utf-8")), {}, unknown)
    assert unknown == []


def _tables_in(node: nodes.Node, bound: dict[str, set[str]]) -> set[str]:
    """Return the tables whose rows an expression yields."""
    found = set[str]()
    for one in [node, *node.find_all(nodes.Getattr)]:
        if isinstance(one, nodes.Getattr) and isinstance(one.node, nodes.Name) and one.node.name == "tables":
            found.add(one.attr)
    for name in [node, *node.find_all(nodes.Name)]:
        if isinstance(name, nodes.Name):
            found |= bound.get(name.name, set())
    return found


def _walk(node: nodes.Node, bound: dict[str, set[str]], unknown: list[str]) -> None:
    if isinstance(node, nodes.For | nodes.Assign):
        source = node.iter if isinstance(node, nodes.For) else node.node
        tables = _tables_in(source, bound) if _is_rows(source) else set()
        names = [node.target, *node.target.find_all(nodes.Name)]
        bound |= {name.name: tables for name in names if isinstance(name, nodes.Name)}
    if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name) and node.node.name == "tables":
        unknown += [node.attr] if node.attr not in (*SCHEMA, *TOPICS) else []
    read = None
    if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name):
        read = node.node, node.attr
    elif isinstance(node, nodes.Getitem) and isinstance(node.node, nodes.Name) and isinstance(node.arg, nodes.Const):
        read = node.node, node.arg.value
    elif isinstance(node, nodes.Filter) and node.name in OF_ROWS and isinstance(node.args[0], nodes.Const):
        read = node.node, node.args[0].value
    if read is not None and isinstance(read[1], str):
        tables = _tables_in(read[0], bound)
        unknown += [read[1]] if tables and read[1] not in columns_of(tables) else []
    for child in node.iter_child_nodes():
        _walk(child, bound, unknown)


def _is_rows(node: nodes.Node) -> bool:
    """Return True if an expression yields rows of a table, not values computed from them."""
    while isinstance(node, nodes.Filter) and node.name in OF_ROWS | {"list", "first", "last", "sort"} and node.node is not None:
        node = node.node
    return isinstance(node, nodes.Name) or (
        isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name) and node.node.name == "tables"
    )


def test_a_figure_reads_columns_that_its_tables_have() -> None:
    modules: dict[str, set[str]] = {}
    for figure in FIGURES.values():
        assert figure.table in (*SCHEMA, *TOPICS)
        for function in (figure.draw, figure.sentence):
            modules.setdefault(function.__module__, set()).add(figure.table)
    assert len(modules) == 2
    for module, tables in modules.items():
        tree = ast.parse(Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8"))
        read = {
            str(node.slice.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
            and any(isinstance(one, ast.Name) and one.id in ROW_NAMES for one in ast.walk(node.value))
        }
        added = {key.value for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys if isinstance(key, ast.Constant)}
        known = columns_of(tables)
        assert read <= known | {FEWEST} | added, (module, read - known)
