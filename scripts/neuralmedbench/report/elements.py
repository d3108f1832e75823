"""Elements of the page by name, and the answers of checklists and cards that stand on them.

A template names an element with `data-element="name"`; `element="name"` in a call of the macro `rate` names a rate, and its interval
`name-interval`. An answer `yes` or `partly` holds on a page on which every element that it names has content, for every benchmark of the run
where the tags around it say of which one they are (`data-benchmark`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import TypeVar

from neuralmedbench.config.checklists import ANSWERED, Answer, AnswerSheet, ChecklistItem
from neuralmedbench.config.load import nearest
from neuralmedbench.errors import ConfigError
from neuralmedbench.records.results import mark_of

TEMPLATES = Path(__file__).parent / "templates"
NAMED = re.compile(r'(data-)?\belement="([a-z0-9-]+)"')
NOT_READ = re.compile(r"<(svg|script|template)\b.*?</\1>", flags=re.DOTALL)
"""Drawings and data: a number or a sentence stands in a table or in text."""
NO_CONTENT = re.compile(r"\W*|none|unknown|not known|not recorded", flags=re.IGNORECASE)
"""Text of an element without content, beside the marks of suppressed cells: dashes and unknown values."""
ANCHOR = r'<(?:section|div|p)\b[^>]* id="([a-z]+)"[^>]*>'
HEADING = r"<(?:h2|h3|b)\b[^>]*>(.*?)(?:: not measured\.)?</"
HEADED = re.compile(rf"{ANCHOR}\s*(?:<header>)?{HEADING}")
"""Start of a block or part with an anchor, and its heading."""
VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
"""Tags that are never closed."""
NOTHING = "nothing to show in this run"

Sheet = TypeVar("Sheet", bound=AnswerSheet)
Filled = Mapping[str, AbstractSet[str]]
"""Benchmarks for which an element has content, by element; an empty name is content that is not of one benchmark."""


@cache
def element_names(template: str) -> frozenset[str]:
    """Return the names of the elements of a template."""
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    names = set[str]()
    for attribute, name in NAMED.findall(text):
        # the macro for rates names the interval too
        names |= {name} if attribute else {name, f"{name}-interval"}
    return frozenset(names)


def filled_elements(sections: Iterable[str]) -> Filled:
    """Return the elements with content of the HTML of blocks, as `part.element`, and of which benchmarks they are."""
    filled: dict[str, set[str]] = {}
    for html in sections:
        parser = _ElementParser()
        parser.feed(NOT_READ.sub("", html))
        parser.close()
        filled |= parser.filled
    return filled


def titles_of(sections: Iterable[str]) -> dict[str, str]:
    """Return the headings of the blocks and parts in the HTML of blocks, by anchor."""
    return {anchor: unescape(title) for html in sections for anchor, title in HEADED.findall(html)}


class _ElementParser(HTMLParser):
    """Collects the elements that hold text, with the part and the benchmark of the nearest tag around it that names one."""

    def __init__(self) -> None:
        super().__init__()
        self.filled: dict[str, set[str]] = {}
        self._open: list[tuple[str, str, str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        values = dict(attrs)
        _, _, part, benchmark = self._open[-1] if self._open else ("", "", "", "")
        part = values.get("data-part") or part
        element = f"{part}.{values['data-element']}" if values.get("data-element") else ""
        self._open.append((tag, element, part, values.get("data-benchmark") or benchmark))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Skip a tag that closes itself: it holds no text."""

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        text = data.strip()
        if self._open and not NO_CONTENT.fullmatch(text) and not mark_of({"text": text}):
            benchmark = self._open[-1][3]
            for _, name, _, _ in self._open:
                if name:
                    self.filled.setdefault(name, set()).add(benchmark)


def check_places(sheets: Mapping[str, Iterable[AnswerSheet]], parts: Mapping[str, AbstractSet[str]]) -> None:
    """Check that the page has every block and element that the answers name.

    Parameters
    ----------
    sheets : mapping of str to iterable of AnswerSheet
        Checklists and cards, by the folder or file of their answers.
    parts : mapping of str to set of str
        Names of the elements by block or part.

    Raises
    ------
    ConfigError
        If one is not there.
    """
    known = {*parts, *(f"{part}.{name}" for part, names in parts.items() for name in names)}
    for source, forms in sheets.items():
        for form in forms:
            for item in form.items:
                if unknown := [place for place in item.places if place not in known]:
                    hint = nearest(unknown[0], sorted(name for name in known if name.partition(".")[0] == unknown[0].partition(".")[0]))
                    message = f"{source}: {form.title}, item {item.id}: where: the page has no #{unknown[0]}{hint}"
                    raise ConfigError(message)


def answers_on_page(sheet: Sheet, filled: Filled, benchmarks: Mapping[str, str]) -> Sheet:
    """Lower the answers that this page does not bear out, and give the reason.

    Parameters
    ----------
    sheet : AnswerSheet
        A checklist or a form of a card.
    filled : mapping of str to set of str
        Elements with content, as `filled_elements` returns them.
    benchmarks : mapping of str to str
        Titles of the benchmarks that the answers are about, by name.

    Returns
    -------
    AnswerSheet
        `yes` and `partly` are `no` if an element has no content; `yes` is `partly` if it has none for some of the benchmarks.
    """
    return sheet.model_copy(update={"items": tuple(_on_page(item, filled, benchmarks) for item in sheet.items)})


def _on_page(item: ChecklistItem, filled: Filled, benchmarks: Mapping[str, str]) -> ChecklistItem:
    if item.answer not in ANSWERED:
        return item
    empty, lacking = [], set[str]()
    for name in item.elements:
        of = filled.get(name, set())
        # an element outside of any benchmark is about all of them
        absent = set() if "" in of else benchmarks.keys() - of
        if not of or (absent and absent == benchmarks.keys()):
            empty.append(name.partition(".")[2].replace("-", " "))
        lacking |= absent
    if empty:
        return _lowered(item, "no", f"{NOTHING} ({', '.join(empty)})")
    if lacking:
        return _lowered(item, "partly", f"not for {', '.join(benchmarks[name] for name in benchmarks if name in lacking)}")
    return item


def _lowered(item: ChecklistItem, answer: Answer, reason: str) -> ChecklistItem:
    return item.model_copy(update={"answer": answer, "note": f"{reason}; {item.note}" if item.note else reason})
