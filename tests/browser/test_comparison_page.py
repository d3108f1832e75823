"""The page of two runs: it is found from their names, shows what changed, gives nothing away, and is usable by everybody."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.chromium import CHROMIUM, Browser, browser
from fixtures.leak import leaks_in
from fixtures.report import build
from fixtures.tables import DEPTH, HOSTILE, write_study
from neuralmedbench.cli.main import main
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.scores import Score, response_key

MODELS = ("alpha", "beta")
FINDINGS = """axe.run(document, {resultTypes: ["violations"]}).then((found) =>
  found.violations.map((one) => `${one.impact} ${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" and ")}`))"""
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


def two_runs(root: Path, profile: str = "internal", kind: str = "phantom") -> Path:
    """Write two finished runs of invented models: in the second, every wrong answer of alpha to the depth items of eight cases is right."""
    write_study(root, models=MODELS, patients=22 if kind == "patient" else 12, kind=kind, hostile=True)
    build(root, MODELS, profile, figures=False)
    (root / "config" / "config.yaml").write_text(
        f"benchmarks: [{DEPTH}]\nmodels: [alpha]\nvocabulary: config/vocabulary.yaml\n", encoding="utf-8"
    )
    other = root / "results" / "later"
    shutil.copytree(root / "results", other, ignore=shutil.ignore_patterns("later"))
    (root / "config" / "later.yaml").write_text("statistics: {resamples: 200}\n", encoding="utf-8")
    told = json.loads((other / "provenance.json").read_text(encoding="utf-8")) | {"configfiles": ["config/later.yaml"], "run": "later"}
    (other / "provenance.json").write_text(json.dumps(told), encoding="utf-8")
    path = other / "scores" / DEPTH / "alpha.parquet"
    rows = [replace(row, passed=True, text_sha256="1" * 64) if row.case_id < "case08" else row for row in read_records(path, Score)]
    write_records(path, Score, rows, key=response_key)
    return root


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compare the two runs; the folder of the project."""
    root = two_runs(tmp_path_factory.mktemp("compared"))
    before = Path.cwd()
    os.chdir(root)
    try:
        assert main(["run", "compare", "config", "later"]) == 0
    finally:
        os.chdir(before)
    return root


def rows_of(root: Path, name: str) -> list[dict[str, str]]:
    with (root / "results/compare/config--later" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def text_of(root: Path) -> str:
    return (root / "results/compare/config--later.html").read_text(encoding="utf-8")


def test_rates_are_those_of_the_report_and_items_those_of_a_hand_count(compared: Path) -> None:
    with (compared / "results/tables/leaderboard.csv").open(encoding="utf-8", newline="") as file:
        board = {(row["benchmark"], row["model"]): row for row in csv.DictReader(file)}
    whole = [row for row in rows_of(compared, "differences") if row["comparisons"] == "whole"]
    assert {(row["benchmark"], row["model"]) for row in whole} == {key for key in board if key[1] != "prior"}
    for row in whole:
        assert row["a"] == board[row["benchmark"], row["model"]]["pass1_patients"]
    scores = [read_records(compared / folder / "scores" / DEPTH / "alpha.parquet", Score) for folder in ("results", "results/later")]
    passes = [{row.item_id: 0 for row in rows} for rows in scores]
    for count, rows in zip(passes, scores, strict=True):
        for row in rows:
            count[row.item_id] += row.arm == "full" and bool(row.passed)
    gained = {item for item, number in passes[0].items() if number <= 2 < passes[1][item]}
    assert {row["item_id"] for row in rows_of(compared, "changed_items")} == gained != set()
    (row,) = (one for one in whole if (one["benchmark"], one["model"]) == (DEPTH, "alpha"))
    assert float(row["difference"]) == pytest.approx((sum(passes[1].values()) - sum(passes[0].values())) / (5 * len(passes[0])), abs=1e-6)
    page = text_of(compared)
    assert "on the items that both answered" in page
    assert f'href="../report.html#case-{DEPTH}-' in page
    assert f'href="../later/report.html#case-{DEPTH}-' in page


def test_the_page_says_how_the_runs_differ(compared: Path) -> None:
    facts = {row["name"]: row for row in rows_of(compared, "runs")}
    changed = facts["statistics.resamples"]
    assert (changed["topic"], changed["a"], changed["b"], changed["same"]) == ("settings", "10000", "200", "false")
    assert facts[f"alpha on {DEPTH}.revision"]["same"] == "true"
    assert facts["configfiles"]["b"] == "config/later.yaml"


def test_nothing_of_a_patient_is_on_the_page_that_is_not_in_a_report(compared: Path) -> None:
    files = [path for path in (compared / "results/compare").rglob("*") if path.is_file()]
    assert leaks_in(files, compared, ["Three weeks of headache", "patient00", str(compared), HOSTILE[:20]]) == []
    shown = rows_of(compared, "changed_items")[0]["item_id"]
    assert leaks_in([compared / "results/compare/config--later/changed_items.csv"], compared, [shown]), "what is there is found"


def test_a_public_page_names_no_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = two_runs(tmp_path, "public", "patient")
    monkeypatch.chdir(root)
    assert main(["run", "compare", "config", "later"]) == 0
    page = text_of(root)
    assert "case0" not in page
    assert "two runs, public" in page
    assert rows_of(root, "changed_items") == []
    assert "single cases of patients stay out of a public page" in page


def test_of_one_run_only_the_named_models_are_compared(compared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(compared)
    assert main(["run", "compare", "config", "--pair", "alpha=beta"]) == 0
    with (compared / "results/compare/config--config/differences.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["model"], row["model_b"]) for row in rows} == {("alpha", "beta")}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("config", "latr"), "latr: no run of this name is here; did you mean 'later'"),
        (
            ("config", "begun"),
            "begun: this run has no report yet, so there is nothing to compare; finish it: snakemake --cores 8 --configfile config/begun.yaml",
        ),
        (("config",), "nmb run compare: name two runs, or one run with --pair MODEL@1=MODEL@2, or a model with --probe"),
        (("config", "later", "--pair", "alpha"), "alpha: a pair is OLD=NEW"),
        (("config", "later", "--pair", "alpha=delta"), "alpha=delta: the run later has no model delta; it has alpha, beta"),
        (("config", "later", "--pair", "alpha@7=alpha"), "alpha@7: the run config holds no answers of this revision to demo; it has 1"),
    ],
)
def test_what_cannot_be_compared_is_one_line_with_the_next_step(
    compared: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(compared)
    (compared / "results/begun").mkdir(exist_ok=True)
    with pytest.raises(ConfigError) as refused:
        main(["run", "compare", *words])
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


@pytest.fixture(scope="module")
def page(compared: Path) -> Iterator[Browser]:
    """Open the page in a browser."""
    with browser(compared) as opened:
        opened.open(compared / "results/compare/config--later.html")
        opened.run("new Promise((done) => setTimeout(done, 300))")
        yield opened


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize(
    ("scheme", "width"),
    [("light", 1440), ("dark", 390), *(pytest.param(*one, marks=pytest.mark.long) for one in (("dark", 1440), ("light", 390)))],
)
def test_a_checker_of_accessibility_finds_nothing(page: Browser, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_core_python", reason="axe is a package of the development environment: make setup")
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.run("new Promise((done) => setTimeout(done, 200))")
    page.run((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8") + "; undefined")
    assert page.run(FINDINGS) == []
    assert page.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert page.complaints == []


CUT = """[...document.querySelectorAll('#numbers > .scroll')].map((one) => one.scrollWidth - one.clientWidth)"""
PHONE = """({
  page: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  cut: [...document.querySelectorAll('.scroll:has(table)')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent.slice(0, 60)),
  heads: [...document.querySelectorAll('#numbers tbody td')].every((one) => getComputedStyle(one, '::before').content.length > 3),
})"""
LONG = "qwen-vl-seventy-two-b-second-try"


@needs_browser
@pytest.mark.browser
def test_long_names_push_no_column_out_of_the_page(page: Browser, compared: Path) -> None:
    """Tables of numbers fit a desktop, and are whole on paper, however long the names of the runs and the models are."""
    path = compared / "results/compare/config--later.html"
    long = compared / "results/compare/long.html"
    long.write_text(
        path.read_text(encoding="utf-8")
        .replace(">later</button>", f">{LONG}</button>")
        .replace("Alpha VLM", "Alpha VLM 72B Instruct, local weights"),
        encoding="utf-8",
    )
    for media, width in (("screen", 1440), ("screen", 1280), ("print", 740)):
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        page.call("Emulation.setEmulatedMedia", media=media)
        page.open(long)
        assert page.run(CUT) == [0], (media, width)
    page.call("Emulation.setEmulatedMedia", media="")
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=900, deviceScaleFactor=1, mobile=False)
    page.open(long)
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.run(PHONE) == {"page": 0, "cut": [], "heads": True}
    page.open(path)
