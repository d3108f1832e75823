"""What a plan says of data sets that are not here: an estimate by their published size, never a count."""

from __future__ import annotations

from collections.abc import Iterator

from neuralmedbench.config.published import PublishedConfig
from neuralmedbench.config.workflow import Run
from neuralmedbench.tables.papers.size import by_published_size, size_words

HEAD = ("estimate for", "asked", "calls", "prompt tokens", "answer tokens, at most", "USD, about", "at most")


def left_out_lines(run: Run) -> Iterator[str]:
    """Say of every benchmark that the run leaves out what is missing, and what asking it would take where its size was published.

    Parameters
    ----------
    run : Run
        The run.

    Yields
    ------
    str
        Lines for a person. The numbers are those of the table `plan` in `results/tables/paper/`.
    """
    for name, path in run.absent.items():
        yield f"{name}: left out, {path} is not there"
    for paper, published in run.published.items():
        if run.why_absent(paper):
            yield from _size_lines(run, published)


def _size_lines(run: Run, published: PublishedConfig) -> Iterator[str]:
    yield f"{published.benchmark}, {published.title}; to bring it here: {published.import_}"
    yield f"  {size_words(published.size)}"
    rows = by_published_size(published, run.models, run.all_graders)
    cells = [
        (
            published.benchmark,
            f"{row.grader} on {row.model}" if row.grader else row.model,
            f"{row.calls:,}",
            f"{row.prompt_tokens:,}",
            "-" if row.completion_tokens is None else f"{row.completion_tokens:,}",
            row.unknown or f"{row.usd:,.2f}",
            "-" if row.most_usd is None else f"{row.most_usd:,.2f}",
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(HEAD, *cells, strict=True)]
    for line in (HEAD, *cells):
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
    known = [(row.usd, row.most_usd) for row in rows if row.usd is not None and row.most_usd is not None]
    usd, most = (sum(amounts) for amounts in zip(*known, strict=True)) if known else (0.0, 0.0)
    unpriced = f", and {len(rows) - len(known)} whose cost is not known" if len(known) < len(rows) else ""
    yield f"  estimated in all: {sum(row.calls for row in rows):,} calls, {usd:,.2f} USD, at most {most:,.2f} USD{unpriced}"
