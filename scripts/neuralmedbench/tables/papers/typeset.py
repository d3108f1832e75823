"""Published and own numbers as the tables of a paper: Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from neuralmedbench.config.published import PublishedConfig
from neuralmedbench.tables.papers.shape import Line, Shape, shapes

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
"""Letters up to here are known to every engine; others are written as their number, so that the file compiles."""

Rows = Sequence[Mapping[str, Any]]


def markdown(published: PublishedConfig, rows: Rows) -> str:
    """Write all tables of a paper as one Markdown file; `rows` as `published.comparison_rows` gives them."""
    from tabulate import tabulate

    parts = [f"# {published.title}", WORDS]
    for shape in shapes(published, rows):
        lines = [list(map(_piped, cells)) for cells in _texts(shape)]
        parts += [f"## {shape.title}", shape.caption, tabulate(lines[1:], lines[0], tablefmt="github", disable_numparse=True)]
        parts += ["\n".join(f"- {note}" for note in shape.notes)] if shape.notes else []
        # two spaces end a line
        parts += ["  \n".join(_numbered(shape.footnotes))] if shape.footnotes else []
    return "\n\n".join(parts) + "\n"


def latex(published: PublishedConfig, rows: Rows) -> str:
    """Write all tables of a paper as LaTeX (packages booktabs and graphicx); `rows` as `published.comparison_rows` gives them."""
    return "\n\n".join([f"% {published.title}. {escape(WORDS)}\n{PACKAGES}", *(_float(shape) for shape in shapes(published, rows))]) + "\n"


def _float(shape: Shape) -> str:
    head, *body = ([_at_the_start(escape(cells[0])), *map(escape, cells[1:])] for cells in _texts(shape))
    told = [escape(text) for text in (*shape.notes, *_numbered(shape.footnotes))]
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
                ["\\par\\smallskip", "\\begin{minipage}{\\textwidth}\\footnotesize", *(f"{text}\\par" for text in told), "\\end{minipage}"]
                if told
                else []
            ),
            "\\end{table}",
        ]
    )


def _texts(shape: Shape) -> list[list[str]]:
    """Cells as text, the head first."""
    return [["Model", "Source", *shape.heads], *([_label(line), line.source, *(cell.text for cell in line.cells)] for line in shape.lines)]


def _label(line: Line) -> str:
    return f"{line.label} ({line.group})" if line.group else line.label


def _numbered(footnotes: Sequence[str]) -> list[str]:
    return [f"[{number}] {text}" for number, text in enumerate(footnotes, start=1)]


def _piped(text: str) -> str:
    """Escape what ends a cell of a Markdown table."""
    return " ".join(text.replace("|", "\\|").split())


def escape(text: str) -> str:
    r"""Write a text so that LaTeX reads it as a text.

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
    """Keep a line from beginning with what LaTeX would read as an argument of the line break before it."""
    return f"{{}}{text}" if text[:1] in ("[", "*") else text
