"""Reading which diagnoses are time-critical."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.clinical import VOCABULARY
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.vocabulary import read_urgency, urgency_path
from neuralmedbench.records.vocabulary import Urgency
from neuralmedbench.runtime.atomic_write import write_text

HEAD = "version: '1'\nstatus: made up\n"


def test_a_vocabulary_without_a_list_has_no_time_critical_diagnosis(tmp_path: Path) -> None:
    assert urgency_path(Path("config/vocabulary/own.yaml")) == Path("config/vocabulary/own.urgency.yaml")
    assert read_urgency(tmp_path / "own.urgency.yaml", VOCABULARY) == Urgency()
    assert Urgency().of("stroke", VOCABULARY) is None


def test_the_nearest_wider_term_decides_and_an_exception_ends_it(tmp_path: Path) -> None:
    text = (
        "time_critical:\n  stroke: {within: hours, source: 'A, 2001'}\n  lobar-haemorrhage: {within: minutes, source: 'B, 2002'}\n"
        "not_time_critical: [intracranial-haemorrhage]\n"
    )
    write_text(tmp_path / "list.yaml", HEAD + text)
    found = read_urgency(tmp_path / "list.yaml", VOCABULARY)
    sources = {
        key: entry.source if (entry := found.of(key, VOCABULARY)) else ""
        for key in ("chronic-infarct", "lobar-haemorrhage", "subdural-haematoma")
    }
    assert sources == {"chronic-infarct": "A, 2001", "lobar-haemorrhage": "B, 2002", "subdural-haematoma": ""}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time_critical: {stroke: {within: hours}}", "time_critical.stroke.source"),
        ("time_critical: {stroke: {within: hours, source: ' '}}", "needs its source"),
        ("time_critical: {stroke: {within: soon, source: 'A, 2001'}}", "within"),
        ("time_critical: {strok: {within: hours, source: 'A, 2001'}}", "no diagnosis 'strok'"),
        ("not_time_critical: [strok]", "no diagnosis 'strok'"),
        ("urgent: {}", "urgent"),
        ("time_critical: [", "not valid YAML"),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, message: str) -> None:
    write_text(tmp_path / "list.yaml", HEAD + text)
    with pytest.raises(ConfigError, match=message):
        read_urgency(tmp_path / "list.yaml", VOCABULARY)
