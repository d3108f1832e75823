"""A digest of the code that a rule runs, because Snakemake tracks only the text of the command."""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

EXEMPT = frozenset(
    {
        "neuralmedbench.errors",
        "neuralmedbench.runtime.commands",
        "neuralmedbench.runtime.job_progress",
        "neuralmedbench.runtime.options",
        "neuralmedbench.scoring.explain_reading",
    }
)
"""Modules that affect messages but no results: editing them reruns nothing."""

STATEMENT = re.compile(r"^[ \t]*(?:import[ ]+[\w., ]+|from[ ]+[\w.]+[ ]+import[ ]+(?:\([^()]*\)|[\w, ]+))(?:#.*)?$", flags=re.MULTILINE)
"""An import that stands alone, on one line or in brackets; also one that only stands in a docstring."""
OTHER_IMPORT = re.compile(r"(?:^|[:;])[ \t]*(?:import\b|from\b[^\n]*\bimport\b)", flags=re.MULTILINE)
"""Where an import may begin that is none of these: on a line of its own, or behind a colon or semicolon."""
ENVIRONMENT_OF_RULE = re.compile(r'^rule (\w+):\n(?:(?!^rule ).*\n)*?\s+conda:\n\s+"\.\./(envs/[\w.-]+)"', flags=re.MULTILINE)


@cache
def code_hash(scripts: Path, command: str) -> str:
    """Return a digest of a command, the library modules that it reaches, their data files and its rule's environment.

    Parameters
    ----------
    scripts : Path
        The folder `scripts/`.
    command : str
        Name of the command without `.py`.

    Returns
    -------
    str
        The first 16 hex digits of a SHA-256.

    Notes
    -----
    Imports inside functions and for type checking count too: a superset is safe, a missed import means stale results.
    Every non-Python file in or below the folder of a reached module counts as its data, except files in subpackages, which belong to those
    alone.
    """
    digest = hashlib.sha256()
    for file in sorted(reached_files(scripts, command) | environment_files(scripts.parent, command)):
        digest.update(_name_in(scripts.parent, file) + b"\0")
        digest.update(_content(file) + b"\0")
    return digest.hexdigest()[:16]


def environment_files(root: Path, command: str) -> set[Path]:
    """Return the environment file of the rule with the command's name; empty for a command without a rule."""
    return {root / environment for rule, environment in _environments(root) if rule == command}


def reached_files(scripts: Path, command: str) -> set[Path]:
    """Return the command and every library file that it reaches."""
    return files_reached_from(scripts, [scripts / f"{command}.py"])


def files_reached_from(scripts: Path, starts: Iterable[Path]) -> set[Path]:
    """Return the given files, inside or outside the library, and every library file that they reach."""
    # follow the imports until no new module is found
    queue, seen = [*starts], set[str]()
    files = set(queue)
    while queue:
        for name in _imports(scripts, queue.pop()):
            if name in seen or name in EXEMPT:
                continue
            seen.add(name)
            module = _locate(scripts, name)
            if module is None:
                continue
            files.add(module)
            queue.append(module)
            # the top folder has no data of its own; its subfolders are rooms
            if module.parent != scripts / "neuralmedbench":
                files.update(_data_files(module.parent))
    return files


@cache
def _environments(root: Path) -> list[tuple[str, str]]:
    """Return each rule with its environment file."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((root / "rules").glob("*.smk"))]
    return [found for text in texts for found in ENVIRONMENT_OF_RULE.findall(text)]


@cache
def _content(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _name_in(root: Path, path: Path) -> bytes:
    return path.relative_to(root).as_posix().encode()


@cache
def _imports(scripts: Path, path: Path) -> tuple[str, ...]:
    """Return the library names that a file imports; relative imports are resolved from its package."""
    package = path.relative_to(scripts).parent.parts if path.is_relative_to(scripts) else ()  # for an `__init__.py`, its own folder
    names: list[str] = []
    for node in import_statements(_content(path).decode()):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            names.append(module)
            names += [f"{module}.{alias.name}" for alias in node.names]
    return tuple(sorted({name for name in names if name.split(".")[0] == "neuralmedbench"}))


def import_statements(text: str) -> list[ast.stmt]:
    """Return the imports of a Python file, also those inside functions.

    Every start of Snakemake waits for this, and parsing whole files takes half a second: statements are picked by pattern, and a file is
    parsed only if an import may begin anywhere else in it, or a line goes on behind a backslash.
    """
    rest = STATEMENT.sub("", text)
    if "\\\n" not in text and not ("import" in rest and OTHER_IMPORT.search(rest)):
        with suppress(SyntaxError):  # words of a docstring that look like an import
            return ast.parse("\n".join(statement.strip() for statement in STATEMENT.findall(text))).body
    found: list[ast.stmt] = []
    queue: list[ast.AST] = [ast.parse(text)]
    while queue:  # statements only: expressions contain no imports
        node = queue.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        for block in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner = getattr(node, block, ())
            queue += inner if isinstance(inner, list) else ()  # a lambda's body is an expression
    return found


@cache
def _locate(scripts: Path, name: str) -> Path | None:
    base = os.path.join(scripts, *name.split("."))  # strings: paths take four times as long
    return next((Path(file) for file in (f"{base}.py", f"{base}/__init__.py") if os.path.isfile(file)), None)


@cache
def _data_files(folder: Path) -> frozenset[Path]:
    found: set[Path] = set()
    for path in folder.iterdir():
        if path.is_file() and path.suffix not in {".py", ".pyc"}:
            found.add(path)
        elif path.is_dir() and path.name != "__pycache__" and not (path / "__init__.py").exists():
            found |= _data_files(path)
    return frozenset(found)
