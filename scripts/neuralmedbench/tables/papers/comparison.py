"""Published numbers beside those of this run: rows, LaTeX and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from neuralmedbench.config.published import PublishedConfig, PublishedRow, PublishedTable
from neuralmedbench.tables.declare import Cells
from neuralmedbench.tables.papers.own_results import OwnResults, check_places, own_cells
from neuralmedbench.tables.papers.shape import PLAN, PUBLISHED, PaperLine, Shape, digits_of, number, shapes
from neuralmedbench.tables.papers.size import by_published_size, size_words

COLUMNS = (
    "table", "kind", "label", "group", "source", "conflict", "model", "model_id", "column", "unit", "value", "others", "low", "high",
    "interval", "n", "missing", "note",
)  # fmt: skip


def wilson(percent: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Wilson interval of a published percentage.

    Returns
    -------
    low, high : float
        In percent.

    References
    ----------
    Wilson, Journal of the American Statistical Association 22 (1927) 209.

    Examples
    --------
    >>> [round(bound, 1) for bound in wilson(36.7, 30)]
    [21.9, 54.5]
    """
    from scipy import stats

    low, high = stats.binomtest(round(percent * n / 100), n).proportion_ci(confidence, method="wilson")
    return 100 * float(low), 100 * float(high)


def comparison_rows(published: PublishedConfig, ours: OwnResults) -> list[Cells]:
    """Rows of `results/tables/paper/<paper>.csv`: every cell of every published table, ours below each published row, and the plan.

    Parameters
    ----------
    published : PublishedConfig
        The published tables.
    ours : OwnResults
        Our results.

    Returns
    -------
    list of dict
        With the keys `COLUMNS`. `kind` is `published`, `ours` or `plan`. Percentages are 0 to 100. `others` holds the values of other
        sources for a published cell. In our cells without a value `missing` names the file that would fill it. The plan is there only if
        the benchmark is not in the run; else `make plan` counts.

    Raises
    ------
    ConfigError
        If a lookup names no table or column of results.
    DataError
        If more than one row of a table of results fits a cell.
    """
    check_places(published)
    rows: list[Cells] = []
    for name, table in published.tables.items():
        rows += [{"table": name, **cell} for cell in _table_cells(table, ours)]
    return rows + (list(_plan_rows(published, ours)) if ours.absent else [])


def _table_cells(table: PublishedTable, ours: OwnResults) -> Iterator[Cells]:
    """Yield cells line by line: ours below the last published row of their model, models without one at the end."""
    left, text = list(ours.models), set[str]()
    for place, line in enumerate(table.rows):
        yield from _published_cells(line, table, ours.confidence)
        if any(later.label == line.label for later in table.rows[place + 1 :]):
            continue  # keep rows of several sources for one label together
        # our rows follow the published row of the same model
        meant = [name for name in ours.meant_by(line) if name in left] or (
            [line.model] if line.model and line.model not in ours.models else []
        )
        for model in meant:
            if model not in text:
                yield from own_cells(model, table, ours)
        text |= set(meant)
        left = [name for name in left if name not in text]
    for model in left:
        yield from own_cells(model, table, ours)


def _published_cells(line: PublishedRow, table: PublishedTable, confidence: float) -> Iterator[Cells]:
    # rows of other sources for the same label
    others = [row for row in table.rows if row.label == line.label and row is not line]
    head = {"kind": PUBLISHED, "label": line.label, "group": line.group, "source": line.source, "conflict": line.conflict}
    for name, column in table.columns.items():
        if name not in line.values:
            continue
        value, n = line.values[name], (line.n or column.n) if line.denominators and column.unit == "percent" else None
        cell = head | {"column": name, "unit": column.unit, "value": value, "n": n}
        if n:
            low, high = wilson(value, n, confidence)
            cell |= {"low": low, "high": high, "interval": f"{100 * confidence:g} % Wilson"}
        parts = [
            f"{row.source}: {number(row.values[name], digits_of(row.values[name], column.unit))}"
            for row in others
            if name in row.values and row.values[name] != value
        ]
        yield cell | {"others": "; ".join(parts)}


def _plan_rows(published: PublishedConfig, ours: OwnResults) -> Iterator[Cells]:
    """Yield the cost of asking everything, by the published size; `make plan` prints the same."""
    for row in by_published_size(published, ours.models, ours.graders):
        head = {"table": PLAN, "kind": PLAN, "label": row.title, "model": row.model, "note": size_words(published.size)}
        yield {**head, "column": "calls", "unit": "count", "value": row.calls}
        yield {**head, "column": "prompt_tokens", "unit": "count", "value": row.prompt_tokens}
        for name, unit in (("completion_tokens", "count"), ("usd", "usd"), ("most_usd", "usd")):
            value = getattr(row, name)
            yield {**head, "column": name, "unit": unit, "value": value, "missing": "" if value is not None else row.unknown}


WORDS = (
    "Published numbers stand as they were published; lines of the source “ours” were measured by this pipeline, and the two are never mixed."
    " In brackets: what another source says of the same number, or the number of a footnote. An empty cell was not published, or nothing of ours means the same."
)
PACKAGES = "% In the preamble: \\usepackage[utf8]{inputenc} \\usepackage[T1]{fontenc} \\usepackage{booktabs} \\usepackage{graphicx}"
SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "–": "--", "—": "---",
    "“": "``", "”": "''", "’": "'", "…": r"\ldots{}", "†": r"\dag{}", "×": r"$\times$", "≥": r"$\geq$", "≤": r"$\leq$", "≈": r"$\approx$", "`": r"\textasciigrave{}",
}  # fmt: skip
LAST_LATIN = 0x17F
"""Last letter that every LaTeX engine knows; others are written as their code point, so that the file compiles."""


def markdown(published: PublishedConfig, rows: Sequence[Cells]) -> str:
    """Write all tables of a paper as one Markdown file; `rows` are those of `comparison_rows`."""
    from tabulate import tabulate

    parts = [f"# {published.title}", WORDS]
    for shape in shapes(published, rows):
        lines = [list(map(_escape_cell, cells)) for cells in _texts(shape)]
        parts += [f"## {shape.title}", shape.caption, tabulate(lines[1:], lines[0], tablefmt="github", disable_numparse=True)]
        parts += ["\n".join(f"- {note}" for note in shape.notes)] if shape.notes else []
        # two spaces end a line
        parts += ["  \n".join(_number_footnotes(shape.footnotes))] if shape.footnotes else []
    return "\n\n".join(parts) + "\n"


def latex(published: PublishedConfig, rows: Sequence[Cells]) -> str:
    """Write all tables of a paper as LaTeX (packages booktabs and graphicx); `rows` are those of `comparison_rows`."""
    return "\n\n".join([f"% {published.title}. {escape(WORDS)}\n{PACKAGES}", *(_float(shape) for shape in shapes(published, rows))]) + "\n"


def _float(shape: Shape) -> str:
    head, *body = ([_at_the_start(escape(cells[0])), *map(escape, cells[1:])] for cells in _texts(shape))
    parts = [escape(text) for text in (*shape.notes, *_number_footnotes(shape.footnotes))]
    return "\n".join(
        [
            "\\begin{table}[p]",
            "\\centering",
            f"\\caption[{{{escape(shape.title)}}}]{{{escape(shape.caption)}}}",
            "\\resizebox{\\textwidth}{!}{%",
            f"\\begin{{tabular}}{{ll{'r' * len(shape.heads)}}}",
            "\\toprule",
            f"{' & '.join(head)} \\\\",
            "\\midrule",
            *(f"{' & '.join(cells)} \\\\" for cells in body),
            "\\bottomrule",
            "\\end{tabular}%",
            "}",
            *(
                ["\\par\\smallskip", "\\begin{minipage}{\\textwidth}\\footnotesize", *(f"{text}\\par" for text in parts), "\\end{minipage}"]
                if parts
                else []
            ),
            "\\end{table}",
        ]
    )


def _texts(shape: Shape) -> list[list[str]]:
    """Return the cells as text, the head first."""
    return [["Model", "Source", *shape.heads], *([_label(line), line.source, *(cell.text for cell in line.cells)] for line in shape.lines)]


def _label(line: PaperLine) -> str:
    return f"{line.label} ({line.group})" if line.group else line.label


def _number_footnotes(footnotes: Sequence[str]) -> list[str]:
    return [f"[{number}] {text}" for number, text in enumerate(footnotes, start=1)]


def _escape_cell(text: str) -> str:
    """Escape the characters that end a cell of a Markdown table."""
    return " ".join(text.replace("|", "\\|").split())


def escape(text: str) -> str:
    r"""Escape a text for LaTeX.

    Examples
    --------
    >>> escape("a_b & 5 % of `x`, 9–37")
    'a\\_b \\& 5 \\% of \\texttt{x}, 9--37'
    """
    parts = re.split(r"`([^`]*)`", " ".join(text.split()))
    return "".join(f"\\texttt{{{_plain(part)}}}" if place % 2 else _plain(part) for place, part in enumerate(parts))


def _plain(text: str) -> str:
    return "".join(SPECIAL.get(letter, letter if _is_known(letter) else f"[U+{ord(letter):04X}]") for letter in text)


def _is_known(letter: str) -> bool:
    return ord(letter) <= LAST_LATIN and letter.isprintable()


def _at_the_start(text: str) -> str:
    """Protect the start of a line that LaTeX would read as an argument of the line break before it."""
    return f"{{}}{text}" if text[:1] in ("[", "*") else text
