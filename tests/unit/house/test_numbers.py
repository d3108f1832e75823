"""Every number of the guide has a source in `docs/numbers.tsv`; where it is a file, the number stands in it."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from subprocess import run
from sys import executable

import numpy as np
import pytest
import yaml

from conftest import ROOT, copy_project
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, clopper_pearson, rate_interval

GENERATED = ("docs/configuration.md", "docs/results.md")
"""Written from the code, and compared with it by `nmb run docs --check`."""
PAGES = ["README.md", *sorted({f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} - set(GENERATED))]
UNIT = (
    r" ?%| (?:[kMG]i?B|bytes?|hours?|minutes?|min|seconds?|s|ms|CPU|USD|px|pixels|mm|characters|tokens|times|points|cores?|"
    r"answers?|calls?|cases|items|patients|pictures|questions|words)\b"
)
NUMBER = re.compile(rf"(?<![\w.,/@#=<>-])(?:\d[\d,]*\d|\d)(?:\.\d+)?(?!\w)(?:{UNIT})?")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
OUTPUT = ("", "text")
"""Fenced blocks without a language are what a terminal prints."""
NO_NUMBERS = re.compile(
    r"`[^`\n]*`|\]\([^)]*\)|https?://\S+|arXiv \S+|\(\d{4},\d{4}\)|^\s*\d+\. |\bpass@\d\b|\b\d{4}-\d\d-\d\d\b|\b(?:19|20)\d\d\b(?![\d,.]*\d)|(?:step|version|level) \d+\b",
    re.MULTILINE,
)
"""Code, links, numbering, names with a digit, dates and years."""
KINDS = {
    "in": r"[\w./-]+(?: [\w./-]+)*",  # files of the project in which the number stands
    "test": r"[\w./]+::\w+",  # counts or computes it
    "measured": r"\d{4}-\d\d-\d\d [0-9a-f]{7,10} .+",  # the day, the commit, and how
    "published": r".+",  # by others
    "given": r".+",  # by the page itself: an example, a definition, a sum
}


WHOLE = (ROOT / ".git").exists() and not (ROOT / ".git" / "shallow").exists()
HISTORY = run(["git", "log", "--format=%H"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split() if WHOLE else []
COMMITS = {commit[:7] for commit in HISTORY}
"""Of a whole clone; a copy or a shallow clone cannot look them up."""


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def rows() -> list[dict[str, str]]:
    with (ROOT / "docs" / "numbers.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def numbers_of(page: str) -> set[tuple[str, str]]:
    """Return the numbers of a page, each with the heading above it; of single digits those alone that have a unit."""
    found, heading = set(), ""
    content = FENCE.sub(lambda block: with_units(block[3]) if block[2] in OUTPUT else "", text(page))
    for line in content.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        else:
            numbers = NUMBER.findall(NO_NUMBERS.sub(" ", line))
            found |= {(heading, number) for number in numbers if not re.fullmatch(r"\d", number)}
    return found


def with_units(output: str) -> str:
    return " ".join(number for number in NUMBER.findall(output) if re.search(UNIT, number))


@cache
def stands_in(path: str) -> frozenset[float]:
    """Return the numbers of a file."""
    content = re.sub(r"(?<=\d)[_,](?=\d)|\b0o", "", text(path))
    return frozenset(float(number) for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?", content))


def is_in(number: str, path: str) -> bool:
    """Whether a number stands in a file when rounded alike; a share may stand there for a percentage, MB for GB, bytes for MB."""
    digits = re.match(r"[\d,.]+", number)[0].replace(",", "")
    places = len(digits.partition(".")[2])
    return any(round(value * times, places) == float(digits) for value in stands_in(path) for times in (1, 100, 1e-3, 1e-6))


@pytest.mark.workflow
@pytest.mark.slow
def test_the_number_of_steps_is_that_of_the_demo(tmp_path: Path) -> None:
    command = [executable, "-m", "snakemake", "-n", "--cores", "2", "--quiet", "rules"]
    plan = run(command, cwd=copy_project(tmp_path / "project"), capture_output=True, text=True, check=True)
    steps = re.search(r"^total +(\d+)$", plan.stdout + plan.stderr, re.MULTILINE)[1]
    pages = ("docs/quickstart.md", "docs/crashes.md")
    named = [number for page in pages for number in re.findall(r"(?:\d of |^)(\d+) steps", text(page), re.MULTILINE)]
    assert set(named) == {steps}


def test_bounds_of_few_patients_are_those_of_the_code() -> None:
    def bound(events: int, patients: int) -> tuple[str, str]:
        values = np.arange(patients) < events
        interval = rate_interval(values.astype(float), ByPatient([str(n) for n in range(patients)], IntervalSettings()))
        return f"{interval.low:.0%}".replace("%", " %"), f"{interval.high:.0%}".replace("%", " %")

    for page in ("docs/readiness.md", "docs/read-the-report.md"):
        assert f"0 of 8 patients with an event are still compatible with a rate of {bound(0, 8)[1]}" in text(page)
    assert f"of 3 patients that is compatible with {bound(0, 3)[1]}" in text("docs/read-the-report.md")
    assert f"1 right answer of 3 reaches from 0 to {bound(1, 3)[1]}" in text("docs/own-benchmark.md")
    assert f"six of six has an interval from {clopper_pearson(6, 6, 0.95)[0]:.0%}".replace("%", " %") in text("docs/read-the-report.md")


def test_what_can_be_counted_is_counted() -> None:
    names = yaml.safe_load(text("config/vocabulary/neurology.names.yaml"))
    by_language: Counter[str] = Counter()
    for languages in names["names"].values():
        for language, sources in languages.items():
            by_language[language] += sum(map(len, sources.values()))
    kinds = sum(1 if isinstance(kind, str) else len(kind) for kinds in names["narrower"].values() for kind in kinds)
    english, others = by_language.pop("en"), by_language.values()
    page = text("docs/graders.md")
    assert f"about {round(english, -2):,} English ones" in page
    assert f"{round(kinds, -2):,} English names of kinds" in page
    assert f"{round(min(others), -2):,} to {round(max(others), -2):,} each in German" in page
    diseases = [line for line in text("config/vocabulary/neurology.diseases.tsv").splitlines() if not line.startswith("#")][1:]
    assert f"{len(diseases):,} diseases" in page

    answers = [json.loads(line) for line in text("tests/fixtures/smollm2/answers.jsonl").splitlines()]
    replies = sum(answer["form"] == "grade" for answer in answers)
    choices = [answer["read"]["status"] == "failed" for answer in answers if answer["form"] == "choice"]
    page = text("docs/inference.md")
    assert f"{len(answers) - replies} answers and {replies} replies" in page
    assert f"of {len(choices)} choice questions, {len(choices) - sum(choices)} were read and {sum(choices)} were not" in page

    refusals = [json.loads(line) for line in text("tests/fixtures/refusals.jsonl").splitlines()]
    unseen = Counter(bool(refusal["cause"]) for refusal in refusals if refusal["unseen"])
    page = text("docs/local-server.md")
    assert f"Of {unseen[True]} published replies" in page
    assert f"of {unseen[False]} more with a cause" in page

    notes = yaml.safe_load(text("tests/fixtures/note_corpus.yaml"))["notes"]
    scans = Counter(line.split("\t")[1] for line in json.loads(text("tests/validation/deface_phantoms.json"))["output"] if "\t" in line)
    page = text("docs/own-data.md")
    assert f"{len(notes)} labelled notes" in page
    assert f"the {scans['demo']} scans of the twelve simulated patients, and on {scans['tilted']} more of them" in page


def stored(series: str) -> list[str]:
    return json.loads(text(f"tests/validation/{series}.json"))["output"]


def rows_of(page: str, row: str) -> list[list[str]]:
    """Return the cells of the rows of this name in tables, without the name and what stands in brackets at the end of a cell."""
    lines = [line.removeprefix(f"| {row} |") for line in text(page).splitlines() if line.startswith(f"| {row} |")]
    return [[re.sub(r" \(.*\)$", "", cell.strip()) for cell in line.strip(" |").split("|")] for line in lines]


def cells(page: str, row: str) -> list[str]:
    (found,) = rows_of(page, row)
    return found


def says(cell: str, shares: Iterable[float], times: int = 100) -> bool:
    """Whether a cell gives the lowest and the highest of some shares, rounded to its places (a half either way)."""
    found, written = sorted(shares), re.findall(r"\d+(?:\.\d+)?", cell)
    ends = zip((written[0], written[-1]), (found[0], found[-1]), strict=True)
    return len(written) <= 2 and all(abs(float(end) - times * share) <= 0.5001 * 10 ** -len(end.partition(".")[2]) for end, share in ends)


FOUND = {
    "20 points, not stated": ("first above second", False),
    "20 points, stated": ("first above second", True),
    "60 points, not stated": ("one far above", False),
}
RATERS = {
    "2, these alone": "2 raters",
    "3, as if these alone": "3 raters, no others",
    "3": "3 raters",
    "4, two an answer": "4 raters, 2 an answer",
    "5": "5 raters",
}


def test_the_coverage_of_differences_is_that_of_the_stored_series() -> None:
    cells_of_grid = [json.loads(line) for line in stored("contrast_coverage")]
    equal = [cell for cell in cells_of_grid if cell["cell"]["chances"][0] == cell["cell"]["chances"][1]]
    held, size = min(cell["held"] for cell in cells_of_grid), max(cell["rejected"] for cell in equal)
    said = re.search(r"hold the truth in ([\d.]+) % of the studies or more; the test errs in at most ([\d.]+) %", text("docs/metrics.md"))
    assert said is not None
    assert said.groups() == (f"{100 * held:.1f}", f"{100 * size:.1f}")
    assert not any(cell["disagree"] for cell in cells_of_grid)


def test_the_studies_of_the_title_are_those_of_the_stored_series() -> None:
    rows_of = [json.loads(line) for line in stored("title_contrast")]
    studies, sets = ([row | row["cell"] for row in rows_of if ("known" in row["cell"]) is wanted] for wanted in (True, False))
    equal = [row for row in studies if row["known"] == row["alone"]]
    held = [min(row["held"] for row in equal if row["guess"] == guess) for guess in ("anew", "steady")]
    found = [row for row in studies if row["known"] != row["alone"] and row["patients"] == 30]
    shown = {(row["guess"], row["samples"]): row["lower"] for row in found}
    page = text("docs/metrics.md")
    for value, words in (
        (held[0], "the interval holds 0 in {:.1f} % of the studies or more if"),
        (held[1], "and in {:.1f} % if the guess is steady"),
        (max(row["rejected"] for row in equal), "the test errs in at most {:.1f} %. 25 points"),
        (shown["anew", 5], "with 30 patients of five samples in {:.0f} and"),
        (shown["steady", 5], "and {:.0f} %, of one sample"),
        (max(shown["anew", 1], shown["steady", 1]), "of one sample in {:.0f} %."),
        (max(row["lower"] for row in studies if row["known"] == 0), "A guesser is shown to recognise in at most {:.1f} %."),
        (min(row["guessed"] for row in sets), "is right in {:.1f} to"),
        (max(row["guessed"] for row in sets), "to {:.1f} % on average"),
        (max(row["above"] for row in sets), "at most {:.1f} % of the sets have no answer"),
    ):
        assert words.format(100 * value) in page


def test_the_table_of_raters_is_that_of_the_stored_series() -> None:
    found = {line[:60].strip(): line for line in stored("confidence_intervals") if line.startswith("corrected rate")}
    for row, name in RATERS.items():
        values = []
        for spread in ("0.0", "0.3", "0.5"):
            lines = [line for line in found.values() if re.match(rf"corrected rate, {name} +SD {spread}, (20|60) ratings", line)]
            pairs = [re.findall(r"([\d.]+) width ([\d.]+)", line) for line in lines]
            few, many = (min(pair[column][0] for pair in pairs) for column in (0, 1))
            values.append((few, many, f"{float(pairs[-1][1][1]):.2f}"))
        assert cells("docs/ratings.md", row) == [" / ".join(column) for column in zip(*values, strict=True)]


def test_the_tables_of_the_other_series_are_those_that_are_stored() -> None:
    page = "docs/metrics.md"
    split = [json.loads(line) for line in stored("perception_split")]
    spurious = max(line["headlined"] for line in split if not line["effect"].startswith("repairs"))
    least = min(line["difference_covered"] for line in split)
    assert f"`gain` holds the truth in {least:.1%} or more".replace("%", " %") in text(page)
    assert f"a share is given in at most {spurious:.1%}".replace("%", " %") in text(page)

    claims = [json.loads(line) for line in stored("claims")]
    most = max(line["false"] for line in claims)
    assert f"at most {most:.1%} had a false claim".replace("%", " %") in text(page)
    for row, (truth, stated) in FOUND.items():
        lines = [line | line["cell"] for line in claims if (line["cell"]["truth"], line["cell"]["stated"]) == (truth, stated)]
        for cell, patients in zip(cells(page, row), (8, 12, 30), strict=True):
            shares = [line["first"] for line in lines if (line["patients"], line["models"], line["sizes"]) == (patients, 9, "even")]
            assert says(cell, shares), row

    held = [json.loads(line)["held"] for line in stored("floors")]
    (said,) = re.findall(r"the interval holds what the best constant earns in (.+?) of the studies", text(page))
    assert says(said, held)


@pytest.mark.parametrize("page", PAGES)
def test_every_number_has_a_source(page: str) -> None:
    held = {(row["heading"], number) for row in rows() if row["page"] == page for number in row["numbers"].split("; ")}
    found = numbers_of(page)
    assert sorted(found - held) == [], "add a row to docs/numbers.tsv, or leave the number out"
    assert sorted(held - found) == [], "no longer on the page"


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row['page']}: {row['heading'][:30]}: {row['numbers'][:30]}")
def test_a_source_is_named_in_full_and_holds_the_number(row: dict[str, str]) -> None:
    kind, _, what = row["source"].partition(" ")
    assert re.fullmatch(KINDS[kind], what), row["source"]
    if kind == "in":
        assert [number for number in row["numbers"].split("; ") if not any(is_in(number, path) for path in what.split())] == []
    elif kind == "test":
        path, _, name = what.partition("::")
        assert f"def {name}(" in text(path)
    elif kind == "measured":
        assert not COMMITS or what.split()[1][:7] in COMMITS, "no such commit"
        scripts = re.findall(r"(?:perf|tests)/[\w/.]+\.(?:py|jsonl?|md|yaml)", what)
        assert [path for path in scripts if not (ROOT / path).is_file()] == []


def test_a_number_that_changed_is_noticed() -> None:
    assert is_in("97.4 %", "tests/validation/confidence_intervals.json") or is_in("0.3", "tests/validation/claims.json")
    assert not is_in("0.3137", "tests/validation/claims.json")
    found = NUMBER.findall(NO_NUMBERS.sub(" ", "It took 14 CPU s for 1,193 of 1,438 `x 3` in 2019 (pass@1 of 0.62; 5 %), step 4, 3 s."))
    assert found == ["14 CPU", "1,193", "1,438", "0.62", "5 %", "3 s"]
