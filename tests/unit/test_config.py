"""The configuration is typed once and refused in one line when it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import ROOT
from neuralmedbench.config.generate import generated_files
from neuralmedbench.config.load import load_benchmark, load_grader, load_model, load_pipeline, read_yaml
from neuralmedbench.config.places import WITHHELD, without_places
from neuralmedbench.errors import ConfigError

GOOD = {"benchmarks": ["demo"], "models": ["text"]}


def test_an_unknown_key_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'slices\.per_sequense'; did you mean 'per_sequence'\?"):
        load_pipeline({**GOOD, "slices": {"per_sequense": 4}})


def test_an_unknown_key_without_a_neighbour_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"known keys: .*benchmarks"):
        load_pipeline({**GOOD, "zzzzzz": 1})


def test_a_missing_key_is_named() -> None:
    with pytest.raises(ConfigError, match="the key 'models' is missing"):
        load_pipeline({"benchmarks": ["demo"]})


def test_a_value_of_the_wrong_kind_is_named_with_what_was_found() -> None:
    with pytest.raises(ConfigError, match=r"statistics\.resamples.*found 'many'"):
        load_pipeline({**GOOD, "statistics": {"resamples": "many"}})


def test_a_name_that_is_no_wildcard_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"benchmarks\.0"):
        load_pipeline({"benchmarks": ["My Benchmark"], "models": ["text"]})


def test_an_absent_model_is_refused_with_the_nearest_file() -> None:
    with pytest.raises(ConfigError, match="did you mean 'fusion'"):
        load_model(ROOT / "config" / "models" / "fusionn.yaml")


def test_broken_yaml_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("a: 1\nb: [1, 2\n")
    with pytest.raises(ConfigError, match="line 3: not valid YAML"):
        read_yaml(path)


@pytest.mark.parametrize("path", sorted((ROOT / "config" / "models").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_model_is_valid(path: Path) -> None:
    assert load_model(path).revision


@pytest.mark.parametrize("path", sorted((ROOT / "config" / "graders").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_grader_is_valid(path: Path) -> None:
    assert load_grader(path).title


@pytest.mark.parametrize("path", sorted((ROOT / "config" / "benchmarks").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_benchmark_is_valid(path: Path) -> None:
    assert load_benchmark(ROOT / "config", path.stem).title


def test_schemas_and_the_table_are_those_of_the_classes() -> None:
    for name, text in generated_files().items():
        assert (ROOT / name).read_text(encoding="utf-8") == text, f"{name} is stale: run `make docs`"


@pytest.mark.parametrize("place", ["/srv/patients/doe", "~/own.key", "../doe/answers.csv", "C:\\\\doe", "\\\\\\\\server\\\\doe"])
def test_a_place_of_this_machine_is_not_shown(place: str) -> None:
    assert without_places({"source": place, "arms": ["full"]}) == {"source": WITHHELD, "arms": ["full"]}


@pytest.mark.parametrize("value", ["phantoms", "data/raw/demo/answers.csv", "openai/gpt-4o", "http://127.0.0.1:8000/v1", 3, None])
def test_what_is_no_place_of_this_machine_is_shown(value: object) -> None:
    assert without_places([value]) == [value]
