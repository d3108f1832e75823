"""`nmb`, the command for people: overview, verbs, messages for wrong input, installation."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import venv
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import NMB, ROOT, copy_project
from neuralmedbench.cli.main import GROUPS, main
from neuralmedbench.cli.verbs import Verb
from neuralmedbench.config.workflow import read_run
from neuralmedbench.errors import ConfigError
from neuralmedbench.recording import stages
from neuralmedbench.runtime.commands import run_command

VERBS = {verb.command: verb for group in GROUPS.values() for verb in group.verbs.values()}
LIGHT = {"__main__", "cli", "errors", "runtime"}
"""Rooms that `nmb --help` may import; they need the standard library only."""


def test_the_map_names_every_group_and_verb_with_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for group in GROUPS.values():
        start = lines.index(f"{group.name}: {group.about}") + 1
        assert [line.split()[0] for line in lines[start : start + len(group.verbs)]] == list(group.verbs)
    assert max(map(len, lines)) <= 120
    assert all(verb.summary.endswith(".") for verb in VERBS.values())


@pytest.mark.parametrize("command", VERBS)
def test_the_help_of_a_verb_ends_in_an_example_that_its_arguments_fit(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    verb = VERBS[command]
    _, group, name = command.split()
    with pytest.raises(SystemExit) as end:
        main([group, name, "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: {command} ")
    assert verb.summary in " ".join(text.split())
    assert f"example:\n  {command} {verb.example}".rstrip() in text
    verb.parse_args(shlex.split(verb.example))


@pytest.mark.parametrize("words", ["--help", "cases --help", "run --help"])
def test_the_map_imports_the_standard_library_alone(words: str) -> None:
    code = f"""
import json, sys
sys.path.insert(0, "scripts")
from neuralmedbench.cli.main import main
from neuralmedbench.runtime.commands import run_command
assert run_command(main, {words.split()!r}) == 0
print(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert {name.split(".")[1] for name in loaded if name.startswith("neuralmedbench.")} <= LIGHT
    assert {name.split(".")[0] for name in loaded} - sys.stdlib_module_names <= {"__main__", "neuralmedbench"}


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("", "nmb: name a group, one of cases, deid, benchmark, model, score, ratings, run; `nmb --help` explains them"),
        ("case", "nmb: there is no group 'case'; did you mean `nmb cases`? `nmb --help` explains them"),
        (
            "--version",
            "nmb: there is no group '--version'; there are cases, deid, benchmark, model, score, ratings, run; `nmb --help` explains them",
        ),
        ("cases", "nmb cases: name a command, one of list, held, remove, export-bids, phantoms; `nmb cases --help` explains them"),
        ("cases lst", "nmb cases: there is no command 'lst'; did you mean `nmb cases list`? `nmb cases --help` explains them"),
        (
            "cases held",
            "nmb cases held: the following arguments are required: --benchmark; `nmb cases held --help` shows an example",
        ),
        ("cases held --bench", "nmb cases held: argument --benchmark: expected one argument; `nmb cases held --help` shows an example"),
        ("benchmark import medframe --from x", "medframe: no data set has this name; did you mean 'medframeqa'?"),
    ],
)
def test_wrong_input_gets_one_line_with_the_next_step(typed: str, answer: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(main, typed.split()) == ConfigError.exit_code
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err == f"ConfigError: {answer}\n"


def test_a_command_names_its_verb_only_once_and_no_verb_takes_anothers_place() -> None:
    assert all(verb.command == f"nmb {group.name} {name}" for group in GROUPS.values() for name, verb in group.verbs.items())
    assert all(isinstance(verb, Verb) for verb in VERBS.values())
    assert len({verb.function for verb in VERBS.values()}) == len(VERBS)


def test_debug_shows_the_traceback_of_a_verb(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError):
        run_command(main, ["cases", "lst", "--debug"])


def test_setup_installs_the_command_without_a_package_and_without_a_network(tmp_path: Path) -> None:
    """In an environment without other packages, which `nmb --help` does not need."""
    project, environment = (
        copy_project(tmp_path / "a project", parts=("Makefile", "requirements.lock", "scripts")),
        tmp_path / "environment",
    )
    venv.create(environment, with_pip=False, symlinks=True)
    (environment / ".ready").touch()
    subprocess.run(["make", f"VENV={environment}", "setup"], cwd=project, check=True, capture_output=True)
    alone = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    commands = ([str(environment / "bin" / "nmb")], [str(environment / "bin" / "python"), "-m", "neuralmedbench"])
    maps = [
        subprocess.run([*words, "--help"], cwd=tmp_path, env=alone, check=True, capture_output=True, text=True).stdout for words in commands
    ]
    assert maps[0] == maps[1]
    assert "nmb GROUP VERB" in maps[0]
    where = "import neuralmedbench; print(neuralmedbench.__path__[0])"
    found = subprocess.run(
        [environment / "bin" / "python", "-c", where], cwd=tmp_path, env=alone, check=True, capture_output=True, text=True
    )
    assert found.stdout == f"{project}/scripts/neuralmedbench\n"


def test_a_copy_of_the_project_uses_its_own_library(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "copy", parts=("scripts",))
    module = project / "scripts" / "neuralmedbench" / "cli" / "cases.py"
    module.write_text(module.read_text(encoding="utf-8").replace("list the cases of patients", "another text"), encoding="utf-8")
    done = subprocess.run([*NMB, "cases", "--help"], cwd=project, check=True, capture_output=True, text=True)
    assert "another text" in done.stdout


def test_retry_lets_snakemake_make_what_is_incomplete_again(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    study = replace(read_run(folder=ROOT / "config"), configfiles=("config/study.yaml",))

    def run(command: list[str], **settings: object) -> subprocess.CompletedProcess[str]:
        called.append((command, settings))
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(stages.subprocess, "run", run)
    assert stages.run_again(["results/responses/b/m.parquet"], study, cores=2) == 1
    ((command, settings),) = called
    words = "-m snakemake --cores 2 --configfile config/study.yaml --forcerun results/responses/b/m.parquet -- results/study/report.html"
    assert command == [sys.executable, *words.split()]
    assert settings["env"]["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)


@pytest.mark.parametrize("command", ["runpy.run_module('neuralmedbench', run_name='__main__')", "import neuralmedbench.cli.main"])
def test_windows_gets_one_clear_line(command: str) -> None:
    """Without `fcntl`, which every lock needs, it was a traceback."""
    code = f"import runpy, sys; sys.platform = 'win32'; sys.modules['fcntl'] = None; sys.argv = ['nmb', 'run', 'check']; {command}"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert re.fullmatch(r"neuralmedbench runs on Linux and macOS; on Windows, use it within WSL 2 \(\S+\)\n", ended.stderr)
