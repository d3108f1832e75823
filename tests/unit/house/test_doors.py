"""Public interfaces: each room's `__init__` lists its doors, the names that other rooms may use, and they use nothing else."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from conftest import ROOT
from neuralmedbench.config.code_hash import import_statements

LIBRARY = ROOT / "scripts" / "neuralmedbench"
ROOMS = sorted(path.parent.name for path in LIBRARY.glob("*/__init__.py"))

Doors = dict[str, set[str]]
"""Names by module, relative to the room: `estimates.intervals` of `tables` is `intervals` of the room `estimates`."""


def doors_in(docstring: str) -> Doors:
    """Read the section `Doors` of a docstring: one line `module.path: name, name` per module."""
    _, _, section = docstring.partition("\nDoors\n-----\n")
    found: Doors = {}
    for line in section.splitlines():
        entry = re.fullmatch(r"([a-z_0-9.]+): (\w+(?:, \w+)*)", line)
        if not entry:
            break
        assert entry[1] not in found, f"{entry[1]} is listed twice"
        found[entry[1]] = set(entry[2].split(", "))
    return found


@cache
def doors_of(room: str) -> Doors:
    """Return the doors that a room lists."""
    return doors_in(ast.get_docstring(ast.parse((LIBRARY / room / "__init__.py").read_text(encoding="utf-8"))) or "")


def module_file(dotted: str) -> Path | None:
    """Return the file of `neuralmedbench.room.module`; None if it is not a module."""
    base = LIBRARY.joinpath(*dotted.split(".")[1:])
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def uses_in(text: str) -> set[tuple[str, str, str]]:
    """Return what Python source imports from the rooms: (room, module, name)."""
    found, modules = set[tuple[str, str, str]](), dict[str, str]()
    for node in import_statements(text):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names if alias.name.startswith("neuralmedbench.")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("neuralmedbench") and node.level == 0:
            for alias in node.names:
                dotted = f"{node.module}.{alias.name}"
                if module_file(dotted) and dotted.count(".") > 1:
                    modules[alias.asname or alias.name] = dotted
                elif str(node.module).count(".") > 1:
                    found.add(_use(str(node.module), alias.name))
    # names looked up in a module that was imported as a whole
    for node in ast.walk(ast.parse(text)) if modules else ():
        if isinstance(node, ast.Attribute) and (owner := ast.unparse(node.value)) in modules:
            found.add(_use(modules[owner], node.attr))
    return found


def _use(dotted: str, name: str) -> tuple[str, str, str]:
    _, room, *module = dotted.split(".")
    return room, ".".join(module), name


def _python_of(path: Path) -> str:
    """Return the lines of a rule file that import from the library, or a whole Python file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text
    lines = re.findall(r"^from neuralmedbench\S* import .+$", text, flags=re.MULTILINE)
    aliases = [name for line in lines for name in re.findall(r"(?:import|,) (?:\w+ as )?(\w+)", line)]
    return "\n".join([*lines, *{f"{name}.{attribute}" for name in aliases for attribute in re.findall(rf"\b{name}\.(\w+)", text)}])


@cache
def uses_from_outside() -> dict[tuple[str, str, str], list[str]]:
    """Return the uses of each room from outside: by other rooms, commands, rules, functions of data sets and the notebook for people."""
    found = defaultdict(list)
    rules = [ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")]
    functions = (ROOT / "config" / "mappings").glob("*.py")
    for path in sorted([*LIBRARY.rglob("*.py"), *(ROOT / "scripts").glob("*.py"), *functions, *rules]):
        own = path.relative_to(LIBRARY).parts[0] if path.is_relative_to(LIBRARY) else ""
        for use in uses_in(_python_of(path)):
            if use[0] != own:
                found[use].append(path.relative_to(ROOT).as_posix())
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for use in uses_in("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")):
            found[use].append(path.relative_to(ROOT).as_posix())
    return found


def names_in(path: Path) -> set[str]:
    """Return the names that a module defines, without imported ones."""
    found = set[str]()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


def test_every_room_lists_its_doors() -> None:
    assert [room for room in ROOMS if not doors_of(room)] == []


@pytest.mark.parametrize("room", [room for room in ROOMS if doors_of(room)])
def test_other_rooms_commands_and_rules_use_a_room_through_its_doors(room: str) -> None:
    doors = doors_of(room)
    wrong = [
        f"{', '.join(users)}: {room}.{module}.{name} is no door"
        for (other, module, name), users in sorted(uses_from_outside().items())
        if other == room and name not in doors.get(module, ())
    ]
    assert wrong == []


@pytest.mark.parametrize("room", [room for room in ROOMS if doors_of(room)])
def test_every_door_is_there_and_is_used(room: str) -> None:
    used = {(module, name) for other, module, name in uses_from_outside() if other == room}
    wrong = []
    for module, names in doors_of(room).items():
        path = module_file(f"neuralmedbench.{room}.{module}")
        defined = names_in(path) if path else set()
        wrong += [f"{room}.{module}.{name} does not exist" for name in sorted(names - defined)]
        wrong += [f"{room}.{module}.{name} is used by nobody outside" for name in sorted(names & defined) if (module, name) not in used]
    assert wrong == []


def test_a_face_runs_no_code() -> None:
    """The imports of an `__init__` would be reached by every importer of the room."""
    for path in LIBRARY.glob("*/__init__.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        assert len(body) <= 1, path.relative_to(ROOT)


def test_doors_are_read_line_by_line() -> None:
    assert doors_in("A room.\n\nDoors\n-----\na: one, two\nb.c: three\n\nNotes\n-----\nd: four") == {"a": {"one", "two"}, "b.c": {"three"}}


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("from neuralmedbench.files.tables import read_table", {("files", "tables", "read_table")}),
        ("def f():\n    from neuralmedbench.deid.score.files import x", {("deid", "score.files", "x")}),
        ("from neuralmedbench.files import tables\ntables.read_table()", {("files", "tables", "read_table")}),
        ("import neuralmedbench.files.tables as t\nt.read_table()", {("files", "tables", "read_table")}),
        ("from neuralmedbench.errors import DataError\nimport numpy", set()),
    ],
)
def test_uses_are_found_however_they_are_imported(text: str, uses: set[tuple[str, str, str]]) -> None:
    assert uses_in(text) == uses
