"""Long test series run with `make validate`: their stored results passed, and a notice says when their code has changed since."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import validate
from conftest import ROOT
from fixtures.series import measured_cells
from neuralmedbench.config import code_hash

pytestmark = pytest.mark.slow

STORED = sorted((ROOT / "tests" / "validation").glob("*.json"))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the files of the interval series, with a result of its code."""
    for part in ("perf", "scripts", "tests/fixtures"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    path = validate.result_file("confidence_intervals", tmp_path)
    path.parent.mkdir()
    path.write_text(json.dumps({"code": validate.digest("confidence_intervals", tmp_path)}))
    return tmp_path


def reasons(root: Path) -> dict[str, str]:
    for function in (code_hash._content, code_hash._imports, code_hash._locate, code_hash._data_files):
        function.cache_clear()
    return dict(validate.outdated(root=root))


@pytest.mark.parametrize(
    "name", ["perf/confidence_intervals.py", "tests/fixtures/coverage.py", "scripts/neuralmedbench/estimates/intervals.py"]
)
def test_a_result_is_out_of_date_when_its_code_was_edited(copy: Path, name: str) -> None:
    assert reasons(copy) == dict.fromkeys(set(validate.SERIES) - {"confidence_intervals"}, "was never run")
    (copy / name).write_text((copy / name).read_text() + "# edited\n")
    assert reasons(copy)["confidence_intervals"] == "was run with other code"


def test_a_result_is_up_to_date_when_other_code_was_edited(copy: Path) -> None:
    for name in ("scripts/neuralmedbench/deid/__init__.py", "tests/fixtures/crashes.py"):
        (copy / name).write_text((copy / name).read_text() + "# edited\n")
    assert "confidence_intervals" not in reasons(copy)


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_what_is_stored_of_a_series_passed(path: Path) -> None:
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert path.stem in validate.SERIES
    assert stored["passed"]
    assert stored["output"]


@pytest.mark.parametrize("name", list(validate.SERIES))
def test_a_slice_of_every_series_is_tested(name: str) -> None:
    assert (ROOT / "perf" / f"{name}.py").is_file()
    assert (ROOT / validate.SERIES[name].slice).is_file()


def test_a_series_that_was_killed_goes_on_at_its_cell_and_begins_anew_with_other_code(copy: Path) -> None:
    asked: list[int] = []

    def measure(cell: int) -> dict[str, float]:
        asked.append(cell)
        return {"square": float(cell**2)}

    def begin(settings: str) -> Iterator[tuple[int, dict[str, float]]]:
        return measured_cells("confidence_intervals", settings, range(4), measure, copy)

    path = validate.result_file("confidence_intervals", copy).with_suffix(".part.jsonl")
    first = begin("seed 1")
    assert [next(first) for _ in range(2)] == [(0, {"square": 0.0}), (1, {"square": 1.0})]
    first.close()
    path.write_text(path.read_text(encoding="utf-8")[:-3], encoding="utf-8")
    assert [found["square"] for _, found in begin("seed 1")] == [0, 1, 4, 9]
    assert asked == [0, 1, 1, 2, 3], "the cell whose line was cut is measured again"
    assert not path.exists()
    next(begin("seed 1"))
    (copy / "perf" / "confidence_intervals.py").write_text("# edited\n", encoding="utf-8")
    reasons(copy)  # forget the digests
    next(begin("seed 1"))
    next(begin("seed 2"))
    assert asked[5:] == [0, 0, 0]
