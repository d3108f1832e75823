"""Structure of the code: layers, thin commands, complete rules."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from conftest import ROOT
from neuralmedbench.cli.main import GROUPS
from neuralmedbench.config.code_hash import import_statements, reached_files

LIBRARY = ROOT / "scripts" / "neuralmedbench"
COMMANDS = sorted((ROOT / "scripts").glob("*.py"))
RULE_FILES = [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]
LEVELS = [
    {"errors", "records", "estimates"},
    {"config", "files", "runtime"},
    {"atlas"},
    {"demo", "ingest", "deid", "imaging", "benchmarks"},
    {"prompts"},
    {"models"},
    {"scoring", "ratings"},
    {"tables"},
    {"figures"},
    {"cards"},
    {"report"},
    {"recording"},
    {"exports"},
    {"cli"},
    {"__main__"},
]
DOORS = {("prompts", "deid"), ("scoring", "models"), ("models", "demo")}
WITHOUT_WORKFLOW = "deid/release"
"""De-identifies a folder of scans outside the workflow: runs ingest and de-identification in sequence, as the rules do."""
STAGES = {"demo", "ingest", "deid", "imaging", "benchmarks", "prompts", "models", "scoring", "ratings"}
HEAVY = {"litellm", "pycld2", "torch", "transformers", "sentence_transformers", "SimpleITK", "nilearn", "sklearn", "matplotlib"}
FRAMES = {"tables/frames.py"}
"""The tables for notebooks: a frame drops, merges and reads in silence, so that it has one door."""
BARE = r"\.(groupby|merge|pivot|pivot_table|read_csv)\("
GROUPING = r"\.item_id\]+(\.(append|add|extend)\(| \+=)|setdefault\([^)]*\.item_id"
GROUPED = {"tables/bundle.py"}
"""Groups responses by item to show their texts; it counts nothing."""
TAG = re.compile(
    r"(?<!\?P)(?<!/)</?(a|article|aside|b|blockquote|body|br|button|code|dd|details|dialog|div|dl|dt|em|fieldset|figcaption|figure|footer|form|h[1-6]|head"
    r"|header|hr|html|img|input|label|legend|li|link|main|mark|meta|nav|noscript|ol|option|p|pre|script|section|select|small|span|strong"
    r"|style|sub|summary|sup|svg|table|tbody|td|template|textarea|tfoot|th|thead|title|tr|u|ul|video)\b(?=[\s/>{]|$)",
    flags=re.IGNORECASE,
)
MARKUP = {
    "exports/archives.py": "the description of a record of Zenodo is HTML",
    "figures/svg.py": "drawings are SVG",
    "models/api/gateway_messages.py": "reads the title of a gateway's page of an error",
    "report/blocks.py": "reads the blocks of the page",
    "report/elements.py": "reads the headings of the page",
    "report/source.py": "sets the width of drawings",
}
"""Modules with markup in their strings that write no page, and what it is for."""
FOR_PEOPLE = {"deidentify_scans", "score_structured"}
"""Commands that no rule calls, each also a verb of `nmb`, as its first line says. All other commands for people are verbs only."""


@cache
def imports(path: Path, *, top_level: bool = False) -> set[str]:
    """Return the modules that a file imports; to parse every file as a whole would take seconds."""
    text = path.read_text(encoding="utf-8")
    nodes = ast.parse(text).body if top_level else import_statements(text)
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def rooms(names: set[str]) -> set[str]:
    """Return the rooms of the library among imported names."""
    return {name.split(".")[1] for name in names if name.startswith("neuralmedbench.")}


def level_of(room: str) -> int:
    """Return the layer of a room."""
    return next(number for number, level in enumerate(LEVELS) if room in level)


def test_layers_point_one_way_and_stages_meet_in_records_and_files_only() -> None:
    wrong = []
    for path in sorted(LIBRARY.rglob("*.py")):
        room = path.relative_to(LIBRARY).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        for other in rooms(imports(path)) - {room}:
            upward = level_of(other) > level_of(room)
            by_hand = other == "ingest" and path.relative_to(LIBRARY).as_posix().startswith(WITHOUT_WORKFLOW)
            sideways = room in STAGES and other in STAGES and (room, other) not in DOORS and not by_hand
            beside = level_of(other) == level_of(room) and not {room, other} <= (LEVELS[0] | LEVELS[1]) and not by_hand
            no_entry = room in {"figures", "report"} and other == "models"
            if upward or sideways or beside or no_entry:
                wrong.append(f"{path.relative_to(ROOT)}: {room} -> {other}")
    assert wrong == []


@pytest.mark.parametrize("room", ["records", "estimates"])
def test_the_ground_floor_imports_nothing_else_of_ours(room: str) -> None:
    for path in (LIBRARY / room).rglob("*.py"):
        assert rooms(imports(path)) <= {room}, path.name


def test_no_module_of_the_library_imports_itself_over_others() -> None:
    """Imports inside functions and for type checking count too."""
    modules = {".".join(path.relative_to(LIBRARY.parent).with_suffix("").parts): path for path in LIBRARY.rglob("*.py")}
    left = {name: imports(path) & modules.keys() - {name} for name, path in modules.items()}
    while free := {name for name, needed in left.items() if not needed}:
        left = {name: needed - free for name, needed in left.items() if name not in free}
    assert sorted(left) == []


def test_no_view_is_taken_of_an_image_that_nothing_holds() -> None:
    """SimpleITK's views do not keep their image alive: such a view crashed on a real scan, and only sometimes."""
    for path in LIBRARY.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "GetArrayViewFromImage" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "GetArrayViewFromImage":
                assert not isinstance(node.args[0], ast.Call), f"{path.name}, line {node.lineno}: use GetArrayFromImage"


def test_the_wing_of_scans_imports_nothing_of_the_evaluation_side() -> None:
    scans = {"errors", "records", "files", "runtime", "config", "atlas", "ingest", "deid", "imaging"}
    for room in ("atlas", "ingest", "deid", "imaging"):
        for path in (LIBRARY / room).rglob("*.py"):
            assert rooms(imports(path)) <= scans, path.relative_to(LIBRARY)


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_is_thin(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert "raise SystemExit(run_command(main))" in text
    names = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert "\nmain = Command(" in text or (path.stem in FOR_PEOPLE and {"parse_args", "main"} <= names)
    assert "add_argument(" not in text, "options are the parameters of a function"
    assert not HEAVY & {name.split(".")[0] for name in imports(path)}


def test_no_command_imports_a_heavy_library_to_print_its_help() -> None:
    code = (
        "import importlib, sys\n"
        "from neuralmedbench.cli.main import GROUPS\n"
        f"commands = [importlib.import_module(name) for name in {[path.stem for path in COMMANDS]!r}]\n"
        "options = [getattr(command.main, 'parse_args', None) or command.parse_args for command in commands]\n"
        "for parse_args in (*options, *(verb.parse_args for group in GROUPS.values() for verb in group.verbs.values())):\n"
        "    try:\n"
        "        parse_args(['--help'])\n"
        "    except SystemExit:\n"
        "        pass\n"
        f"print('HEAVY', sorted({HEAVY!r} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "scripts", capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"
    assert done.stdout.count("usage:") == len(COMMANDS) + sum(len(group.verbs) for group in GROUPS.values())


def rules_of(path: Path) -> dict[str, str]:
    """Return the text of each rule of a file, by name."""
    parts = re.split(r"^rule (\w+):\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


RULES = {name: text for path in RULE_FILES for name, text in rules_of(path).items()}
WORKING_RULES = sorted(set(RULES) - {"all"})


@pytest.mark.parametrize("rule", WORKING_RULES)
def test_a_rule_is_complete(rule: str) -> None:
    text = RULES[rule]
    assert text.lstrip().startswith('"""'), "docstring"
    for key in ("output:", "log:", "params:", "resources:", "conda:", "shell:"):
        assert f"    {key}\n" in text, key
    assert f'code=code_hash("{rule}")' in text
    assert f"python scripts/{rule}.py" in text
    assert (ROOT / "scripts" / f"{rule}.py").is_file()
    assert "mem_mb=" in text
    assert "&> {log}" in text
    environment = re.search(r'conda:\n\s+"\.\./(envs/[a-z]+\.yaml)"', text)
    assert environment
    assert (ROOT / environment.group(1)).is_file()


def test_every_command_belongs_to_a_rule_or_says_that_it_is_for_people() -> None:
    for path in COMMANDS:
        if path.stem not in WORKING_RULES:
            assert path.stem in FOR_PEOPLE
            first = path.read_text(encoding="utf-8").splitlines()[0]
            assert "a command for people" in first, path.name


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda path: path.name)
def test_a_rule_file_is_one_short_stage(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    for forbidden in (r"^\s+run:", r"^\s+script:", r"^checkpoint ", r"ancient\("):
        assert not re.search(forbidden, text, flags=re.MULTILINE), forbidden


def test_heavy_libraries_are_imported_inside_functions() -> None:
    users = [path for path in sorted(LIBRARY.rglob("*.py")) if HEAVY & {name.split(".")[0] for name in imports(path)}]
    assert len(users) > 10
    wrong = [path for path in users if HEAVY & {name.split(".")[0] for name in imports(path, top_level=True)}]
    assert [str(path.relative_to(LIBRARY)) for path in wrong] == []


def test_no_public_class_has_the_name_of_another() -> None:
    where: dict[str, list[str]] = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            where.setdefault(name, []).append(path.relative_to(LIBRARY).as_posix())
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def test_no_two_test_files_have_one_name() -> None:
    """Their folders are no packages: of two files with one name in a process pytest loads only the first."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, number in names.items() if number > 1] == []


def test_frames_are_made_in_their_own_modules_alone() -> None:
    users = {
        str(path.relative_to(LIBRARY)) for path in LIBRARY.rglob("*.py") if any(name.split(".")[0] == "pandas" for name in imports(path))
    }
    assert users == FRAMES
    assert _with(BARE, LIBRARY) <= FRAMES, "a bare call drops names that look like nothing, and merges what it should not"


def test_answers_are_grouped_by_item_in_their_frame_alone() -> None:
    """A second index of answers has a second rule of what is missing."""
    assert _with(GROUPING, LIBRARY / "tables") - FRAMES == GROUPED


def strings_in(path: Path) -> Iterator[str]:
    """Yield the texts of a module, parts of f-strings included, without the docstrings of modules, functions, classes and constants."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


def test_markup_of_pages_is_in_templates_and_not_in_python() -> None:
    """A template escapes what it shows; a string that is put together by hand does so only if nobody forgets it."""
    users = {path.relative_to(LIBRARY).as_posix() for path in LIBRARY.rglob("*.py") if any(map(TAG.search, strings_in(path)))}
    assert users == set(MARKUP)


def test_every_page_extends_the_one_frame_and_nothing_else_has_a_content_policy() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in LIBRARY.rglob("*.j2")}
    frame = LIBRARY / "files" / "pages" / "frame.html.j2"
    assert {path for path, text in texts.items() if re.search("<!doctype|Content-Security-Policy", text)} == {frame}
    assert len([path for path, text in texts.items() if '{% extends "frame.html.j2" %}' in text]) >= 9
    assert not [
        path for path in LIBRARY.rglob("*.py") if any("default-src" in text for text in strings_in(path)) and path.parent != frame.parent
    ]


def test_a_change_of_the_frame_of_pages_reruns_only_the_rules_that_write_pages() -> None:
    frame = LIBRARY / "files" / "pages" / "frame.html.j2"
    writers = {rule for rule in WORKING_RULES if frame in reached_files(ROOT / "scripts", rule)}
    assert writers == {"build_report", "build_review", "find_answer_leaks", "simulate_ratings"}


def _with(pattern: str, folder: Path) -> set[str]:
    """Name the modules whose text has a pattern."""
    return {str(path.relative_to(LIBRARY)) for path in folder.rglob("*.py") if re.search(pattern, path.read_text(encoding="utf-8"))}
