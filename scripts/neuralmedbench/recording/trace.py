"""Trace one cell of a table to its files, code, requests and prompts, and recompute plain rates from the scores."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from neuralmedbench.config.load import load_benchmark
from neuralmedbench.config.run_names import results_of
from neuralmedbench.estimates.intervals import Ints, codes_of, item_weights
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.tables import read_records
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.recording.finished_runs import TableCell
from neuralmedbench.recording.metadata import METADATA, Link, RowScope, code_lines, read_metadata, upstream_links
from neuralmedbench.records.arm_changes import as_asked
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.responses import Response
from neuralmedbench.records.results import BOUNDS, LEFT_OPEN, PASS1_PATIENTS, with_board_names
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.scoring.explain_reading import why_unread
from neuralmedbench.tables.answers import GRADES, Samples
from neuralmedbench.tables.outcomes import DIRECT, PASS1_STRICT, Key, Outcomes, gather_outcomes

RATES = {name: name for name in ("pass1", PASS1_STRICT, "candidates5")} | dict.fromkeys(
    (PASS1_PATIENTS, "best_case", "worst_case"), "pass1"
)
"""Metric of each rate that is recomputed."""


def _sequence(item: Item, gold: Gold) -> str:
    """Return the sequence of an item's pictures, `several_sequences`, or that of the reference if the pictures have none."""
    sequences = {image.sequence for image in item.images} - {"", "unknown"}
    if sequences:
        return sequences.pop() if len(sequences) == 1 else "several_sequences"
    return gold.fields.sequence or "" if gold.fields else ""


PARTS: dict[str, Callable[[Item, Gold], str]] = {
    "all": lambda _item, _gold: "all",
    "family": lambda item, _gold: str(item.family),
    "level": lambda item, _gold: str(item.level),
    "diagnosis": lambda _item, gold: gold.answer,
    "lesion_shown": lambda item, _gold: str(item.lesion_shown).lower(),
    "sequence": _sequence,
}
"""Slices of the tables that follow from an item and its reference: for each, a function that returns the value of an item."""


@dataclass(frozen=True)
class TracedAnswers:
    """The answers of one model under one arm and strategy, current revision.

    Attributes
    ----------
    outcomes : Outcomes
        Of all items with a reference.
    key : Key
        Model, arm and strategy.
    places : ndarray of int, shape (items of the slice,)
        Places of the items of a slice that were asked.
    samples : Samples
        Their answers.
    responses : dict of str to list of Response
        By item.
    """

    outcomes: Outcomes
    key: Key
    places: Ints
    samples: Samples
    responses: dict[str, list[Response]]

    def item(self, place: int) -> Item:
        """Return an item by its place."""
        return self.outcomes.items[place]


def read_answers(
    benchmark: str, key: Key, *, part: tuple[str, str] = ("all", "all"), root: Path = Path(), results: str = "results"
) -> TracedAnswers:
    """Read the answers of one model, current revision, to the items of a slice that have a reference.

    `part` is a slice of `PARTS` and its value.
    """
    gold = read_records(root / f"data/gold/{benchmark}.parquet", Gold)
    items = read_records(root / f"data/items/{benchmark}.parquet", Item)
    responses = read_records(root / f"{results}/responses/{benchmark}/{key.model}.parquet", Response)
    scores = read_records(root / f"{results}/scores/{benchmark}/{key.model}.parquet", Score)
    # the table starts with the current revision
    asked = (*key[1:], responses[0].revision if responses else "")
    current = [row for row in scores if (row.arm, row.strategy, row.revision) == asked]
    outcomes = gather_outcomes(benchmark, "", items, gold, scores={key.model: current}, sampled={key.model: False})
    sent: dict[str, list[Response]] = {}
    for response in responses:
        if (response.arm, response.strategy, response.revision) == asked:
            sent.setdefault(response.item_id, []).append(response)
    pairs = zip(outcomes.items, outcomes.gold, strict=True)
    inside = np.array([PARTS[part[0]](*pair) == part[1] for pair in pairs], dtype=bool)
    samples = outcomes.answers.of(key)
    places = np.flatnonzero(inside & (samples.number() > 0))
    return TracedAnswers(outcomes, key, places, samples.where(np.isin(samples["place"], places)), sent)


def recount(name: str, answers: TracedAnswers) -> float | int | None:
    """Recompute one number; None for an unknown name.

    A rate is the mean over items of the share of expected answers that pass, or over patients of the mean of each one's items.
    """
    outcomes, samples, places = answers.outcomes, answers.samples, answers.places
    if not len(places):
        return None
    expected, missing = len(samples["graded"]), int((~samples["graded"]).sum())
    numbers: dict[str, float | int] = {
        "expected": expected,
        "missing": missing,
        "missing_fraction": missing / expected,
        "n_items": len(places),
        "n_patients": len(np.unique(outcomes.patients[places])),
        **{state: int((samples["state"] == state).sum()) for state in ("refused", "truncated")},
    }
    if name in numbers:
        return numbers[name]
    metric = RATES.get(name, name)
    # without any answer a rate is unknown, not 0
    if metric not in (*RATES.values(), *GRADES) or (name in RATES and missing == expected):
        return None
    values = outcomes.metric(metric, answers.key, best=name == "best_case")[places]
    known = ~np.isnan(values)
    if not known.any():
        return None
    patients = codes_of(outcomes.patients[places][known])
    weights = item_weights(patients) if name == PASS1_PATIENTS else np.ones(len(patients))
    return math.fsum(values[known] * weights) / math.fsum(weights)


Groups = dict[tuple[str, Key], TracedAnswers]
"""Answers by benchmark, and model, arm and strategy."""

SHORT = 16
"""Hexadecimal digits shown of a request or call: enough to find it."""


def trace(cell: TableCell, *, responses: int = 10, root: Path = Path(), configfiles: Sequence[str] = ()) -> str:
    """Describe the origin of a number.

    Parameters
    ----------
    cell : TableCell
        The cell.
    responses : int
        Number of items to list per model; 0 lists all.
    root : Path
        The repository root.
    configfiles : sequence of str
        Configuration files of the run, as `extra_configfiles` returns them.

    Returns
    -------
    str
        The cell and its recomputed value; the chain of files with digests; the ledgers; files written by people; the answers. Only
        hashes, ids and names of the project's own files: no text of a model or a person, and nothing from the private zone.

    Raises
    ------
    DataError
        If a table of the run is missing.
    """
    records = {made.path: made for made in read_metadata(root / METADATA)}
    results = results_of(configfiles)
    chain = upstream_links(f"{results}/tables/{cell.table}.csv", records, RowScope(cell.benchmarks, cell.models), root)
    groups = _answers(cell, root, results)
    lines = [*_head(cell, groups), "", "files, the last first (SHA-256 of the file here)"]
    for link in chain:
        if not link.name.startswith("config/"):
            lines += _lines_of_link(link, root, known=bool(records))
    lines += ["", "the ledgers", *(_ledgers(chain, groups, root, results) or ["  none"])]
    written = [f"  {link.name}\n    {_digest(link)}" for link in chain if link.name.startswith("config/")]
    lines += ["", "written by people: settings, prompts, vocabulary", *(written or ["  not recorded"])]
    for (benchmark, (model, arm, strategy)), answers in groups.items():
        about = f"answers of {model} to {benchmark}, arm {arm}, strategy {strategy}"
        lines += ["", about, *_listing(cell, answers, at_most=responses)]
        if len(answers.places):
            words = ["--benchmark", benchmark, "--model", model, "--item", answers.item(answers.places[0]).item_id, "--arm", arm]
            words += ["--strategy", strategy] if strategy != DIRECT else []
            words += ["--configfiles", *configfiles] if configfiles else []
            lines.append(f"  to read one: nmb model explain {shlex.join(words)}")
    return "\n".join(lines)


def _answers(cell: TableCell, root: Path, results: str) -> Groups:
    part = (cell.row.get("slice") or "all", cell.row.get("value_of_slice") or "all")
    # other slices need data that items and references do not have
    part = part if part[0] in PARTS else ("all", "all")
    keys = [
        (benchmark, Key(model, arm, str(strategy)))
        for benchmark in sorted(cell.benchmarks or ())
        for model in sorted(cell.models or ())
        for arm, strategy in _asked(cell, benchmark, root / "config")
        if (root / f"{results}/scores/{benchmark}/{model}.parquet").is_file()
    ]
    return {(benchmark, key): read_answers(benchmark, key, part=part, root=root, results=results) for benchmark, key in keys}


def _asked(cell: TableCell, benchmark: str, config: Path) -> Iterator[tuple[str, str]]:
    """Yield the arms and strategies whose answers are behind a row."""
    yield from cell.conditions or product(load_benchmark(config, benchmark).arms, cell.strategies)


def _head(cell: TableCell, groups: Groups) -> Iterator[str]:
    yield f"{cell.column} of {cell.table}, row {cell.number}: {cell.value or 'empty (not available)'}"
    yield f"  {', '.join(f'{name} {value}' for name, value in cell.keys.items())}"
    counted = _recompute(cell, groups)
    row, ends = (with_board_names(cell.row), "low and high") if "left_out" in cell.row else (cell.row, "worst_case and best_case")
    if not cell.value and row.get("worst_case") and row.get("missing") not in (None, "", "0"):
        lost, expected = row["missing"], row["expected"]
        yield f"  {lost} of {expected} answers are missing or not graded, so the rate is not known: see {ends} of the row"
    elif counted is None:
        yield "  not recomputed: not a plain rate or count of the scores"
    elif counted == cell.value:
        yield f"  recomputed from the scores: {counted}, the same"
    else:
        yield f"  recomputed from the scores: {counted}, which is NOT the number in the table"


def _recompute(cell: TableCell, groups: Groups) -> str | None:
    name = cell.column
    # only plain rates and counts of two tables are recomputed
    if cell.row.get("topic") == "rates":
        bounds = (
            dict(zip(("low", "high"), BOUNDS, strict=True)) if (cell.row["measure"], cell.row["method"]) == ("pass1", LEFT_OPEN) else {}
        )
        name = cell.row["measure"] if cell.column == "value" else bounds.get(cell.column, "")
        if cell.row["slice"] not in PARTS:
            return None
    elif cell.table != "leaderboard":
        return None
    if len(groups) != 1:
        return None
    number = recount(name, next(iter(groups.values())))
    return f"{number:.6f}" if isinstance(number, float) else None if number is None else str(number)


def _digest(link: Link) -> str:
    if link.absent:
        return f"{link.absent} of {len(link.digests)} files are not here"
    what = "" if link.name in link.digests else f"{len(link.digests)} files, digest of their sha256sum listing: "
    if link.changed:
        path, made = next(iter(link.changed.items()))
        more = f" (and {len(link.changed) - 1} more)" if len(link.changed) > 1 else ""
        named = "" if path == link.name else f"{path} "
        return f"{what}sha256 {link.digest}, {named}CHANGED since {made} was made{more}"
    return f"{what}sha256 {link.digest}, {'same as recorded' if link.recorded else 'not recorded'}"


def _lines_of_link(link: Link, root: Path, *, known: bool) -> Iterator[str]:
    yield f"  {link.name}"
    yield f"    {_digest(link)}"
    yield from (f"    by {code}" for code in code_lines(link.made, root))
    if not link.made:
        yield f"    how it was made is not recorded{'' if known else ': Snakemake has no records here, `nmb run pull` brings them'}"
    yield from (f"    from {name}" for name in link.sources)
    if link.unnamed:
        yield f"    from {link.unnamed} files in the private zone, which are not followed"


def _ledgers(chain: Sequence[Link], groups: Groups, root: Path, results: str) -> list[str]:
    lines = []
    for link in chain:
        if link.name.startswith(f"{results}/responses/"):
            benchmark, model = Path(link.name).parent.name, Path(link.name).stem
            lines += _ledger(f"data/ledger/{benchmark}/{model}.jsonl", root)
            # calls that the number depends on must be in the ledger
            keys = _keys(answers for (of, key), answers in groups.items() if (of, key.model) == (benchmark, model))
            present = keys & read_ledger(root / f"data/ledger/{benchmark}/{model}.jsonl").keys()
            if keys:
                lines.append(
                    f"    {len(present)} of the {len(keys)} calls behind the number are in it{'' if present == keys else ': NOT all'}"
                )
        elif link.name.startswith(f"{results}/grades/"):
            grades = Path(link.name)
            lines += _ledger(f"data/ledger/{grades.parent.parent.name}/graders/{grades.parent.name}/{grades.stem}.jsonl", root)
    return lines


def _keys(groups: Iterator[TracedAnswers]) -> set[str]:
    ids = ((answers, answers.item(place).item_id) for answers in groups for place in answers.places)
    return {key for answers, item in ids for row in answers.responses.get(item, ()) for key in row.call_keys}


def _ledger(name: str, root: Path) -> list[str]:
    if not (root / name).is_file():
        return [] if "/graders/" in name else [f"  {name}", "    not here; `nmb run pull` brings it"]
    return [f"  {name}", f"    sha256 {sha256_of(root / name)}, {len(read_ledger(root / name))} answers"]


def _listing(cell: TableCell, answers: TracedAnswers, *, at_most: int) -> Iterator[str]:
    if (cell.row.get("slice") or "all") not in PARTS:
        yield f"  all items: those of the slice {cell.row['slice']} cannot be selected here"
    if not len(answers.places):
        yield "  no item with a reference was asked"
        return
    samples, places = answers.samples, answers.places
    expected, passed, missing = samples.number(), samples.number(samples["passed"]), samples.number(~samples["graded"])
    yield f"  {len(places)} items with a reference, {expected.sum()} answers expected, {passed.sum()} passed, {missing.sum()} missing"
    scores = samples.by_item()
    shown = places[:at_most] if at_most else places
    for place in shown.tolist():
        item = answers.item(place)
        responses = answers.responses.get(item.item_id, [])
        keys = [key for row in responses for key in row.call_keys]
        request = responses[0].request_id[:SHORT] if responses else "none"
        call = f"call {keys[0][:SHORT]} (the first of {len(keys)})" if keys else "no call"
        yield (f"  {item.item_id}: {passed[place]} of {expected[place]} passed, {missing[place]} missing; request {request}, {call}")
        unread = Counter(why_unread(row.text, as_asked(item, row.arm)) for row in scores[place] if row.parse_status == ParseStatus.FAILED)
        yield from (f"    {number} not read: {why}" for why, number in sorted(unread.items()) if why)
    if len(shown) < len(places):
        yield f"  and {len(places) - len(shown)} more items (--responses 0 lists all)"
