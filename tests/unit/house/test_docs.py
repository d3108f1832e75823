"""The pages that people read: every command, target, option, key, link and anchor in them exists."""

from __future__ import annotations

import importlib
import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from conftest import ROOT
from neuralmedbench.benchmarks.adapters.registry import data_sets
from neuralmedbench.cli.main import GROUPS
from neuralmedbench.cli.verbs import Verb
from neuralmedbench.errors import ConfigError
from neuralmedbench.report.blocks import BLOCKS

PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
}
TASKS = ("quickstart", "own-scans", "add-a-model", "rate")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
OTHERS = sorted(
    [ROOT / "Makefile", ROOT / "Snakefile", ROOT / "pyproject.toml"]
    + [path for folder in ("scripts", "rules", "config", "perf", "profiles", ".ci") for path in (ROOT / folder).rglob("*")]
)
TEXTS = {
    **PAGES,
    **{
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in OTHERS
        if path.is_file() and (path.suffix in {".py", ".smk", ".yaml", ".json", ".j2", ".html", ".js", ".md", ".toml"} or not path.suffix)
    },
}
"""Pages and all other files that may name a command: messages, hints, comments, rules, the Makefile, the report's templates."""
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
KEYS = set(re.findall(r"^\| `([\w.<>]+)` \|", PAGES["docs/configuration.md"], re.MULTILINE))
MADE_BY_THE_READER = {"exam": "medframeqa"}
"""A data set whose mapping is on its page, and one that is in the repository."""


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """Return page and content of every fenced block of a language, dedented."""
    for page, text in PAGES.items():
        for indentation, name, content in FENCE.findall(text):
            if name == language:
                yield page, re.sub(f"^{indentation}", "", content, flags=re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    """Return page and command of every line in a block that a user would type."""
    lines = [
        (page, line)
        for language in ("sh", "bash", "")
        for page, text in blocks(language)
        for line in text.replace("\\\n", " ").splitlines()
    ]
    typed = [(page, line.strip()) for page, line in lines]
    return sorted({(page, line) for page, line in typed if re.match(r"(nmb |python (scripts|perf)/|make |snakemake )", line)})


def mentioned() -> list[tuple[str, str]]:
    """Return page and command of every inline command; its arguments may be left out."""
    found = [(page, words) for page, text in PAGES.items() for words in re.findall(r"`([^`\n]+)`", FENCE.sub("", text))]
    return sorted({(page, words) for page, words in found if re.match(r"(nmb |python (scripts|perf)/|make [a-z])", words)})


@cache
def help_of(name: str) -> str:
    """Return the help text of a script or verb (`group verb`)."""
    output = io.StringIO()
    with redirect_stdout(output):
        assert exit_code(name, ["--help"]) == 0
    return output.getvalue()


def exit_code(name: str, arguments: list[str]) -> object:
    """Parse arguments with a script or verb, without running it, and return the exit code."""
    try:
        command = verb_of(name) or importlib.import_module(name)
        (command if hasattr(command, "parse_args") else command.main).parse_args(arguments)
    except SystemExit as end:
        return end.code
    except ConfigError as error:
        return str(error)
    return 0


def verb_of(name: str) -> Verb | None:
    """Look up a verb by `group verb`."""
    group, _, verb = name.partition(" ")
    return GROUPS[group].verbs.get(verb) if group in GROUPS else None


def slug(heading: str) -> str:
    """Return the anchor that git hosts generate for a heading."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading).lower()).replace(" ", "-")


@cache
def anchors(page: str) -> frozenset[str]:
    return frozenset(slug(heading) for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", PAGES[page]), re.MULTILINE))


@pytest.mark.parametrize(("page", "line"), [one for one in commands() if one[1].startswith(("python ", "nmb "))])
def test_a_command_on_a_page_is_taken_as_it_stands(page: str, line: str) -> None:
    program, *words = [MADE_BY_THE_READER.get(word, word) for word in shlex.split(line, comments=True)]
    if program == "python":
        assert (ROOT / words[0]).is_file(), f"{page}: {words[0]}"
        if words[0].startswith("scripts/"):
            assert exit_code(Path(words[0]).stem, words[1:]) == 0, f"{page}: {line}"
    elif words != ["--help"]:
        assert exit_code(" ".join(words[:2]), words[2:]) == 0, f"{page}: {line}"
    if words[:2] == ["benchmark", "import"] and words[2] != "--help":
        assert words[2] in data_sets(ROOT / "config"), f"{page}: {line}"


@pytest.mark.parametrize(("page", "words"), [one for one in mentioned() if one[1].startswith("python ")])
def test_a_command_in_a_sentence_is_there_with_its_options(page: str, words: str) -> None:
    path = words.split()[1]
    assert (ROOT / path).is_file(), f"{page}: {words}"
    if path.startswith("scripts/"):
        assert [option for option in re.findall(r"--[\w-]+", words) if option not in help_of(Path(path).stem)] == [], f"{page}: {words}"


@pytest.mark.parametrize("name", sorted(name for name, text in TEXTS.items() if "nmb " in text))
def test_every_verb_that_is_named_anywhere_is_there_with_its_options(name: str) -> None:
    """On pages, in the Makefile, in messages and their hints, in comments."""
    text = TEXTS[name].replace("\\\n", " ")
    for group, verb, rest in re.findall(r"\bnmb ([a-z][\w-]*)(?: ([a-z][\w-]*))?([^`\n\"<;]*)", text):
        assert verb_of(f"{group} {verb}") if verb else group in GROUPS, f"nmb {group} {verb}"
        options = re.findall(r"(?<= )--[a-z][\w-]*", rest) if verb else []
        unknown = [option for option in options if option not in help_of(f"{group} {verb}")]
        assert unknown == [], f"nmb {group} {verb}"


def test_every_script_and_target_that_is_named_anywhere_is_there() -> None:
    scripts = {(name, path) for name, text in TEXTS.items() for path in re.findall(r"\bscripts/\w+\.py\b", text)}
    targets = {(name, target) for name, text in TEXTS.items() for target in re.findall(r"(?:`|<code>)make ([a-z-]+)", text)}
    assert len(scripts) > 20
    assert len(targets) > 20
    assert sorted((name, path) for name, path in scripts if not (ROOT / path).is_file()) == []
    assert sorted((name, target) for name, target in targets if not re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)) == []


def test_make_help_lists_every_target() -> None:
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)
    assert re.findall(r"^  make ([a-z-]+)  +\S", listed, re.MULTILINE) == targets
    assert set(targets) == set(re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)[1].split())


@pytest.mark.parametrize(("page", "line"), [one for one in (*commands(), *mentioned()) if one[1].startswith("make ")])
def test_a_target_of_make_is_there_with_its_variables(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    known = [
        re.search(rf"\b{name}\b ?\?=|\$\({name}\)|\$\(or \$\({name}\)", MAKEFILE)
        for name in (word.split("=")[0] for word in words if "=" in word)
    ]
    assert all(known), f"{page}: {line}"
    assert [word for word in words if "=" not in word and not re.search(rf"^{word}:", MAKEFILE, re.MULTILINE)] == [], f"{page}: {line}"


def test_snakemake_takes_what_the_pages_give_it() -> None:
    from snakemake.cli import get_argument_parser

    options = {name for action in get_argument_parser()._actions for name in action.option_strings}
    used = {
        (page, word)
        for page, line in commands()
        if line.startswith("snakemake ")
        for word in shlex.split(line, comments=True)
        if word[:1] == "-"
    }
    assert sorted((page, word) for page, word in used if word not in options | {"--"}) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_and_anchor_of_a_page_leads_somewhere(page: str) -> None:
    folder, lost = (ROOT / page).parent, []
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", PAGES[page])):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        there = (folder / path).resolve() if path else ROOT / page
        name = str(there.relative_to(ROOT))
        if not there.exists() or (anchor and anchor not in anchors(name)):
            lost.append(target)
    lost += [
        name for name in re.findall(r"`((?:docs|perf|rules|profiles|envs)/[\w./-]+\.\w+)`", PAGES[page]) if not (ROOT / name).is_file()
    ]
    assert lost == []


@pytest.mark.parametrize("page", PAGES)
def test_keys_of_the_configuration_are_known(page: str) -> None:
    sections = {key.split(".")[0] for key in KEYS if "." in key}
    named = set(re.findall(r"`([a-z_]+\.[a-z_.]+)`", FENCE.sub("", PAGES[page])))
    keys = {name for name in named if not re.search(r"\.(csv|html|jsonl?|md|parquet|py|svg|yaml)$", name)}
    assert sorted(name for name in keys if name.split(".")[0] in sections and name not in KEYS) == []


def test_examples_in_yaml_have_known_keys_alone() -> None:
    unknown = []
    for page, text in blocks("yaml"):
        for part in re.split(r"^# .*\.yaml$", text, flags=re.MULTILINE):
            unknown += [(page, key) for key in yaml.safe_load(part) or {} if key not in KEYS]
    assert unknown == []


QUOTED = {
    "docs/zero.md": (
        " cannot be read (most often: ",
        " more have not come yet. ",
        "shows one, such as that to ",
        "Ctrl-C ends the run and keeps what has come",
        "calls nothing the diagnosis: no section, label, sentence, list or JSON does",
        "has no LESION, in lines or in JSON",
        "not read: the answer ",
        "; it counts as wrong",
        "no diagnosis read",
    ),
    "docs/first-model.md": (
        "a run is recorded when the whole of it is asked for",
        "tokens in thousands, expected / as reserved before a call (one byte per token).",
        "Possible now: ",
        "could not be read: ",
        " shows it, where the case may be read",
        " per answer",
        "it asks only what is not in the ledger",
        "as a result they say nothing yet",
        "has no LESION, in lines or in JSON",
        "Limited run",
    ),
}
"""What the pages on first runs quote from the terminal and the report, where the code has it in one piece."""


@pytest.mark.parametrize(("page", "words"), [(page, words) for page, all_words in QUOTED.items() for words in all_words])
def test_quoted_output_has_the_words_of_the_code(page: str, words: str) -> None:
    assert words in PAGES[page]
    assert [name for name, text in TEXTS.items() if name.startswith("scripts/") and words in text], f"{page}: run it again and quote it"


def test_every_page_stands_in_the_guide() -> None:
    guide = PAGES["docs/README.md"]
    pages = [path.name for path in (ROOT / "docs").glob("*.md") if path.name != "README.md"]
    assert [name for name in pages if f"({name})" not in guide] == []


@pytest.mark.parametrize("task", TASKS)
def test_a_task_says_what_is_needed_typed_and_seen_and_what_goes_wrong(task: str) -> None:
    parts = re.findall(r"^## (.+)$", PAGES[f"docs/{task}.md"], re.MULTILINE)
    assert [part for part in parts if part.startswith("What ")] == ["What you need", "What you type", "What you see", "What goes wrong"]


def test_the_page_on_the_report_follows_its_blocks() -> None:
    """Each block has a section: its question, how to read it, and what does not follow from it."""
    text = PAGES["docs/read-the-report.md"]
    starts = [(found.start(), found[1]) for found in re.finditer(r"^###? (.+)$", text, re.MULTILINE)]
    order = [name for _, name in starts[1:]]
    groups = list(dict.fromkeys(block.group for block in BLOCKS))
    assert order == [name for group in groups for name in (group, *(block.name for block in BLOCKS if block.group == group))]
    for (start, name), (end, _) in pairwise([*starts, (len(text), "")]):
        if name in {block.name for block in BLOCKS}:
            assert re.findall(r"^- \*\*(.+?)\.\*\* ", text[start:end], re.MULTILINE) == ["Question", "Read", "Not so fast"], name


@pytest.mark.parametrize(("folder", "page"), [("arms", "docs/arms.md"), ("layouts", "docs/layouts.md")])
def test_the_page_of_a_folder_names_its_files(folder: str, page: str) -> None:
    names = [path.stem for path in (ROOT / "config" / folder).glob("*.yaml")]
    assert [name for name in names if not re.search(rf"`{re.escape(name)}[-`]", PAGES[page])] == []
