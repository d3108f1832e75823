"""The plan of a run as text and as a table."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from neuralmedbench.config.published import PublishedConfig
from neuralmedbench.config.workflow import Run
from neuralmedbench.models.budget import NANO, SpendTotals
from neuralmedbench.recording.plan import PlanGap, PlanRow
from neuralmedbench.runtime.atomic_write import atomic_file
from neuralmedbench.tables.papers.size import by_published_size, size_words

SIZES_HEAD = ("estimate for", "asked", "calls", "prompt tokens", "answer tokens, at most", "USD, about", "at most")


def left_out_lines(run: Run) -> Iterator[str]:
    """Say of every benchmark that the run leaves out what is missing, and what asking it would take by its published size (as in the table `plan`)."""
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
    widths = [max(map(len, column)) for column in zip(SIZES_HEAD, *cells, strict=True)]
    for line in (SIZES_HEAD, *cells):
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
    known = [(row.usd, row.most_usd) for row in rows if row.usd is not None and row.most_usd is not None]
    usd, most = (sum(amounts) for amounts in zip(*known, strict=True)) if known else (0.0, 0.0)
    unpriced = f", and {len(rows) - len(known)} whose cost is not known" if len(known) < len(rows) else ""
    yield f"  estimated in all: {sum(row.calls for row in rows):,} calls, {usd:,.2f} USD, at most {most:,.2f} USD{unpriced}"


HEAD = ("benchmark", "asked", "samples", "answered", "calls", "prompt", "completion", "USD", "at most", "prices of", "goes to", "key")
WORDS = "Nothing was sent. prompt and completion: tokens in thousands, probably / as they are set aside before a call (a byte a token)."


def plan_lines(rows: Sequence[PlanRow], unplanned: Sequence[PlanGap], run: Run, spending: SpendTotals) -> list[str]:
    """Write a plan for a person.

    Parameters
    ----------
    rows : sequence of PlanRow
        The plan.
    unplanned : sequence of Unplanned
        Benchmarks without prompts.
    run : Run
        The run.
    spending : Spending
        What was spent so far.

    Returns
    -------
    list of str
        A table, its totals, then one line for everything that a person should know.
    """
    lines = [*_aligned([HEAD, *map(_cells, rows)]), "", WORDS, f"What can be asked now: {_total([row for row in rows if not row.blocked])}"]
    if any(row.blocked for row in rows):
        lines.append(f"With what cannot: {_total(rows)}")
    lines += [f"{entry.benchmark}: {entry.remedy}" for entry in unplanned]
    lines += left_out_lines(run)
    lines += list(dict.fromkeys(f"not asked: {row.blocked}" for row in rows if row.blocked))
    lines += [f"{row.benchmark}, {_asked(row)}: {row.note}" for row in rows if row.note and not row.blocked]
    return [*lines, *_group_lines(rows, run), *_cap_lines(rows, run, spending)]


def write_plan(path: Path, rows: Iterable[PlanRow]) -> None:
    """Write a plan as CSV: one line a row, money in USD, tokens and calls as numbers."""
    values = [{**{key: value for key, value in asdict(row).items() if key != "outlook"}, **asdict(row.outlook)} for row in rows]
    names = list(values[0]) if values else [field for field in PlanRow.__dataclass_fields__ if field != "outlook"]
    with atomic_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(values)


def _cells(row: PlanRow) -> tuple[str, ...]:
    ahead = row.outlook
    key = f"{row.key_env} {'is set' if row.key_is_set else 'is not set'}" if row.key_env else "none"
    return (
        row.benchmark,
        _asked(row),
        str(ahead.samples),
        str(ahead.answered),
        str(ahead.calls),
        f"{_thousands(ahead.prompt_tokens)} / {_thousands(ahead.most_prompt_tokens)}",
        f"{_thousands(ahead.completion_tokens)} / {_thousands(ahead.most_completion_tokens)}",
        _usd(ahead.usd),
        _usd(ahead.most_usd),
        row.prices_dated or "-",
        row.destination if row.allowed else f"{row.destination} (not allowed)",
        key,
    )


def _asked(row: PlanRow) -> str:
    return f"{row.grader} on {row.model}" if row.grader else row.model


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in table]


def _total(rows: Sequence[PlanRow]) -> str:
    known = [row.outlook for row in rows if row.outlook.usd is not None and row.outlook.most_usd is not None]
    unknown = sum(row.outlook.usd is None and row.outlook.calls > 0 and row.destination != "local" for row in rows)
    calls = sum(row.outlook.calls for row in rows)
    money = f"{_usd(sum(one.usd or 0 for one in known))} USD, at most {_usd(sum(one.most_usd or 0 for one in known))} USD"
    return f"{calls} calls, {money}" + (f", and {unknown} whose prices are not known" if unknown else "")


def _group_lines(rows: Sequence[PlanRow], run: Run) -> list[str]:
    """One line a group: its limits are shared, so the times of its models add up."""
    minutes: dict[str, float] = defaultdict(float)
    for row in rows:
        if row.group and not row.blocked:
            minutes[row.group] += row.least_minutes
    return [
        f"rate limit group {name}: {_limits(run, name)}; these calls take at least {total:.0f} minutes"
        for name, total in minutes.items()
        if total
    ]


def _limits(run: Run, group: str) -> str:
    limit = run.config.rate_limits[group]
    words = [f"{limit.requests_per_minute} requests"] if limit.requests_per_minute else []
    words += [f"{limit.tokens_per_minute} tokens"] if limit.tokens_per_minute else []
    return f"{' and '.join(words)} a minute"


def _cap_lines(rows: Sequence[PlanRow], run: Run, spending: SpendTotals) -> list[str]:
    """Say where a cap leaves less than the calls may cost."""
    lines = []
    needed: dict[str, tuple[PlanRow, float]] = {}
    for row in rows:
        if row.outlook.usd and not row.blocked:
            needed[row.account] = (row, needed.get(row.account, (row, 0.0))[1] + row.outlook.usd)
    for account, (row, usd) in needed.items():
        spent = spending.by_account[account] / NANO
        left = (row.max_cost_usd or 0.0) - spent
        if usd > left:
            lines.append(
                f"{row.grader or row.model}: max_cost_usd {_usd(row.max_cost_usd)} leaves {_usd(max(0.0, left))} USD ({_usd(spent)} spent so far),"
                f" about {_usd(usd)} would be needed: the rest would be over_budget"
            )
    cap, total = run.config.max_run_cost_usd, sum(usd for _, usd in needed.values())
    if cap is not None and total > cap:
        lines.append(
            f"max_run_cost_usd {_usd(cap)} is less than the {_usd(total)} USD that are probably needed: the rest would be over_budget"
        )
    return lines


def _thousands(tokens: int) -> str:
    return f"{tokens / 1000:.0f}"


def _usd(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if value >= 1 or not value else f"{value:.4f}"
