"""Figures: equal tables give equal bytes, and an empty table gives an honest figure."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from neuralmedbench.figures.gallery import FIGURES, draw_figures
from neuralmedbench.figures.style import INK, looks, styled
from neuralmedbench.figures.svg import plain_svg, save_figure
from neuralmedbench.records.results import COLUMNS

MODELS = [f"m{number:02d}" for number in range(12)]


def write(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS[name].split(), restval="")
        writer.writeheader()
        writer.writerows(rows)


def fill(folder: Path, models: list[str]) -> None:
    board = [
        {
            "benchmark": "deep",
            "axis": "depth",
            "model": name,
            "title": f"{name} & <co>",
            "tier": 1 + place // 3,
            "pass1": 0.9 - 0.05 * place,
        }
        | {"pass1_low": 0.3, "pass1_high": 0.95, "pass5": 0.95, "all_right": 0.1, "candidates5": "" if place % 2 else 0.8}
        for place, name in enumerate(models)
    ]
    board += [{"benchmark": "deep", "axis": "depth", "model": "prior", "title": "Prior", "pass1": 0.2}] if models else []
    write(folder, "leaderboard", board)
    write(folder, "axes", [{"model": name, "title": name, "breadth_benchmark": "b", "breadth": 0.8, "depth_benchmark": "d", "depth": 0.3}
                           | {"breadth_prior": 0.3, "depth_prior": 0.1} for name in models])  # fmt: skip
    parts = {"f": 0.4, "d": 0.7, "perception": 0.5, "reasoning": 0.5}
    write(folder, "decomposition", [{"benchmark": "deep", "model": name, **parts, "drawn": "true" if place else "false", "note": "d < f"}
                                    for place, name in enumerate(models)])  # fmt: skip
    write(folder, "arms", [{"benchmark": "deep", "model": name, "arm": "no_image", "difference": -0.2} for name in models])
    write(folder, "rates", [{"benchmark": "deep", "model": name, "arm": "full", "strategy": "direct", "slice": "level", "value_of_slice": "complex"}
                            | {"metric": "pass1", "value": 0.5, "low": 0.2, "high": 0.8, "n_items": 9} for name in models])  # fmt: skip
    sources = ("stated", "agreement", "tokens")
    bins = [
        {"bin": number, "mean_confidence": 0.18 * number, "share_right": 0.15 * number, "low": 0.1, "high": 0.8} for number in range(1, 6)
    ]
    write(folder, "reliability", [{"benchmark": "deep", "model": name, "arm": "full", "source": source} | row
                                  for name in models for source in sources for row in bins])  # fmt: skip
    curve = [
        {"measure": "accuracy", "coverage": number / 20, "value": 0.5, "interval": "exact" if number == 20 else ""}
        for number in range(1, 21)
    ]
    write(folder, "risk_coverage", [{"benchmark": "deep", "model": name, "source": source} | row
                                    for name in models for source in sources for row in curve])  # fmt: skip
    write(
        folder,
        "case_flow",
        [{"benchmark": "deep", "unit": "case", "step": step, "n": n} for step, n in (("listed", 9), ("used", 9))] if models else [],
    )


@pytest.mark.parametrize("models", [[], MODELS[:1], MODELS[:9]], ids=["none", "one", "nine"])
def test_every_figure_is_drawn_and_drawn_alike(models: list[str], tmp_path: Path) -> None:
    fill(tmp_path / "tables", models)
    draw_figures(tmp_path / "tables", tmp_path / "first")
    draw_figures(tmp_path / "tables", tmp_path / "second")
    for name, figure in FIGURES.items():
        text = (tmp_path / "first" / f"{name}.svg").read_text(encoding="utf-8")
        assert text == (tmp_path / "second" / f"{name}.svg").read_text(encoding="utf-8")
        assert f'<title id="title">{figure.title}</title>' in text
        assert "<desc" in text
        assert "style=" not in text
        assert "<style" not in text
        assert "<text" in text
        assert not re.search(r'(?:href|src)="(?!#)', text)
        assert "metadata" not in text
        assert "<co>" not in text


def test_a_model_keeps_its_colour_and_shape_whoever_is_in_the_table() -> None:
    assert looks(["b", "a", "prior"]) == looks(["a", "prior", "b"])
    assert len({(look.colour, look.marker) for look in looks(MODELS).values()}) == 13
    assert looks(["a"])["prior"].hollow


def test_the_ink_is_one_colour_that_the_page_can_replace(tmp_path: Path) -> None:
    with styled():
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots()
        axes.set_title("Title")
        save_figure(tmp_path / "a.svg", figure, title="A", description="B")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert INK in text
    assert "#000000" not in text
    assert "<title" not in plain_svg("<svg viewBox='0 0 1 1'></svg>", "a", "b").replace('<title id="title">a</title>', "")
