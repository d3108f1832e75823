"""Figures: equal tables give equal bytes, descriptions match the rows, and an empty table gives a figure that states why."""

from __future__ import annotations

import csv
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from neuralmedbench.figures.drawings import Dot, DotRow, Whisker, draw_paired_dots, empty_figure
from neuralmedbench.figures.gallery import FEW_PATIENTS, FIGURES, draw_figures
from neuralmedbench.figures.rates import axes_words, keep_both_axes
from neuralmedbench.figures.style import INK, looks, styled
from neuralmedbench.figures.svg import plain_svg, save_figure
from neuralmedbench.figures.table import Row
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_table
from neuralmedbench.records.results import COLUMNS, PASS1
from neuralmedbench.report.source import inline_svg

MODELS = [f"m{number:02d}" for number in range(20)]
LONG = "A vision-language model of another vendor with a title that is far too long for any axis"


def write(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS[name], restval="")
        writer.writeheader()
        writer.writerows(rows)


def fill(folder: Path, models: list[str]) -> None:
    seen = {"n_items": 90, "n_patients": 40}
    board = [
        {"benchmark": "deep", "axis": "depth", "model": name, "title": f"{name} & <co>" if place else LONG, "tier": 1 + place // 3, **seen}
        | {"pass1": 0.9 - 0.04 * place, "pass1_low": 0.1, "pass1_high": 0.95}
        for place, name in enumerate(models)
    ]
    board += [{"benchmark": "deep", "axis": "depth", "model": "prior", "title": "Prior", "pass1": 0.2, **seen}] if models else []
    board = [row | {name.replace("pass1", "pass1_patients"): row[name] for name in PASS1 if name in row} for row in board]
    broad = [row | {"benchmark": "broad", "axis": "breadth"} for row in board]
    write(folder, "leaderboard", [*board, *broad])
    contrasts = [{"topic": "arms", "benchmark": "deep", "model": name, "arm": "no_image", "difference": -0.2, **seen} for name in models]
    sides = (("recognised", 0.75), ("found", 0.25))
    asked_twice = [{"topic": "title", "benchmark": "deep", "model": name, "measure": side, "value": share - 0.01 * place, "low": 0.2,
                    "high": 0.8, **seen} for place, name in enumerate(models) for side, share in sides]  # fmt: skip
    full = {"topic": "rates", "benchmark": "deep", "arm": "full", "strategy": "direct", "measure": "pass1", "low": 0.2, "high": 0.8}
    slices = [("all", "all", 90, 40), ("level", "complex", 50, 20), ("level", "direct", 40, 9), ("diagnosis", LONG, 5, 2)]
    measures = asked_twice + [{**full, "model": name, "slice": part, "value_of_slice": value, "value": 0.5 + 0.02 * place, "n_items": items,
                 "n_patients": patients} for place, name in enumerate(models) for part, value, items, patients in slices]  # fmt: skip
    classes = ("perceptual_failure", "visual_hallucination", "reasoning_failure", "knowledge_gap", "grounding_error")
    for name, source in product(models, ("stated", "agreement", "tokens")):
        row = {"topic": "confidence", "benchmark": "deep", "model": name, "source": source, "low": 0.1, "high": 0.8, "n_answers": 9}
        for number, (measure, step) in product(range(1, 6), (("mean_confidence", 0.18), ("share_right", 0.15))):
            measures.append({**row, "measure": measure, "slice": "bin", "value_of_slice": number, "value": step * number})
    for name, source, one in product(models, ("judge", "simulated round r1"), classes):
        row = {"topic": "errors", "benchmark": "deep", "model": name, "source": source, "slice": "class", "value_of_slice": one, **seen}
        shares = {"per_response": (0.2, 60), "per_wrong": (0.4, 30), "significant": (0.5, 60)}
        measures += [{**row, "measure": measure, "value": share, "n_answers": n} for measure, (share, n) in shares.items()]
    write(folder, "measures", measures)
    write(folder, "contrasts", contrasts)
    write(folder, "counts", [])
    paid = {"priced_on": "2026-01-02", "answered": 90, **seen}
    write(folder, "costs", [{"benchmark": "deep", "model": name, "arm": "full", "pass1": 0.3 + 0.02 * place, "pass1_low": 0.2, "pass1_high": 0.8,
                             "completion_tokens_per_item": 10 + 20 * place}
                           | ({"usd_per_item": 0.001 * 2**place, "on_frontier": "true", **paid} if place != 1 else seen)
                           for place, name in enumerate(models)])  # fmt: skip
    write(
        folder,
        "case_flow",
        [{"benchmark": "deep", "unit": "case", "step": step, "n": n} for step, n in (("listed", 9), ("used", 9))] if models else [],
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Make tables of no model, one, three and twenty."""
    root = tmp_path_factory.mktemp("tables")
    for number in (0, 1, 3, 20):
        fill(root / str(number), MODELS[:number])
    return {number: root / str(number) for number in (0, 1, 3, 20)}


@pytest.fixture(scope="module")
def drawn(tables: dict[int, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Draw the figures of no model, one and three; do not change them."""
    root = tmp_path_factory.mktemp("drawn")
    for number in (0, 1, 3):
        draw_figures(tables[number], root / str(number))
    return {number: root / str(number) for number in (0, 1, 3)}


def rows_of(folder: Path, name: str) -> list[Row]:
    return read_result(folder, FIGURES[name].table)


@pytest.mark.parametrize("number", [0, 1, 3])
def test_every_figure_is_drawn_and_drawn_alike(number: int, tables: dict[int, Path], drawn: dict[int, Path], tmp_path: Path) -> None:
    if number == 1:
        draw_figures(tables[number], tmp_path)
    page = ""
    for name, figure in FIGURES.items():
        text = (drawn[number] / f"{name}.svg").read_text(encoding="utf-8")
        if number == 1:
            assert text == (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        assert f'<title id="title">{figure.title}</title>' in text
        assert re.search(r'<desc id="desc">[^<]{10,}\.</desc>', text)
        assert "style=" not in text
        assert "<style" not in text
        assert "<text" in text
        assert not re.search(r'(?:href|src)="(?!#)', text)
        assert "metadata" not in text
        assert "<co>" not in text
        assert not re.search(r'"(?:#000|#000000|black)"', text), "black is not seen on the dark page"
        page += inline_svg(text, f"figure-{name}")
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    named = [part for found in re.findall(r'aria-labelledby="([^"]+)"', page) for part in found.split()]
    assert len(named) == 2 * len(FIGURES)
    assert {*named, *re.findall(r'href="#([^"]+)"', page), *re.findall(r"url\(#([^)]+)\)", page)} <= set(ids)
    assert INK not in page


@pytest.mark.parametrize("name", FIGURES)
def test_the_description_follows_the_rows_and_is_short(name: str, tables: dict[int, Path]) -> None:
    figure = FIGURES[name]
    said = {number: figure.description(rows_of(folder, name)) for number, folder in tables.items()}
    assert said[0] == (figure.empty([]) if callable(figure.empty) else figure.empty)
    three = rows_of(tables[3], name)
    half = [
        {column: f"{float(cell) / 2:.6f}" if re.fullmatch(r"-?0\.\d+", cell) else cell for column, cell in row.items()} for row in three
    ]
    other = [row | {"n": "7"} for row in half] if name == "case_flow" else half
    assert figure.description(other) != said[3]
    assert not re.search(r"\bnan\b|None", said[3])
    assert all(len(re.findall(r"\. (?=[A-Za-z])", text)) <= 2 for text in said.values()), "more than three sentences"
    assert max(map(len, said.values())) < 700


@pytest.mark.parametrize("name", FIGURES)
def test_a_table_that_a_public_run_hides_says_so_in_its_figure(name: str, tables: dict[int, Path]) -> None:
    about = {
        "benchmark",
        "axis",
        "model",
        "other",
        "arm",
        "strategy",
        "slice",
        "value_of_slice",
        "measure",
        "level",
        "kind",
        "step",
        "unit",
    }
    count = "cases" if name == "case_flow" else "n_patients"
    hidden = [
        {column: cell if column in about else "" for column, cell in row.items()} | {count: "<10"} for row in rows_of(tables[3], name)
    ]
    said = FIGURES[name].description(hidden)
    assert said == FEW_PATIENTS or name in {"heatmap", "case_flow"}
    if name == "heatmap":
        assert "9 groups" not in said
    with styled():
        import matplotlib.pyplot as plt

        kept = FIGURES[name].keep(hidden)
        plt.close(FIGURES[name].draw(kept) if kept else empty_figure(said))


def overlaps(figure: Any) -> list[tuple[str, str]]:
    """Return labels of one axis that overlap, and labels covered by the legend."""
    figure.draw_without_rendering()
    found, legends = [], [legend.get_window_extent() for legend in figure.legends]
    for axes in figure.axes:
        for labels in (axes.get_xticklabels(), axes.get_yticklabels(), axes.texts):
            boxes = [(one.get_text(), one.get_window_extent()) for one in labels if one.get_text().strip() and one.get_visible()]
            for place, (text, box) in enumerate(boxes):
                found += [(text, other) for other, beside in boxes[place + 1 :] if box.padded(-1).overlaps(beside.padded(-1))]
                found += [(text, "the legend") for legend in legends if box.padded(-1).overlaps(legend)]
    return found


@pytest.mark.parametrize("name", sorted(set(FIGURES) - {"case_flow"}))
def test_no_label_lies_on_another_with_twenty_models(name: str, tables: dict[int, Path]) -> None:
    import matplotlib.pyplot as plt

    kept = FIGURES[name].keep(rows_of(tables[20], name))
    with styled():
        figure = FIGURES[name].draw(kept)
        try:
            assert overlaps(figure) == []
        finally:
            plt.close(figure)


@pytest.mark.parametrize("number", [1, 20])
def test_paired_dots_have_a_hollow_and_a_filled_mark_a_row_and_a_line_between_them(number: int, tmp_path: Path) -> None:
    import matplotlib.pyplot as plt

    style, sides = looks(MODELS), (Whisker(0.8, 0.6, 0.9), Whisker(0.3, 0.1, 0.5))
    rows = [DotRow(name, [Dot(name, style[name], side) for side in sides], name) for name in MODELS[:number]]
    with styled():
        figure = draw_paired_dots({"deep": rows}, ("recognised among options", "found alone"), "share of cases")
        try:
            assert overlaps(figure) == []
            assert [text.get_text() for text in figure.legends[0].get_texts()] == ["recognised among options", "found alone"]
            drawn = [line for line in figure.axes[0].lines if line.get_gid() == f"model:{MODELS[0]}"]
            marks = [line for line in drawn if line.get_marker() not in ("None", "", None)]
            assert [(list(mark.get_xdata()), mark.get_markerfacecolor()) for mark in marks] == [
                ([0.8], "none"),
                ([0.3], style[MODELS[0]].colour),
            ]
            spans = [list(line.get_xdata()) for line in drawn if line not in marks]
            assert spans == [[0.6, 0.9], [0.1, 0.5], [0.8, 0.3]]
        finally:
            plt.close(figure)


FORMULA = r"$\wrong$ 5"


@pytest.fixture(scope="module")
def titled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Draw the figures of three models with titles, of which the first in the tables is a baseline; a benchmark is named like a formula."""
    root = tmp_path_factory.mktemp("titled")
    fill(root / "tables", MODELS[:3])
    board = read_table(root / "tables" / "leaderboard.csv")
    titles = {"m00": f"Third {FORMULA}", "m01": "First", "m02": "Second", "prior": "Best constant answer"}
    baseline = {"m00": "true"}
    write(
        root / "tables",
        "leaderboard",
        [row | {"title": titles[row["model"]], "baseline": baseline.get(row["model"], "false")} for row in board],
    )
    for path in (root / "tables").glob("*.csv"):
        path.write_text(re.sub(r"\bdeep\b", lambda _: FORMULA, path.read_text()))
    draw_figures(root / "tables", root / "drawn")
    return root / "drawn"


def test_a_title_with_dollar_signs_is_drawn_as_it_is_written(titled: Path) -> None:
    r"""Two dollar signs and a backslash are a formula to matplotlib: there was a traceback, and no report."""
    drawn = "".join(path.read_text() for path in titled.glob("*.svg"))
    assert FORMULA in drawn
    assert f"Third {FORMULA}" in drawn


def test_every_figure_names_models_by_title_and_in_one_order(titled: Path) -> None:
    for name in sorted(set(FIGURES) - {"case_flow", "leaderboard"}):
        shown = texts(titled / f"{name}.svg")
        assert not [text for text in shown if re.search(r"\bm0\d\b", text)], name
        # without the numbers that a matrix puts behind a name, and what an axis adds
        order = [title for text in shown for title in ("First", "Second", "Third") if text.startswith(title)]
        assert list(dict.fromkeys(order)) == ["First", "Second", "Third"], name


def test_two_labels_on_one_spot_are_found() -> None:
    with styled():
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots()
        axes.set_xticks([0, 0.01], ["first label", "second label"])
        assert overlaps(figure) == [("first label", "second label")]
        plt.close(figure)


def texts(path: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))


def test_small_groups_are_hatched_and_hidden_ones_have_no_number(tables: dict[int, Path], tmp_path: Path) -> None:
    rows = rows_of(tables[1], "heatmap")

    def hatched(fewest: int) -> int:
        FIGURES["heatmap"].save(tmp_path / "heatmap.svg", [row | {"fewest": str(fewest)} for row in rows])
        return len(re.findall(r'fill="url\(#', (tmp_path / "heatmap.svg").read_text(encoding="utf-8")))

    assert [hatched(fewest) for fewest in (2, 9, 10, 21, 41)] == [0, 1, 2, 3, 4]
    shown = texts(tmp_path / "heatmap.svg")
    assert shown.count("50") == 4
    assert "complex, n = 20" in shown
    hidden = [row | {"value": "", "n_patients": "<10"} if row["value_of_slice"] == "direct" else row for row in rows]
    FIGURES["heatmap"].save(tmp_path / "hidden.svg", hidden)
    shown = texts(tmp_path / "hidden.svg")
    assert shown.count("50") == 3
    assert "direct, n = &lt;10" in shown
    assert "3 groups, 1 of fewer than 10 patients, 1 without a rate" in FIGURES["heatmap"].description(hidden)


def test_right_answers_are_drawn_over_tokens_and_money(tables: dict[int, Path], tmp_path: Path) -> None:
    rows = rows_of(tables[3], "cost")
    FIGURES["cost"].save(tmp_path / "cost.svg", rows)
    assert [text[:16] for text in texts(tmp_path / "cost.svg") if "one answer" in text] == ["tokens out for o", "USD for one answ"]
    assert "1 model without a price" in FIGURES["cost"].description(rows)
    unpriced = [row for row in rows if not row["usd_per_item"]]
    FIGURES["cost"].save(tmp_path / "tokens.svg", unpriced)
    assert not any("USD" in text for text in texts(tmp_path / "tokens.svg"))
    unknown = [row | {"completion_tokens_per_item": ""} for row in unpriced]
    assert FIGURES["cost"].description(unknown) == FIGURES["cost"].empty


def test_settings_of_one_model_are_joined(tables: dict[int, Path], tmp_path: Path) -> None:
    apart = rows_of(tables[3], "cost")
    joined = [row | {"shared_id": "openai/m"} for row in apart]
    paths = []
    for name, rows in (("apart", apart), ("joined", joined)):
        FIGURES["cost"].save(tmp_path / f"{name}.svg", rows)
        paths.append((tmp_path / f"{name}.svg").read_text(encoding="utf-8").count("<path"))
    assert paths[1] == paths[0] + 2, "one line over tokens, one over money"


def test_simulated_raters_are_named_in_titles_and_words(tables: dict[int, Path], tmp_path: Path) -> None:
    title, rows = "deep: labelled by simulated raters", rows_of(tables[3], "errors")
    FIGURES["errors"].save(tmp_path / "errors.svg", rows)
    assert texts(tmp_path / "errors.svg").count(title) == 1
    assert title in FIGURES["errors"].description(rows)


def test_a_model_keeps_its_colour_and_shape_whoever_is_in_the_table() -> None:
    assert looks(["b", "a", "prior"]) == looks(["a", "prior", "b"])
    assert len({(look.colour, look.marker) for look in looks(MODELS).values()}) == 21
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


def test_coordinates_are_hundredths_of_a_pixel_and_numbers_in_words_stay_as_they_are() -> None:
    drawn = '<text x="550.530033" y="1.5" transform="rotate(-0 550.530033 1.5)">p 0.0012</text><g transform="rotate(-90 1.234567 2)"/>'
    plain = plain_svg(f"<svg viewBox='0 0 1 1'>{drawn}</svg>", "a", "b")
    assert '<text x="550.53" y="1.5">p 0.0012</text><g transform="rotate(-90 1.23 2)"/>' in plain


def test_what_is_drawn_for_a_model_carries_its_name(drawn: dict[int, Path]) -> None:
    for name in ("leaderboard", "glance", "arms", "errors", "reliability", "heatmap"):
        text = (drawn[3] / f"{name}.svg").read_text(encoding="utf-8")
        assert set(re.findall(r'data-model="([^"]*)"', text)) == set(MODELS[:3]) | ({"prior"} if 'data-model="prior' in text else set()), (
            name
        )


def test_breadth_and_depth_are_drawn_by_the_number_that_ranks() -> None:
    def row(axis: str, patients: str, items: str) -> dict[str, str]:
        ends = {f"{name}_{end}": value for name, value in (("pass1", items), ("pass1_patients", patients)) for end in ("low", "high")}
        known = {"benchmark": axis, "axis": axis, "model": "alpha", "title": "Alpha", "reader": ""}
        return known | ends | {"pass1": items, "pass1_patients": patients}

    rows = keep_both_axes([row("breadth", "0.31", "0.4"), row("depth", "0.68", "0.69"), row("depth", "", "0.69") | {"model": "beta"}])
    assert [(one["model"], one["axis"]) for one in rows] == [("alpha", "breadth"), ("alpha", "depth")]
    words = axes_words("", rows)
    assert "31 %" in words
    assert "68 %" in words
    assert "69 %" not in words
