"""The report: one offline page that escapes all text and computes no result."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import html
import json
import re
import shutil
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from markupsafe import escape

from conftest import ROOT
from fixtures.report import MODELS, blocks_of, build, lacking, opened, page, parts_of, unpacked
from fixtures.tables import BREADTH, DEPTH, GRADERS, lose_answers, write_study
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.figures.gallery import FIGURES
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.result_tables import read_result, read_results
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.result_columns import TOPICS
from neuralmedbench.records.results import COLUMNS
from neuralmedbench.records.scores import Score, response_key
from neuralmedbench.records.words import DASHED, percent, percent_span, points, points_span
from neuralmedbench.report.blocks import BLOCKS, PARTS, folded
from neuralmedbench.report.blocks import blocks_of as reported
from neuralmedbench.report.elements import TEMPLATES
from neuralmedbench.report.page import MOST_LINES, templates, write_report
from neuralmedbench.report.source import LIST_OF_CASES, read_source


class Page(HTMLParser):
    """Elements of a page, as a browser would parse them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[str] = []
        self.open_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self.open_script = tag == "script"

    def handle_data(self, data: str) -> None:
        if self.open_script:
            self.scripts.append(data)

    def handle_endtag(self, tag: str) -> None:
        self.open_script = self.open_script and tag != "script"

    def find(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report")
    write_study(root, patients=12, hostile=True)
    return root


@pytest.fixture(scope="module")
def text(study: Path) -> str:
    return build(study)


def test_two_builds_are_equal_byte_for_byte(study: Path, text: str) -> None:
    assert page(study, MODELS) == text


def test_the_page_loads_nothing(text: str) -> None:
    found = Page(text)
    for _, attributes in found.elements:
        for name in ("src", "xlink:href", "action", "data", "poster", "srcset"):
            assert attributes.get(name, "#").startswith(("#", "data:")), attributes
        assert attributes.get("href", "#").startswith("#"), attributes
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"url\((?!#)", text)
    assert not re.search(r"@import", text)
    links = set(re.findall(r"https?://[^\s\"'<]+", text))
    assert {link for link in links if "www.w3.org" not in link and "judge.example" not in link} == set()


def test_script_and_style_are_allowed_by_their_digests_alone(text: str) -> None:
    policy = next(attributes["content"] for attributes in Page(text).find("meta") if "http-equiv" in attributes)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    style = re.search(r"<style>(.*?)</style>", text, flags=re.DOTALL)
    script = re.search(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    assert style
    assert script
    for part in (style[1], script[1]):
        assert base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() in policy


def test_a_hostile_answer_and_a_hostile_question_stay_text(text: str) -> None:
    found = Page(text)
    assert len([attributes for attributes in found.find("script") if "type" not in attributes]) == 1
    assert all("onerror" not in attributes for attributes in found.find("img"))
    assert "<img src=x" not in text
    packed = re.findall(r'class="case-data">([^<]*)</script>', text)
    items = [item for part in packed for item in unpacked(part)]
    assert any(row["text"].startswith("</script><script>") for item in items for row in item["responses"])
    assert any(item["question"].startswith("</script><script>") and item["context"].startswith("</script><script>") for item in items)


def test_no_id_stands_on_the_page_twice_and_every_reference_has_its_target(text: str) -> None:
    found = Page(text)
    ids = Counter(attributes["id"] for _, attributes in found.elements if "id" in attributes)
    assert [name for name, number in ids.items() if number > 1] == []
    links = [attributes[name] for _, attributes in found.elements for name in ("href", "xlink:href") if name in attributes]
    targets = {link[1:] for link in links if link.startswith("#")}
    targets |= {part for _, attributes in found.elements for part in attributes.get("aria-labelledby", "").split()}
    targets |= set(re.findall(r"url\(#([^)]+)\)", text))
    assert targets <= set(ids)


def test_the_page_can_be_read_aloud(text: str) -> None:
    found = Page(text)
    assert len(found.find("h1")) == 1
    assert len(found.find("caption")) == len(found.find("table"))
    assert all("scope" in attributes for attributes in found.find("th"))
    drawings = [attributes for attributes in found.find("svg") if attributes.get("role") == "img"]
    assert len(drawings) == text.count('<figure class="drawing') > 6
    assert all("aria-labelledby" in attributes for attributes in drawings)
    assert all(attributes.get("aria-hidden") == "true" for attributes in found.find("svg") if attributes.get("role") != "img")


def test_numbers_on_the_page_are_the_cells_of_the_tables(study: Path, text: str) -> None:
    # numbers of few patients are grey with their n, which `test_few_patients.py` checks
    plain = re.sub(r'<span class="few">(.*?)(?: <i>n\xa0=\xa0\d</i>)?</span>', r"\1", unescape(text))
    rows = list(csv.DictReader((study / "results" / "tables" / "leaderboard.csv").open(encoding="utf-8")))
    for row in rows:
        for name in ("pass1", "pass5", "candidates5"):
            if row[name]:
                span = percent_span(row[f"{name}_low"], row[f"{name}_high"], DASHED)
                shown = (
                    rf'data-value="{row[name]}"><b>{percent(row[name])}</b><small( data-element="[a-z0-9-]+")?>{re.escape(span)}</small>'
                )
                assert re.search(shown, plain)
    interval = r'</b><small data-element="[a-z0-9-]+-interval">'
    arms = read_result(study / "results" / "tables", "arms")
    for row in arms:
        span = points_span(row["low"], row["high"])
        shown = re.escape(f'data-value="{row["difference"]}"><b>{points(row["difference"])}') + interval + re.escape(span)
        assert re.search(shown, plain), row
    funnel = read_result(study / "results" / "tables", "funnel")
    for row in funnel:
        if row["value"] and row["low"]:
            span = percent_span(row["low"], row["high"], DASHED)
            shown = re.escape(f'data-value="{row["value"]}"><b>{percent(row["value"])}') + interval + re.escape(span)
            assert re.search(shown, plain), row
    assert len(arms) > 10 < len(funnel)
    definitions = read_json(study / "results" / "tables" / "notes.json")["measures"]["validity"]
    main = {measure["name"] for measure in definitions if measure["main"]}
    for row in read_result(study / "results" / "tables", "validity"):
        if row["measure"] in main:
            whole = f'data-value="{row["count"]}"><b>{row["count"]}</b><small>{percent(row["share"])} of {row["of"]}</small>'
            assert whole in plain, row
    for sentence in read_json(study / "results" / "tables" / "verdict.json")["sentences"]:
        assert sentence.partition(": ")[2][1:] in plain


def test_the_page_is_made_of_the_declared_blocks_in_their_order_and_each_has_all_its_parts(text: str) -> None:
    blocks = blocks_of(text)
    expected = [block.id for block in BLOCKS if block.id in blocks]
    assert list(blocks) == expected
    absent = {block.id for block in BLOCKS} - set(blocks)
    assert absent == {"workup", "published"}
    assert {name: lacking(block) for name, block in blocks.items() if lacking(block)} == {}
    menu = re.search(r"<nav.*?</nav>", text, flags=re.DOTALL)
    assert menu
    assert re.findall(r'href="#([a-z]+)"', menu[0]) == expected
    parts = parts_of(text)
    assert len(parts) > 20
    assert parts.keys() <= PARTS.keys() | {"flow", "graders"}
    assert all(f'id="{name}"' in part.partition(">")[0] for name, part in parts.items() if name not in blocks)


def test_the_head_of_every_column_of_a_topic_has_the_definition_that_is_listed_below_its_table(text: str) -> None:
    explained = {name: part for name, part in parts_of(opened(text)).items() if "What the columns mean" in part}
    assert {"arms", "funnel", "fields", "grounding", "groups", "pairs"} <= explained.keys()
    for name, part in explained.items():
        heads = re.findall(r'<th scope="col" class="number" title="([^"]+)">', part)
        listed = re.search(r'What the columns mean</summary><dl class="facts">(.*?)</dl>', part)
        assert listed, name
        assert heads, name
        assert re.findall(r"<dd>(.*?)</dd>", listed[1]) == heads, name


def test_a_long_table_of_a_topic_is_folded_below_its_sentence_and_a_short_one_is_not(text: str) -> None:
    for name, part in parts_of(text).items():
        rows = re.search(r'<table class="sortable">\s*<caption class="hidden">.*?</table>', part, flags=re.DOTALL)
        if rows:
            folded_below = '<details class="table"' in part[: rows.start()]
            assert folded_below == (rows[0].count("<tr") - 1 > MOST_LINES), name


def test_what_stands_below_a_block_is_there(study: Path, text: str) -> None:
    rules = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "rules").glob("*.smk"))
    keys = {key for name in ("config", "benchmark", "model", "grader") for key in _keys(name)}
    for block in BLOCKS:
        assert f"rule {block.rule}:" in rules, block.id
        assert set(block.csv) <= set(COLUMNS), block.id
        assert set(block.figures) <= set(FIGURES), block.id
        assert (ROOT / block.config[0]).exists(), block.id
        assert block.config[1] in keys | {""}, block.id
        assert (TEMPLATES / block.template).is_file(), block.id
        assert re.fullmatch("[a-z]+", block.id)
    shown = {figure for block in BLOCKS for figure in block.figures}
    assert shown == set(FIGURES)
    assert {file for block in BLOCKS for file in block.csv} == set(COLUMNS) - {LIST_OF_CASES}
    for name in re.findall(r"<code>((?:results|config)/[^<*]*)</code></?(?:span|p)", text):
        assert (ROOT / name).exists() or (study / name).exists(), name
    for kind, folder, names in (("csv", "tables", set(COLUMNS)), ("svg", "figures", set(FIGURES))):
        named = dict(re.findall(rf'<code data-{kind}="([^"]*)">([^<]*)</code>', text))
        assert set(named) <= names
        assert all((study / "results" / folder / name).is_file() for name in named.values())


def test_the_page_holds_the_file_of_every_table_that_it_names_byte_for_byte(study: Path, text: str) -> None:
    held = dict(re.findall(r'<script type="application/gzip;base64" id="csv-([^"]*)">([^<]*)</script>', text))
    assert set(re.findall(r'data-csv="([^"]*)"', text)) <= held.keys() == set(COLUMNS) - {"cases"}
    for name, packed in held.items():
        assert gzip.decompress(base64.b64decode(packed, validate=True)) == (study / "results" / "tables" / f"{name}.csv").read_bytes(), name


def test_words_of_the_glossary_have_the_meaning_that_the_guide_gives_them(text: str) -> None:
    entries = yaml.safe_load((TEMPLATES / "glossary.yaml").read_text(encoding="utf-8"))
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \|$",
        (ROOT / "docs" / "README.md").read_text(encoding="utf-8").partition("## Words")[2].partition("\n## ")[0],
        flags=re.M,
    )
    guide, glossary = dict(rows), {entry["word"]: entry["means"] for entry in entries}
    assert len(entries) >= 20
    assert {word: guide[word] for word in guide.keys() & glossary.keys()} == {
        word: glossary[word] for word in guide.keys() & glossary.keys()
    }
    assert {"case", "item", "gold", "arm", "strategy", "ledger", "quarantine"} <= guide.keys() & glossary.keys()
    shown = unescape(blocks_of(text)["methods"]).lower()
    assert [entry["word"] for entry in entries if f">{entry['word']}</dt><dd>{entry['means'].lower()}." not in shown] == []


def _keys(schema: str) -> set[str]:
    return set(read_json(ROOT / "config" / "schemas" / f"{schema}.schema.json")["properties"])


def test_what_is_said_above_a_block_is_what_the_tables_stage_said(study: Path, text: str) -> None:
    said, blocks, parts = read_json(study / "results" / "tables" / "notes.json")["blocks"], blocks_of(text), parts_of(text)
    assert said.keys() <= {anchor for block in BLOCKS for anchor in block.anchors} | set(TOPICS)
    homes = parts | {
        name: blocks[name] for name in ("glance", "leaderboard", "ratings", "cases", "privacy", "cost", "methods") if name in blocks
    }
    shown = set()
    for name, part in homes.items():
        for key in (name, PARTS.get(name)):
            takeaway = f'<p class="takeaway">{escape(said[key]["takeaway"])}</p>' if key in said else ""
            if takeaway and takeaway in part:
                below = part.partition(takeaway)[2].lstrip()
                assert below.startswith(f'<p class="n">n = {escape(said[key]["n"])}</p>' if said[key]["n"] else "<"), name
                shown.add(key)
    # of simulated raters alone nothing is drawn
    assert said.keys() - shown - {"glance"} == {"calibrated", "grader_vs_clinician"}


def test_a_note_without_a_count_prints_no_n() -> None:
    notes = {"degraded": {"takeaway": "A sentence.", "n": ""}, "viewer": {"takeaway": "A sentence.", "n": "3 items"}}
    environment = templates({"blocks": notes})
    call = '{{% import "macros.html.j2" as m with context %}}{{% call m.part("{}", "Title", "") %}}{{% endcall %}}'
    without, counted = (environment.from_string(call.format(name)).render() for name in notes)
    assert "A sentence." in without
    assert "n =" not in without
    assert '<p class="n">n = 3 items</p>' in counted


def test_a_report_on_phantoms_says_so_first(text: str) -> None:
    assert text.index("No number here is about patients") < text.index("<h1>")


def test_no_clinician_rated_is_said_and_not_left_blank(text: str) -> None:
    assert "No clinician has rated an answer yet." in text


def test_what_left_the_machine_is_listed(text: str) -> None:
    assert "judge.example" in text
    assert "Text is burned" in text or "text is burned" in text


def test_every_raw_file_is_accounted_for_on_the_page(text: str) -> None:
    table = text[text.index("Every raw file of the cases that were read") :]
    table = table[: table.index("</table>")]
    for cells in (
        ("Files", "set aside", "dose report"),
        ("Files", "used", ""),
        ("Series", "set aside", "T2w: it covers another part of the head"),
    ):
        assert f'<td>{cells[0]}</td><td>{cells[1]}</td><td class="wrap">{cells[2]}</td>' in table, cells


def test_the_score_of_deidentification_says_how_many_phantoms_and_shows_what_is_not_right(text: str) -> None:
    said = " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())
    assert "4,000 of 4,000 removal checks passed (100.00 %); 8,999 of 9,000 checks" in said
    assert "n = 4 phantoms" in said
    assert "they are not independent" in said
    assert re.search(r'<span class="tag warn">99\.98 %</span>', text)


def test_structured_answers_are_shown_with_coverage_and_every_runner_with_its_form(study: Path, text: str) -> None:
    fields, form = (parts_of(text)[name] for name in ("fields", "form"))
    rows = read_results(study / "results" / "tables", ("fields", "validity"))
    of_fields = {(row["benchmark"], row["model"], row["value_of_slice"]) for row in rows["fields"]}
    assert fields.count('<th scope="row"') == len(of_fields) == 12
    shown = {(row["benchmark"], row["model"], row["value_of_slice"]) for row in rows["validity"]}
    assert form.count('<th scope="row"') == len(shown) == 6
    assert "Right where answered" in fields


def test_a_run_without_models_has_a_report(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha",), patients=2)
    text = build(tmp_path, (), figures=False)
    assert len(Page(text).find("h1")) == 1
    assert {name: lacking(block) for name, block in blocks_of(text).items() if lacking(block)} == {}
    assert "No model has been scored yet, so nothing was found." in text
    lines = re.findall(r'<details class="folded"><summary><b>(.*?)</b> (.*?)</summary>\s*<section id="(\w+)"', text)
    assert len(lines) > 5, "blocks without data are one line each"
    assert all(said.strip() for _, said, _ in lines), lines
    assert not {"glance", "leaderboard", "numbers"} & {block for *_, block in lines}


def test_blocks_of_simulated_raters_alone_are_folded_and_published_numbers_come_first_without_models() -> None:
    blank = {name: [] for name in (*COLUMNS, *TOPICS)}
    empty = SimpleNamespace(tables=blank, papers=["paper"], cards={}, pictured=True, noun="patient")
    assert [block.id for block in reported(empty)][:2] == ["published", "glance"]
    prior, model = ({"model": name, "simulated": "true"} for name in ("prior", "alpha"))
    run = SimpleNamespace(
        tables=blank | {"leaderboard": [prior, model], "ratings": [model]}, papers=["paper"], cards={}, pictured=True, noun="patient"
    )
    blocks = [block for block in reported(run) if block.id in ("glance", "ratings", "graders", "published")]
    assert [block.id for block in blocks] == ["glance", "graders", "ratings", "published"]
    sections = {block.id: '<p class="empty"><b>No <i>rating</i> &amp; none.</b> Ask.</p>' for block in blocks}
    assert folded(blocks, run, sections) == {"ratings": "Only simulated raters.", "graders": "No rating & none."}
    run.tables["ratings"].append({"model": "alpha", "simulated": "false"})
    assert "ratings" not in folded(blocks, run, sections | {"ratings": "<tbody></tbody>"})


def test_a_block_is_not_folded_if_one_of_its_topics_has_data() -> None:
    tables = {name: list[dict[str, str]]() for name in (*COLUMNS, *TOPICS)}
    tables["grader_vs_clinician"] = [{"model": "alpha", "simulated": "true"}]
    run = SimpleNamespace(tables=tables)
    (graders,) = (block for block in BLOCKS if block.id == "graders")
    assert folded([graders], run, {"graders": "<tbody></tbody>"}) == {"graders": "Only simulated raters."}
    tables["graders"] = [{"model": "alpha", "simulated": "false"}]
    assert folded([graders], run, {"graders": "<tbody></tbody>"}) == {}
    empty = '<p class="empty" id="juries" data-part="juries"><b>Juries: not measured.</b> Add one.</p>'
    assert folded([graders], run, {"graders": empty}) == {"graders": "Not measured."}
    few = '<p class="quiet" data-few>2 lines</p>' + empty
    assert folded([graders], run, {"graders": few}) == {}


def test_a_model_without_an_answer_has_no_rate_on_the_page_and_no_mark_in_the_figure(tmp_path: Path) -> None:
    models, named = ("alpha", "beta"), ("leaderboard", "glance", "heatmap")
    write_study(tmp_path, models=models, patients=6)
    lose_answers(tmp_path, "beta")
    block = blocks_of(build(tmp_path, models, figures=named))["leaderboard"]
    rows = [row for row in re.findall(r"<tr.*?</tr>", block, flags=re.DOTALL) if "Beta VLM" in row]
    assert len(rows) == 2
    assert all('data-value=""><b>–</b></td>' in row for row in rows)
    assert not [row for row in rows if re.search(r"\d\s%<", row)]
    assert not [row for row in rows if "<circle" in row[row.index('<td class="range-cell') :]]
    figures = tmp_path / "results" / "figures"
    assert "Alpha VLM" in (figures / "leaderboard.svg").read_text()
    for name in named:
        assert "Beta VLM" not in (figures / f"{name}.svg").read_text(), name
    lose_answers(tmp_path, "alpha")
    assert "no model has a rank" in blocks_of(build(tmp_path, models, figures=False))["leaderboard"]


def test_a_public_report_of_one_model_withholds_cases_of_patients(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha",), patients=2, kind="patient")
    public = build(tmp_path, ("alpha",), "public", figures=False)
    assert 'id="picture-' not in public
    assert "words that do not come" not in public
    assert "does not show cases of patients" in public
    assert "No number here is about patients" not in public
    assert "Left out of this public report, of " in public
    assert {name: lacking(block) for name, block in blocks_of(public).items() if lacking(block)} == {}
    assert 'id="picture-' in page(tmp_path, ("alpha",))


def test_a_page_that_is_too_large_fails(study: Path, text: str) -> None:
    lists = {"benchmarks": [DEPTH, BREADTH], "models": MODELS, "graders": GRADERS, "published": []}
    with pytest.raises(ConfigError, match=r"report\.max_megabytes"):
        write_report(study / "large.html", read_source(study, study / "results", lists, profile="internal"), 0.01)


def test_a_picture_that_was_not_sent_is_not_shown(study: Path, text: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(study, copy)
    picture = next((copy / "data" / "pictures").glob("*.png"))
    picture.write_bytes(picture.read_bytes() + b"0")
    with pytest.raises(DataError, match="not the one that was sent"):
        page(copy, MODELS)


def test_the_last_line_counts_incomplete_responses(study: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = study / "results" / "tables" / "costs.csv"
    original = path.read_text(encoding="utf-8")
    first = next(csv.DictReader(path.open(encoding="utf-8")))
    pair, fewer = f"{first['requests']},{first['answered']}", f"{first['requests']},{int(first['answered']) - 4}"
    path.write_text(original.replace(pair, fewer, 1), encoding="utf-8")
    page(study, MODELS)
    path.write_text(original, encoding="utf-8")
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith("4 of ")


def test_oracle_slices_stand_beside_own_views_as_an_upper_bound_and_what_is_undefined_says_so(study: Path, text: str) -> None:
    tables = study / "results" / "tables"
    originals = {name: (tables / f"{name}.csv").read_text(encoding="utf-8") for name in ("measures", "contrasts")}
    shared = {"topic": "viewer", "benchmark": DEPTH, "model": MODELS[0], "slice": "oracle_items", "value_of_slice": "true"}
    shared |= {"n_items": "12", "n_patients": "12", "strategy": "viewer"}
    passes = {"measure": "pass1_patients", "arm": "oracle_slices", "strategy": "direct", "n_answers": "4", "left_out": "2"}
    compared = {"arm": "oracle_slices", "strategy": "direct", "other_arm": "full", "other_strategy": "viewer"}
    added = {
        "measures": [shared | passes | {"value": "1.0", "low": "0.5", "high": "1.0"}],
        "contrasts": [
            shared | compared | {"measure": "oracle_difference", "difference": "0.5", "low": "0.25", "high": "0.75"},
            shared | compared | {"measure": "pass1_difference"},
        ],
    }
    for name, rows in added.items():
        names = originals[name].splitlines()[0].split(",")
        lines = [",".join(row.get(column, "") for column in names) for row in rows]
        (tables / f"{name}.csv").write_text("\n".join([originals[name].rstrip("\n"), *lines, ""]), encoding="utf-8")
    try:
        block = parts_of(page(study, MODELS))["viewer"]
    finally:
        for name, original in originals.items():
            (tables / f"{name}.csv").write_text(original, encoding="utf-8")
    heads = re.findall(r'<th scope="col"[^>]*>(?:<button[^>]*>)?([^<]*)<', block.partition("<tbody>")[0])
    (line,) = re.findall(r"<tr data-benchmark.*?</tr>", block.partition("<tbody>")[2], re.DOTALL)
    cells = [re.sub(r"<[^>]*>", " ", cell).split() for cell in re.findall(r"<t[dh].*?</t[dh]>", line, re.DOTALL)]
    shown = dict(zip(heads, cells, strict=True))
    assert shown["pass@1"][0] == "100"
    assert shown["Oracle minus own"] == ["+50", "+25", "to", "+75"]
    assert shown["Own minus chosen"] == ["–"], "undefined"
    assert "Oracle slices are cut at the known lesion: an upper bound, which uses the truth." in block


def test_what_left_the_machine_and_a_served_model_that_changed_are_told(study: Path, text: str) -> None:
    assert '<p class="takeaway">No data left this machine to produce the answers and grades of this run.</p>' in text
    assert "changed within the run" not in text
    table, provenance = study / "results" / "tables" / "destinations.csv", study / "results" / "provenance.json"
    originals = table.read_text(encoding="utf-8"), provenance.read_text(encoding="utf-8")
    rows = list(csv.DictReader(originals[0].splitlines()))
    sent = rows[0] | {
        "destination": "api.example.org",
        "calls": "1234",
        "characters": "56789",
        "cost_usd": "0.49",
        "last_called_on": "2026-02-03",
    }
    table.write_text("".join(f"{','.join(line)}\n" for line in (rows[0], sent.values())), encoding="utf-8")
    found = json.loads(originals[1])
    served = found["models"][0]["served"]
    served.append(served[0] | {"name": "<b>other</b>", "answers": 7, "first_called_on": "2026-02-01", "last_called_on": "2026-02-03"})
    provenance.write_text(json.dumps(found), encoding="utf-8")
    try:
        told = page(study, MODELS)
    finally:
        for path, original in zip((table, provenance), originals, strict=True):
            path.write_text(original, encoding="utf-8")
    assert '<span class="tag warn">api.example.org</span>' in told
    assert '<td class="number" data-value="1234">1,234</td>' in told
    assert (
        '<td class="number" data-value="56789">56,789</td><td class="number" data-value="0.49">0.49</td><td>2026-01-02 to 2026-02-03</td>'
        in told
    )
    assert "&lt;b&gt;other&lt;/b&gt; (7 answers, 2026-02-01 to 2026-02-03)" in told
    assert told.count("changed within the run") == 1


def test_provenance_names_code_environment_and_inputs_and_no_path_of_the_machine(study: Path, text: str) -> None:
    found = read_json(study / "results" / "provenance.json")
    assert found["commit"] is None or re.fullmatch(r"[0-9a-f]{40}", found["commit"])
    assert found["inputs"].keys() == {f"data/items/{DEPTH}.parquet"}
    (served,) = found["models"][0]["served"]
    assert (served["name"], served["first_called_on"], served["last_called_on"]) == ("alpha-served", "2026-01-02", "2026-01-02")
    assert served["answers"] > 100
    assert found["prompts"].keys() == {"config/prompts/open.j2"}
    assert str(study) not in json.dumps(found)
    assert str(study) not in text


def test_a_run_of_texts_has_no_column_on_pictures(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha", "beta"), patients=3)
    with_pictures = blocks_of(build(tmp_path, ("alpha", "beta"), figures=False))
    for path in sorted((tmp_path / "config" / "benchmarks").glob("*.yaml")):
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        path.write_text(yaml.safe_dump({**config, "kind": "text", "arms": ["full"]}), encoding="utf-8")
    for path in (tmp_path / "results" / "scores").rglob("*.parquet"):
        write_records(path, Score, [row for row in read_records(path, Score) if row.arm == "full"], key=response_key)
    texts = blocks_of(build(tmp_path, ("alpha", "beta"), figures=False))
    for block, words in (("glance", "Uses the pictures?</"), ("glance", "True findings</"), ("privacy", ">Pictures<")):
        assert (words in with_pictures[block].replace("<small>", "</"), words in texts[block]) == (True, False), (block, words)


def test_the_first_screen_has_a_sentence_of_25_words_and_at_most_120_words_in_all(text: str) -> None:
    glance = re.sub(r"<svg.*?</svg>", "", blocks_of(text)["glance"].partition('<ul class="verdict"')[0], flags=re.DOTALL)
    first = glance[glance.index('<div class="answer-line">') :]
    sentence = first.partition("</div>")[0]
    assert 5 < len(words_of(sentence)) <= 25
    assert len(words_of(first)) <= 120


def words_of(markup: str) -> list[str]:
    """Return the words that a reader sees, without numbers."""
    return re.findall(r"[A-Za-z][\w'@-]*", html.unescape(re.sub(r"<[^>]+>", " ", markup)))
