"""What a rule passes to its command: the keys that its record has, and that the command reads, with the defaults of the configuration."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from typing import Any

import pytest
from test_house import RULES

from conftest import ROOT
from neuralmedbench.config.pipeline import PipelineConfig
from neuralmedbench.config.workflow import read_run
from neuralmedbench.errors import ConfigError

PASSING = sorted(name for name, text in RULES.items() if "settings(" in text)


def calls(text: str) -> list[ast.Call]:
    """Parse every call of `settings` in the text of a rule."""
    found = []
    for match in re.finditer(r"\bsettings\(", text):
        end = next(
            end for end in range(match.end(), len(text) + 1) if text[match.start() : end].count("(") == text[match.start() : end].count(")")
        )
        found.append(ast.parse(text[match.start() : end], mode="eval").body)
    return found


def keys_of(call: ast.Call) -> set[str]:
    return {ast.literal_eval(argument) for argument in call.args}


def record_of(rule: str, option: str = "settings") -> Any:
    command = importlib.import_module(rule).main
    return inspect.signature(command.function, eval_str=True).parameters[option].annotation


@pytest.mark.parametrize("rule", PASSING)
def test_a_rule_passes_the_keys_of_the_record_of_its_command(rule: str) -> None:
    (call,) = calls(RULES[rule])
    passed = {key.partition("/")[0] for key in keys_of(call)} | {word.arg for word in call.keywords if word.arg}
    fields = set(record_of(rule).model_fields)
    if any(word.arg is None for word in call.keywords):
        assert passed <= fields
    elif rule == "export_results":
        assert passed == fields - {"comparison"}, "the exports state no comparison of their own"
    else:
        assert passed == fields
    assert "--settings {params.settings:q}" in RULES[rule]


@pytest.mark.parametrize("rule", PASSING)
def test_a_key_of_the_configuration_has_one_default(rule: str) -> None:
    """A rule leaves out what has its default: another one in the record would be used in its place, unseen."""
    for name, field in record_of(rule).model_fields.items():
        if (
            name in PipelineConfig.model_fields
            and not field.is_required()
            and not {"benchmarks", "models", "graders", "published"} & {name}
        ):
            assert field.get_default(call_default_factory=True) == PipelineConfig.model_fields[name].get_default(call_default_factory=True)


@pytest.mark.parametrize("rule", PASSING)
def test_a_command_reads_no_key_of_a_section_that_its_rule_does_not_pass(rule: str) -> None:
    (call,) = calls(RULES[rule])
    keys, record = keys_of(call), record_of(rule)
    text = (ROOT / "scripts" / f"{rule}.py").read_text(encoding="utf-8")
    for section, name in re.findall(r"settings\.(\w+)(?:\.(\w+))?", text):
        if section in PipelineConfig.model_fields and section in record.model_fields and section not in keys and rule != "list_views":
            whole = {key.partition("/")[2] for key in keys if key.startswith(f"{section}/")}
            assert not whole or name in whole, f"{section}/{name}"


def test_settings_hold_what_is_set_alone_and_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run = read_run()
    slices = run.config.slices.model_copy(update={"sent_px": 224, "policy": "content"})
    run = type(run)(**{**run.__dict__, "config": run.config.model_copy(update={"slices": slices, "limit": 3})})
    assert (
        run.settings("limit", "slices", "imaging", at_lesion=False)
        == '{"at_lesion": false, "limit": 3, "slices": {"policy": "content", "sent_px": 224}}'
    )
    assert run.settings("slices/sent_px", "slices/layout", "similarity") == '{"slices": {"sent_px": 224}}'
    assert run.settings() == "{}"


def test_a_wrong_setting_is_one_line_with_the_nearest_key() -> None:
    cut_slices = importlib.import_module("cut_slices")
    paths = ["--case", "a", "--out-pictures", "b", "--out", "c"]
    for text, message in (
        ('{"slices": {"polcy": "content"}}', "--settings: unknown key 'slices.polcy'; did you mean 'policy'?"),
        ('{"slices": {"per_sequence": 0}}', "--settings: slices.per_sequence: input should be greater than or equal to 1, found 0"),
        ("content", "--settings: expected lines of the form"),
    ):
        with pytest.raises(ConfigError, match=re.escape(message)):
            cut_slices.main([*paths, "--settings", text])
