"""Published numbers: unchanged, beside ours, and an empty cell names what is missing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from neuralmedbench.cli.model import plan_calls
from neuralmedbench.config.load import load_grader, load_model, load_published, read_yaml
from neuralmedbench.config.published import PublishedConfig
from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.tables import write_table
from neuralmedbench.records.results import COLUMNS
from neuralmedbench.tables.papers.comparison import comparison_rows, escape, latex, markdown, wilson
from neuralmedbench.tables.papers.own_results import OwnResults, model_id
from neuralmedbench.tables.papers.shape import shapes

PAPERS = sorted((ROOT / "config" / "published").glob("*.yaml"))
GPT = {"gpt-4o": load_model(ROOT / "config" / "models" / "gpt-4o.yaml")}
GRADERS = {name: load_grader(ROOT / "config" / "graders" / f"{name}.yaml") for name in ("llm", "rubric")}
WHY = "config/benchmarks/neural-medbench.yaml is not there: import it"


@pytest.fixture
def medbench() -> PublishedConfig:
    """Return the published numbers of Neural-MedBench."""
    return load_published(ROOT / "config" / "published" / "neural-medbench.yaml")


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_a_percentage_with_a_small_denominator_is_a_count_of_it(path: Path) -> None:
    for table in load_published(path).tables.values():
        cells = [
            (row.values[name], row.n or column.n)
            for row in table.rows
            if row.denominators
            for name, column in table.columns.items()
            if name in row.values
        ]
        for percent, n in cells:
            if n and n <= 200:
                assert abs(100 * round(percent * n / 100) / n - percent) < 0.1, (percent, n)


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_every_table_has_a_place_for_ours(path: Path) -> None:
    for table in load_published(path).tables.values():
        assert any(column.ours for column in table.columns.values())


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("table: rates", "table: rate", "there is no table 'rate' of results; there are: leaderboard, readings"),
        ("measure: pass1", "measur: pass1", "the table rates of results has no column 'measur'"),
        ("measure: per_wrong", "mesure: per_wrong", "the table errors of results has no column 'mesure'"),
        ("{benchmark}/{model}.parquet", "{benchmark}/{modle}.parquet", "unknown placeholder {modle}"),
        ("label: GPT-5\n", "label: Lingshu\n", "2 rows are called 'Lingshu' by the source 'P'"),
    ],
)
def test_a_place_of_ours_that_no_table_has_is_refused(tmp_path: Path, before: str, after: str, told: str) -> None:
    text = PAPERS[0].read_text(encoding="utf-8")
    assert before in text
    (tmp_path / "x.yaml").write_text(text.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(told)):
        comparison_rows(published := load_published(tmp_path / "x.yaml"), ours_of(published, tmp_path, absent=WHY))


def ours_of(published: PublishedConfig, folder: Path, *, absent: str = "", models: Any = None) -> OwnResults:
    return OwnResults(
        benchmark=published.benchmark, models=GPT if models is None else models, graders=GRADERS, folder=folder, absent=absent
    )


def write_results(folder: Path, **tables: list[dict[str, Any]]) -> None:
    for name, columns in COLUMNS.items():
        write_table(folder / f"{name}.csv", tables.get(name, []), columns)


def rate(model: str, **changes: Any) -> dict[str, Any]:
    place = {
        "benchmark": "neural-medbench",
        "model": model,
        "topic": "rates",
        "arm": "full",
        "strategy": "direct",
        "slice": "level",
        "value_of_slice": "direct",
    }
    return {**place, "measure": "pass1", "value": 0.25, "low": 0.1, "high": 0.5, "method": "exact", "n_items": 15} | changes


def test_both_readings_of_a_contradiction_stand_there_and_each_cell_says_the_other(medbench: PublishedConfig, tmp_path: Path) -> None:
    table = medbench.tables["main"]
    rows = [row for row in table.rows if row.label == "Claude 4 Sonnet"]
    assert [row.values["direct_pass1"] for row in rows] == [30.0, 16.7]
    assert all(row.conflict for row in rows)
    cells = [row for row in comparison_rows(medbench, ours_of(medbench, tmp_path, absent=WHY)) if row["column"] == "direct_pass1"]
    assert [(row["source"], row["others"]) for row in cells if row["label"] == "Claude 4 Sonnet"] == [("R", "P: 16.7"), ("P", "R: 30.0")]
    assert {row["others"] for row in cells if row["label"] == "GPT-5"} == {""}
    text = markdown(medbench, comparison_rows(medbench, ours_of(medbench, tmp_path, absent=WHY)))
    assert "| 30.0 (16.7–47.9) [P: 16.7] |" in text
    named = {row.label for row in table.rows if row.conflict}
    assert named == {"Claude 4 Sonnet", "MedGemma-27B-it"}
    swapped = {
        (row.label, row.source): {name: value for name, value in row.values.items() if "pass" in name} for row in table.rows if row.conflict
    }
    assert swapped["Claude 4 Sonnet", "R"] == swapped["MedGemma-27B-it", "P"]
    assert swapped["Claude 4 Sonnet", "P"] == swapped["MedGemma-27B-it", "R"]


def test_the_interval_of_a_published_rate_is_wilsons() -> None:
    statsmodels = pytest.importorskip("statsmodels.stats.proportion")
    for level in (0.95, 0.9):
        low, high = statsmodels.proportion_confint(11, 30, alpha=1 - level, method="wilson")
        assert wilson(36.7, 30, level) == pytest.approx((100 * low, 100 * high), abs=1e-6)


def test_every_published_percentage_with_a_denominator_has_its_interval_and_no_other_has_one(
    medbench: PublishedConfig, tmp_path: Path
) -> None:
    rows = [
        row
        for row in comparison_rows(medbench, ours_of(medbench, tmp_path, absent=WHY))
        if row["kind"] == "published" and row["table"] == "main"
    ]
    assert {row["n"] for row in rows if row["column"].startswith("direct") and row["group"] != "human"} == {30}
    for row in rows:
        known = row["group"] != "human" and "pass" in row["column"]
        assert (row.get("low") is not None) is known, row
        assert (row["n"] in (30, 60, 200)) is known
        if known:
            assert (row["low"], row["high"]) == wilson(row["value"], row["n"])
            assert row["low"] <= row["value"] + 0.1
            assert row["interval"] == "95 % Wilson"


def test_ours_stands_below_the_published_row_with_its_interval_and_number(medbench: PublishedConfig, tmp_path: Path) -> None:
    write_results(tmp_path, measures=[rate("gpt-4o")])
    rows = comparison_rows(medbench, ours_of(medbench, tmp_path))
    ours = {cell["column"]: cell for cell in rows if cell["table"] == "main" and cell["kind"] == "ours" and cell["model"] == "gpt-4o"}
    cell = ours["direct_pass1"]
    assert [cell[name] for name in ("value", "low", "high", "n")] == [25, 10, 50, 15]
    assert cell["interval"] == "95 % exact, on the effective number of patients"
    assert ours["complex_pass1"]["missing"] == (
        "no row with arm full, strategy direct, slice level, value_of_slice complex, measure pass1 in topic rates of results/tables/measures.csv, which is made"
        " from results/scores/neural-medbench/gpt-4o.parquet"
    )
    main = shapes(medbench, rows)[0]
    place = next(number for number, line in enumerate(main.lines) if (line.label, line.source) == ("GPT-4o (2025-03-26)", "R, P"))
    assert main.lines[place].cells[0].text == "20.0 (9.5–37.3)"
    assert (main.lines[place + 1].label, main.lines[place + 1].source) == ("GPT-4o", "ours")
    assert main.lines[place + 1].cells[0].text == "25.0 (10.0–50.0) n=15"
    assert main.heads[0] == "Direct pass@1, %"
    assert "Published n: 30 (Direct pass@1, Direct pass@5 (samples)); 60 (" in main.caption
    assert "Intervals, ours: 95 % exact" in main.caption
    assert "arXiv 2509.22258" in main.caption


def test_a_model_of_another_name_stands_below_the_row_that_its_id_means_and_an_unknown_one_at_the_end(
    medbench: PublishedConfig, tmp_path: Path
) -> None:
    def named(id_: str, title: str) -> Any:
        return GPT["gpt-4o"].model_copy(update={"id": id_, "title": title})

    models = {
        "mini": named("openai/gpt-4o-mini", "Small"),
        "house": named("/weights/of/this/machine/house-8b", "House"),
        "big": named("openrouter/openai/gpt-4o-2024-08-06", "Big"),
        "newer": named("anthropic/claude-sonnet-4-5-20250929", "Newer"),
        "older": named("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0", "Older"),
    }
    write_results(tmp_path, measures=[rate(name) for name in models])
    rows = comparison_rows(medbench, ours_of(medbench, tmp_path, models=models))
    lines = [(line.label, line.source) for line in shapes(medbench, rows)[0].lines]
    assert lines[lines.index(("GPT-4o (2025-03-26)", "R, P")) + 1] == ("Big", "ours")
    place = lines.index(("Claude 4 Sonnet", "R"))
    assert lines[place : place + 3] == [("Claude 4 Sonnet", "R"), ("Claude 4 Sonnet", "P"), ("Older", "ours")]
    assert [label for label, source in lines if source == "ours"][-3:] == ["Small", "House", "Newer"]
    assert all(row["value"] == 25 for row in rows if row["kind"] == "ours" and row["column"] == "direct_pass1")
    assert model_id(models["house"]) == "house-8b"
    assert "/weights" not in markdown(medbench, rows)


def test_without_the_data_every_cell_of_ours_names_the_file_that_would_fill_it(medbench: PublishedConfig, tmp_path: Path) -> None:
    rows = comparison_rows(medbench, ours_of(medbench, tmp_path, absent=WHY))
    ours = [row for row in rows if row["kind"] == "ours"]
    assert {row["table"] for row in ours} == {"main", "errors", "cost"}
    files = {
        "rates": "results/scores/neural-medbench/{}.parquet fills it",
        "bertscore": "results/similarity/neural-medbench.parquet fills it",
        "errors": "results/grades/neural-medbench/{}/llm-errors-v2.parquet",
    }
    for row in ours:
        kind = "errors" if row["table"] == "errors" else "bertscore" if "bertscore" in row["column"] else "rates"
        assert row["missing"].startswith(f"{WHY}; then ")
        assert row.get("value") is None
        if row["table"] != "cost":
            assert files[kind].format(row["model"]) in row["missing"]
    for text in (markdown(medbench, rows), latex(medbench, rows)):
        assert "is not there: import it" in text
        assert "GPT-5" in text


def test_a_model_that_is_not_asked_and_one_that_answered_nothing_say_so(medbench: PublishedConfig, tmp_path: Path) -> None:
    asked = {"benchmark": "neural-medbench", "model": "gpt-4o", "arm": "all", "requests": 2000, "answered": 0}
    write_results(tmp_path, costs=[asked], measures=[rate("gpt-4o", value=None, low=None, high=None)])
    rows = comparison_rows(medbench, ours_of(medbench, tmp_path))
    missing = {(row["model"], row["column"]): row["missing"] for row in rows if row["kind"] == "ours" and row["table"] == "main"}
    told = "gpt-4o answered none of 2,000 requests (results/responses/neural-medbench/gpt-4o.parquet): the last lines of the run say why, and what to do"
    assert missing["gpt-4o", "direct_pass1"] == missing["gpt-4o", "complex_bertscore"] == told
    rows = comparison_rows(medbench, ours_of(medbench, tmp_path, models={}))
    missing = {(row["model"], row["column"]): row["missing"] for row in rows if row["kind"] == "ours" and row["table"] == "main"}
    assert missing["gpt-4o", "direct_pass1"] == "config/models/gpt-4o.yaml is not among the `models` of this run"
    assert not [row for row in rows if row["kind"] == "plan"], "what is here is counted by `make plan`, never estimated"


def test_a_model_whose_grades_are_all_missing_says_so(medbench: PublishedConfig, tmp_path: Path) -> None:
    """It has no rate."""
    board = {"benchmark": "neural-medbench", "model": "gpt-4o", "expected": 450, "missing": 450}
    write_results(tmp_path, leaderboard=[board])
    rows = comparison_rows(medbench, ours_of(medbench, tmp_path))
    missing = {row["column"]: row["missing"] for row in rows if row.get("model") == "gpt-4o" and row["table"] == "main"}
    assert missing["direct_pass1"] == "all 450 answers or grades of it are missing (results/scores/neural-medbench/gpt-4o.parquet)"


def test_a_level_of_which_every_answer_is_missing_has_no_number_and_one_of_which_some_are_missing_says_so(
    medbench: PublishedConfig, tmp_path: Path
) -> None:
    """The rate of answers that never came is 0 of n with an interval: a number that nobody measured."""
    lost = rate("gpt-4o", value=0.0, low=0.0, high=0.3, n_answers=75, left_out=75)
    some = rate("gpt-4o", value_of_slice="complex", n_answers=150, left_out=2)
    hidden = rate("gpt-4o", value_of_slice="dialogue", value=None, low=None, high=None, n_items="< 5 patients")
    write_results(tmp_path, measures=[lost, some, hidden])
    rows = [row for row in comparison_rows(medbench, ours_of(medbench, tmp_path)) if row.get("model") == "gpt-4o"]
    cells = {row["column"]: row for row in rows if row["table"] == "main"}
    assert cells["direct_pass1"]["missing"] == "all 75 answers or grades of it are missing (results/scores/neural-medbench/gpt-4o.parquet)"
    assert (cells["complex_pass1"]["value"], cells["complex_pass1"]["note"]) == (
        25,
        "2 of 150 answers or grades are missing and count as wrong",
    )
    assert cells["dialogue_pass1"]["missing"] == "no value in its row of topic rates of results/tables/measures.csv: < 5 patients"
    told = {row["missing"] for row in rows if row["table"] == "errors"}
    files = "results/grades/neural-medbench/gpt-4o/llm-errors-v2.parquet (a grader with `task: errors` among the `graders`)"
    assert told == {f"nobody labelled its answers; {files} or results/ratings/ratings.parquet (a round of clinicians) fills it"}


def test_two_results_for_one_cell_are_an_error_and_not_the_first_of_them(medbench: PublishedConfig, tmp_path: Path) -> None:
    write_results(tmp_path, measures=[rate("gpt-4o"), rate("gpt-4o", value=0.9)])
    with pytest.raises(DataError, match=r"measures\.csv: 2 rows fit one cell of a paper's table"):
        comparison_rows(medbench, ours_of(medbench, tmp_path))


def label_rows(source: str, paper_class: str, share: float) -> list[dict[str, Any]]:
    row = {"benchmark": "neural-medbench", "model": "gpt-4o", "topic": "errors", "source": source, "slice": "class", "n_answers": 12}
    row |= {"value_of_slice": paper_class, "value": share}
    return [{**row, "measure": "share_of_labels"}, {**row, "measure": "per_wrong", "low": 0.01, "high": 0.9}]


def test_errors_name_who_labelled_and_simulated_raters_fill_no_cell(medbench: PublishedConfig, tmp_path: Path) -> None:
    classes = ("perceptual_failure", "reasoning_failure", "knowledge_gap", "grounding_error", "visual_hallucination")
    by_class = dict(zip(classes, (0.25, 0.45, 0.1, 0.05, 0.15), strict=True))
    labels = {"llm-errors": by_class, "round r01": dict.fromkeys(classes, 0.2), "simulated round simulated": dict.fromkeys(classes, 0.9)}
    rows = [row for source, shares in labels.items() for name, share in shares.items() for row in label_rows(source, name, share)]
    write_results(tmp_path, measures=rows)
    found = [
        row for row in comparison_rows(medbench, ours_of(medbench, tmp_path)) if row["table"] == "errors" and row.get("model") == "gpt-4o"
    ]
    by_source = {source: {row["column"]: row for row in found if row["source"] == source} for source in {row["source"] for row in found}}
    assert set(by_source) == {"grader llm-errors", "clinicians, round r01", "simulated raters, round simulated"}
    graded, simulated = by_source["grader llm-errors"], by_source["simulated raters, round simulated"]
    assert (graded["reasoning_failure"]["value"], graded["reasoning_failure"].get("low")) == (45, None)
    assert graded["other"]["value"] == pytest.approx(30)
    assert graded["other"]["n"] == 12
    assert (graded["knowledge_gap_in_wrong"]["value"], graded["knowledge_gap_in_wrong"]["high"]) == (10, 90)
    assert all(row.get("value") is None and "labels of simulated raters say nothing" in row["missing"] for row in simulated.values())
    assert "90.0" not in {
        cell.value for line in shapes(medbench, comparison_rows(medbench, ours_of(medbench, tmp_path)))[1].lines for cell in line.cells
    }


def test_the_plan_estimates_calls_and_money_by_the_published_size_and_the_command_prints_the_same(
    medbench: PublishedConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = {
        (row["label"], row["column"]): row["value"]
        for row in comparison_rows(medbench, ours_of(medbench, tmp_path, absent=WHY))
        if row["table"] == "plan"
    }
    assert plan["GPT-4o", "calls"] == 2 * 5 * 200, "two arms, five answers"
    assert plan["GPT-4o", "prompt_tokens"] == 5 * 1000 * 1000 + 2000 * 533
    assert plan["GPT-4o", "most_usd"] == pytest.approx(plan["GPT-4o", "prompt_tokens"] * 2.5e-6 + 2000 * 1024 * 10e-6)
    grader = "GPT-4o as grader, of GPT-4o"
    assert plan[grader, "calls"] == 2000
    assert plan[grader, "prompt_tokens"] == 2000 * (533 + 1024)
    assert plan[grader, "usd"] == pytest.approx(2000 * 1557 * 2.5e-6 + 2000 * 150 * 10e-6)
    monkeypatch.chdir(ROOT)
    assert plan_calls.main(["--configfiles", "config/paper.yaml"]) == 0
    said = capsys.readouterr().out
    assert "neural-medbench: left out, config/benchmarks/neural-medbench.yaml is missing" in said
    assert "Estimated by the published size, not counted" in said
    for label, name in (("GPT-4o", "gpt-4o"), (grader, "llm on gpt-4o")):
        numbers = [f"{plan[label, column]:,}" for column in ("calls", "prompt_tokens", "completion_tokens")]
        numbers += [f"{plan[label, column]:,.2f}" for column in ("usd", "most_usd")]
        assert re.search(rf"neural-medbench +{name} +{' +'.join(map(re.escape, numbers))}\n", said), numbers


def test_a_model_without_prices_says_so_in_the_plan(medbench: PublishedConfig, tmp_path: Path) -> None:
    free = {"free": GPT["gpt-4o"].model_copy(update={"prices": None})}
    rows = comparison_rows(medbench, OwnResults(benchmark="neural-medbench", models=free, folder=tmp_path, absent=WHY))
    (cell,) = [row for row in rows if row["table"] == "plan" and row["column"] == "most_usd"]
    assert (cell["value"], cell["missing"]) == (None, "no prices in its yaml")


HOSTILE = "50 % | a_b & {x} \\ ~ ^ # $ <i> “q” `code` 5–6 ≥ 通 \u202e"


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_latex_is_text_in_balanced_tables_of_equal_lines(path: Path, tmp_path: Path) -> None:
    published = load_published(path)
    models = {"gpt-4o": GPT["gpt-4o"].model_copy(update={"title": f"[1] {HOSTILE}"})}
    text = latex(published, comparison_rows(published, ours_of(published, tmp_path, absent=HOSTILE, models=models)))
    assert_compiles(text, tables=len(published.tables) + 1)
    assert "\n{}[1] 50 \\%" in text, "a line that begins with a bracket would be an argument of the line break before it"


def assert_compiles(text: str, *, tables: int) -> None:
    """Check a LaTeX file for what would break its compilation, without an engine."""
    plain = re.sub(r"^%.*\n", "", text, flags=re.MULTILINE)
    bare = re.sub(r"\\[&%$#_{}]|\\\\", "", plain)
    depth = 0
    for letter in bare:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        assert depth >= 0
    assert depth == 0
    places = re.findall(r"\\(begin|end)\{(\w+)\}", plain)
    stack: list[str] = []
    for what, name in places:
        if what == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert not stack
    assert sum(place == ("begin", "table") for place in places) == tables
    for body in re.findall(r"\\begin\{tabular\}\{(l+r+)\}(.*?)\\end\{tabular\}", plain, flags=re.DOTALL):
        lines = [line for line in body[1].splitlines() if line.endswith("\\\\")]
        assert len(lines) > 1
        assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {len(body[0]) - 1}
    known = r"\\(begin|end|caption|resizebox|textwidth|toprule|midrule|bottomrule|centering|par|smallskip|footnotesize|texttt|text\w+|geq|leq|times|dag|ldots|approx)"
    assert not set(re.sub(known, "", bare)) & set('\\#$_^~"`') - set("$" if "$\\geq$" in plain else "") - set("`" if "``" in plain else "")
    assert all(letter.isprintable() and ord(letter) <= 0x17F for letter in plain if letter != "\n")
    assert len(re.findall(r"\$", bare)) % 2 == 0


def test_what_latex_reads_as_a_command_is_text() -> None:
    assert escape("a_b & 5 % of it") == r"a\_b \& 5 \% of it"
    assert escape("\\input{x}") == r"\textbackslash{}input\{x\}"
    assert escape("run `make plan`, 5–6, “so”") == r"run \texttt{make plan}, 5--6, ``so''"
    assert escape("\u202e通") == "[U+202E][U+901A]"


def test_markdown_lines_have_as_many_cells_as_their_head(medbench: PublishedConfig, tmp_path: Path) -> None:
    models = {"gpt-4o": GPT["gpt-4o"].model_copy(update={"title": "a | b\nc"})}
    text = markdown(medbench, comparison_rows(medbench, ours_of(medbench, tmp_path, absent="x | y", models=models)))
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    assert len(tables) == len(medbench.tables) + 1
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert "| a \\| b c " in text


def test_a_run_leaves_out_what_is_not_there_only_when_it_is_told_to() -> None:
    config = read_yaml(ROOT / "config" / "paper.yaml")
    run = Run.read(config, ROOT / "config")
    assert run.absent["neurovlm"] == f"{(ROOT / 'config' / 'benchmarks' / 'neurovlm.yaml').as_posix()}"
    assert run.why_absent("neurovlm-bench").endswith("is not there: nmb benchmark import neurovlm --from FOLDER")
    with pytest.raises(ConfigError, match=r"neural-medbench\.yaml: the file is not there"):
        Run.read({**config, "leave_out_absent": False}, ROOT / "config")


def test_a_value_of_a_column_that_the_table_does_not_have_is_refused(tmp_path: Path) -> None:
    text = PAPERS[0].read_text(encoding="utf-8").replace("values: {direct_pass1:", "values: {direct_pas1:", 1)
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="the row 'GPT-5' has values of columns that the table does not have: direct_pas1"):
        load_published(tmp_path / "x.yaml")
