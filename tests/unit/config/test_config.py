"""The configuration is typed, and errors are reported in one line."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import ROOT
from neuralmedbench.cli.generated_docs import generated_files
from neuralmedbench.config.arms import load_arms
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.load import (
    WITHHELD,
    check,
    load_benchmark,
    load_grader,
    load_model,
    load_pipeline,
    read_yaml,
    withhold_outside_paths,
)
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.workflow import Run, read_run
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.cases import CASE_COLUMNS

GOOD = {"benchmarks": ["demo"], "models": ["text"]}


def test_an_unknown_key_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'slices\.per_sequense'; did you mean 'per_sequence'\?"):
        load_pipeline({**GOOD, "slices": {"per_sequense": 4}})


def test_an_unknown_key_without_a_neighbour_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"known keys: .*benchmarks"):
        load_pipeline({**GOOD, "zzzzzz": 1})


def test_a_misspelt_key_that_is_needed_is_named_as_it_was_written() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'modls'; did you mean 'models'\?"):
        load_pipeline({"benchmarks": ["demo"], "modls": ["text"]})


@pytest.mark.parametrize(("value", "found"), [(None, "an empty file"), ("/home/ward/somebody", "something else")])
def test_a_file_without_keys_is_refused_and_its_content_is_not_shown(value: object, found: str) -> None:
    with pytest.raises(ConfigError, match=f"`key: value`, found {found}$"):
        load_pipeline(value)


def test_a_place_of_the_machine_in_a_wrong_value_is_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        check(BenchmarkConfig, {"title": "Mine", "kind": "scans", "axis": "depth", "source": ["/home/ward/somebody"]}, "mine.yaml")
    assert "somebody" not in str(caught.value)


def test_the_answers_of_own_data_must_be_there_before_anything_runs(tmp_path: Path) -> None:
    for name in ("models", "graders"):
        shutil.copytree(ROOT / "config" / name, tmp_path / name)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "mine.cases.tsv").write_text("\t".join(CASE_COLUMNS) + "\n")
    answers, yaml = tmp_path / "answers.csv", tmp_path / "benchmarks" / "mine.yaml"
    yaml.write_text(f"title: Mine\nkind: scans\naxis: depth\nsource: /data\nanswers: {answers}\n")
    with pytest.raises(ConfigError, match="the answers table is not there") as caught:
        Run.read({"benchmarks": ["mine"], "models": ["text"]}, tmp_path)
    assert str(answers) not in str(caught.value)
    answers.write_text("case_id,diagnosis\n")
    assert Run.read({"benchmarks": ["mine"], "models": ["text"]}, tmp_path).cases("mine") == []


def test_a_missing_key_is_named() -> None:
    with pytest.raises(ConfigError, match="the key 'models' is missing"):
        load_pipeline({"benchmarks": ["demo"]})


def test_a_value_of_the_wrong_kind_is_named_with_what_was_found() -> None:
    with pytest.raises(ConfigError, match=r"statistics\.resamples.*found 'many'"):
        load_pipeline({**GOOD, "statistics": {"resamples": "many"}})


def test_a_name_that_is_no_wildcard_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"benchmarks\.0"):
        load_pipeline({"benchmarks": ["My Benchmark"], "models": ["text"]})


def test_a_key_that_was_pasted_in_the_place_of_its_name_is_refused_unseen(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("{title: T, backend: litellm, id: openai/x, revision: '1', api_key_env: sk-canary-123}")
    with pytest.raises(ConfigError, match="api_key_env") as refused:
        load_model(path)
    assert "canary" not in str(refused.value)


def test_an_unknown_arm_names_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"^mine: arms: there is no arm 'no_images'; did you mean 'no_image'"):
        load_arms(ROOT / "config", ["full", "no_images"], "mine")


def test_an_absent_model_is_refused_with_the_nearest_file() -> None:
    with pytest.raises(ConfigError, match="did you mean 'fusion'"):
        load_model(ROOT / "config" / "models" / "fusionn.yaml")


@pytest.mark.parametrize(("written", "read"), [("2", "2"), ("'2'", "2"), ("2026-11-22", "2026-11-22"), ("b", "b")])
def test_a_revision_may_be_a_number_or_a_day_without_quotes(tmp_path: Path, written: str, read: str) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(f"{{title: T, backend: builtin, id: text, revision: {written}}}")
    assert load_model(path).revision == read
    path.write_text("{title: T, backend: builtin, id: text, revision: 1.10}")
    with pytest.raises(ConfigError, match="revision"):  # YAML makes 1.1 of it
        load_model(path)


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
    assert withhold_outside_paths({"source": place, "arms": ["full"]}) == {"source": WITHHELD, "arms": ["full"]}


@pytest.mark.parametrize("value", ["phantoms", "data/raw/demo/answers.csv", "openai/gpt-4o", "http://127.0.0.1:8000/v1", 3, None])
def test_what_is_no_place_of_this_machine_is_shown(value: object) -> None:
    assert withhold_outside_paths([value]) == [value]


MODEL = {"title": "T", "backend": "litellm", "id": "openai/m", "revision": "1"}
SECRET = "sk-canary7Qm2xWv81LpZt93aBc"


def refusal(**changes: object) -> str:
    """Return the one line by which a model is refused."""
    with pytest.raises(ConfigError) as caught:
        check(ModelConfig, {**MODEL, **changes}, "m.yaml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("secret", [SECRET, "AIzaSyCanary7Qm2xWv81LpZt93aBcDeFgHiJ", "hf_canary7Qm2xWv81LpZt93aBc", f"Bearer {SECRET}"])
@pytest.mark.parametrize("place", ["temperature", "revision", "title", "id", "api_base", "logprobs", "parameters", "prices", "unknown"])
def test_a_key_in_any_place_of_a_yaml_is_refused_and_not_printed(place: str, secret: str) -> None:
    """In `parameters` it would stand in every line of the ledger, in `temperature` it was printed."""
    value = {"parameters": {"service": secret}, "prices": {"dated": secret}}.get(place, secret)
    said = refusal(**{place: value})
    assert "anary" not in said
    assert f"`{place}` holds what looks like an API key" in said
    assert "anary" not in refusal(**{secret: 1})


@pytest.mark.parametrize("place", ["temperature", "logprobs", "prices", "concurrency"])
def test_a_value_that_may_be_a_key_of_another_provider_is_not_printed(place: str) -> None:
    assert "a1b2" not in refusal(**{place: "a1b2c3d4e5f60718293a4b5c6d7e8f90"})


def test_what_may_be_a_key_is_refused_among_the_parameters_and_allowed_as_a_revision() -> None:
    assert "may be an API key" in refusal(parameters={"service_tier": "a1b2c3d4e5f60718293a4b5c6d7e8f90"})
    assert check(ModelConfig, {**MODEL, "revision": "a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4"}, "m.yaml").revision
    assert check(
        ModelConfig, {**MODEL, "id": "hf-internal-testing/tiny-random-LlamaForCausalLM", "parameters": {"effort": "high"}}, "m.yaml"
    )


@pytest.mark.parametrize(
    "address", ["https://me:canary@host.example.org/v1", "https://canary@host.example.org/v1", "http://:canary@127.0.0.1/v1"]
)
def test_an_address_with_user_or_password_is_refused_when_it_is_read_and_not_printed(address: str) -> None:
    """No request was sent, and every attempt was booked as perhaps paid."""
    said = refusal(api_base=address)
    assert "does not belong in an address" in said
    assert "canary" not in said


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("max_cost_usd", float("inf")),
        ("max_cost_usd", float("nan")),
        ("max_cost_usd", 1e300),
        ("timeout_s", float("inf")),
        ("timeout_s", 1e300),
        ("deadline_s", float("inf")),
        ("temperature", float("nan")),
        ("max_tokens", 10**400),
        ("parameters", {"top_k": float("inf")}),
        ("prices", {"usd_per_million_prompt_tokens": float("inf"), "usd_per_million_completion_tokens": 1, "dated": "x"}),
    ],
)
def test_numbers_without_end_are_refused(place: str, value: object) -> None:
    assert place in refusal(**{place: value})


def test_the_cap_of_a_run_is_a_number_that_can_be_summed() -> None:
    for cap in (float("inf"), float("nan"), 1e300):
        with pytest.raises(ConfigError, match="max_run_cost_usd"):
            load_pipeline({**GOOD, "max_run_cost_usd": cap})


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BOMB + "title: *i\n", "aliases repeat"),
        ("title: &a [*a]\n", "contains itself"),
        ("title: &a {b: *a}\n", "contains itself"),
        ("title: " + "[" * 200_000 + "]" * 200_000, "nested too deeply"),
        ("- " * 200_000 + "a", "nested too deeply"),
        ("title: " + "[" * 3_000 + "]" * 3_000, ""),
    ],
)
def test_a_yaml_that_unfolds_without_measure_is_refused_in_one_line_at_once(tmp_path: Path, text: str, why: str) -> None:
    """373 bytes took more than 20 s, 327 bytes gave a message of 4 MB; 200,000 brackets ended the process."""
    path = tmp_path / "m.yaml"
    path.write_text(text)
    begun = time.monotonic()
    with pytest.raises(ConfigError) as caught:
        load_model(path)
    assert why in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert "\n" not in str(caught.value.args[0])
    assert time.monotonic() - begun < 5


def test_a_long_wrong_value_is_shown_shortened() -> None:
    assert len(refusal(temperature="x" * 100_000)) < 500
    assert len(refusal(temperature=[["x" * 100] * 100] * 100)) < 2000


def test_scores_of_a_model_know_the_layout_in_which_it_was_asked_where_answers_state_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run = read_run()
    arms = ("full", "layout-gemini", "layout-claude")
    benchmarks = {
        form: run.benchmarks["demo"].model_copy(update={"arms": arms, "answer_form": form}) for form in ("evidence", "checklist", "short")
    }
    image = run.models["image"]
    models = {str(name): image.model_copy(update={"layout": name}) for name in (None, "gemini", "qwen3vl")}
    run = replace(run, benchmarks=benchmarks, models=models)
    told = {(form, name): run.places(form, name)["layout_arms"] for form in benchmarks for name in models}
    assert {key: value for key, value in told.items() if value} == {
        (form, "gemini"): ["layout-gemini"] for form in ("evidence", "checklist")
    }
    assert run.layout_files("evidence", "gemini") == ["config/arms/layout.yaml", "config/layouts/gemini.yaml"]
    assert run.layout_files("evidence", "qwen3vl") == []


def test_places_in_pixels_are_refused_where_pictures_are_scaled_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run = read_run()
    benchmarks = {
        unit: run.benchmarks["demo"].model_copy(update={"coordinates": unit}) for unit in ("thousandths", "pixels", "shrunk_pixels")
    }
    run = replace(run, benchmarks=benchmarks, models={"image": run.models["image"].model_copy(update={"max_picture_px": 1000})})
    assert run.places("thousandths", "image")["coordinates"] == "thousandths"
    for unit in ("pixels", "shrunk_pixels"):
        with pytest.raises(ConfigError, match="max_picture_px changes the pixels"):
            run.places(unit, "image")
