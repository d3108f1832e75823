"""Plan a run without sending anything: the calls of every model and grader and their cost, as rows, text and CSV."""

from __future__ import annotations

import csv
import datetime
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from neuralmedbench.config.load import group_limit, load_model_for
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.published import PublishedConfig
from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import guard_cell, read_by_item, read_records
from neuralmedbench.files.vocabulary import read_urgency, read_vocabulary, urgency_path
from neuralmedbench.models.budget import NANO, SpendTotals, account_of, check_paid
from neuralmedbench.models.context_length import ContextLength, LengthCount
from neuralmedbench.models.destinations import check_destination, destination_of, is_allowed
from neuralmedbench.models.forecast import Forecast, GraderSwitch, forecast_calls, forecast_informant, grader_switches, switch_lines
from neuralmedbench.models.informant import INFORMANT
from neuralmedbench.models.ledger import LedgerEntry, read_ledger
from neuralmedbench.models.life import life_lines
from neuralmedbench.models.prices import asked_tier, longest_answer
from neuralmedbench.models.registry import code_of, unavailable_reason
from neuralmedbench.models.requests_of_model import limited_requests, requests_for, too_many_pictures
from neuralmedbench.models.samples import SampleWalk, has_informant, response_row
from neuralmedbench.records.items import Arm, Gold, Item, Runner, Strategy
from neuralmedbench.records.requests import Request, long_prompt_line
from neuralmedbench.records.responses import MISSING_STATES, Response, ResponseState, is_by_another_model
from neuralmedbench.records.scores import PLANTED, Grade, response_key
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.records.words import counted, listing
from neuralmedbench.runtime.atomic_write import atomic_file
from neuralmedbench.runtime.console_tables import table_lines
from neuralmedbench.scoring.llm.grader_requests import grader_model, read_model_grader, scored_responses
from neuralmedbench.scoring.llm.model_grading import why_not_tested
from neuralmedbench.scoring.llm.task import MAX_CHARACTERS
from neuralmedbench.scoring.planted.edits import EDITS
from neuralmedbench.scoring.planted.planting import References, plant_errors, plant_in_answers, planted_responses
from neuralmedbench.tables.papers.size import SizeRow, by_published_size, size_words

CHARACTERS_PER_TOKEN = 4
"""Assumed length of a token in an answer that is still to come and that a grader will read."""


@dataclass(frozen=True, kw_only=True)
class PlanRow:
    """One model, or one grader of one model's answers, on one benchmark; a jury makes no calls, its members do.

    Attributes
    ----------
    grader : str
        Name of the grader, or `informant` and its name; empty for the model itself.
    outlook : Forecast
        Calls, tokens and cost.
    destination : str
        Host, `local`, or `unknown`.
    group : str
        Its rate limit group, or empty.
    least_minutes : float
        Shortest time that these calls alone take under the limits of the group.
    blocked : str
        Reason why no call is possible now; empty if calls are possible.
    note : str
        Remark for the person who reads the plan.
    lengths : tuple of str
        Requests that are too long for it, or may be.
    switches : tuple of GraderSwitch
        Of a grader: what of its calls grades again what another version has graded.
    """

    benchmark: str
    model: str
    grader: str
    outlook: Forecast
    prices_dated: str
    service_tier: str
    destination: str
    allowed: bool
    key_env: str
    key_is_set: bool
    group: str
    least_minutes: float
    max_cost_usd: float | None
    account: str
    blocked: str
    note: str = ""
    lengths: tuple[str, ...] = ()
    switches: tuple[GraderSwitch, ...] = ()


def plan_run(run: Run) -> tuple[list[PlanRow], list[str]]:
    """Plan the calls for every benchmark, model and grader of the run lists.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    rows : list of PlanRow
        In the order of the run lists; each model is followed by its graders.
    gaps : list of str
        Benchmarks without prompts.

    Raises
    ------
    ConfigError, DataError
        If a file of the run cannot be read.
    """
    vocabulary = read_vocabulary(Path(run.config.vocabulary))
    rows: list[PlanRow] = []
    gaps: list[str] = []
    for benchmark in run.benchmarks:
        prompts = Path(_prompts(benchmark))
        if prompts.is_file():
            rows += _Planner(run, benchmark, vocabulary).rows(read_records(prompts, Request))
        else:
            gaps.append(benchmark)
    return rows, gaps


def _prompts(benchmark: str) -> str:
    return f"data/prompts/{benchmark}.parquet"


class _Planner:
    """Plans one benchmark."""

    def __init__(self, run: Run, benchmark: str, vocabulary: Vocabulary) -> None:
        self._run, self._benchmark, self._vocabulary = run, benchmark, vocabulary
        self._llm = {name: grader for name, grader in run.all_graders.items() if grader.kind == "llm"}

    @cached_property
    def _references(self) -> References:
        """The items and references of the benchmark, which graders read; none is read for a run without them."""
        urgency = read_urgency(urgency_path(Path(self._run.config.vocabulary)), self._vocabulary)
        items = read_by_item(Path(f"data/items/{self._benchmark}.parquet"), Item)
        return References(items, read_by_item(Path(f"data/gold/{self._benchmark}.parquet"), Gold), self._vocabulary, urgency)

    def rows(self, requests: list[Request]) -> Iterator[PlanRow]:
        for name in self._run.models:
            model = load_model_for(self._run.folder, self._benchmark, name)
            # requests that the model would get: readers and models with few pictures leave some out
            asked = [request for request in requests_for(model, requests) if not too_many_pictures(request, model.max_images)]
            asked = limited_requests(model, asked, self._run.config.limit, Path(f"data/items/{self._benchmark}.parquet"))
            entries = read_ledger(Path(f"data/ledger/{self._benchmark}/{name}.jsonl"))
            code, informant = code_of(model, self._vocabulary), self._run.informants.get(self._benchmark)
            outlook = forecast_calls(asked, model, entries, code=code, informant=informant)
            row = self._row(name, "", model, outlook)
            if outlook.calls:
                line = long_prompt_line([request.characters for request in asked], "prompts")
                lengths = (*row.lengths, *([line] if line else []))
                row = replace(row, note=_earlier_revisions(model, entries.values()), lengths=lengths)
            yield row
            if informant and any(has_informant(request, model) for request in asked):
                replies = forecast_informant(asked, model, informant, entries, code=code)
                yield self._row(name, f"{INFORMANT} {informant.name}", informant, replies)
            # graders follow their model: their calls depend on its answers, present or still to come
            for grader in self._llm:
                yield self._grader_row(model, grader, asked)
        for grader in self._llm:
            if not self._why_not_tested(grader):
                yield self._planted_row(grader, requests)

    def _ledger(self, name: str, grader: str) -> Path:
        return Path(f"data/ledger/{self._benchmark}/graders/{name}/{grader}.jsonl")

    def _results(self, model: str) -> Path:
        """Return the folder of results with the answers of a model: of this run, or of another one, which has them from the same ledger."""
        table = f"responses/{self._benchmark}/{model}.parquet"
        folders = [Path(self._run.results), Path("results"), *sorted(Path("results").glob("*/"))]
        return next((folder for folder in folders if (folder / table).is_file()), folders[0])

    def _why_not_tested(self, grader: str) -> str:
        by_default = self._run.config.grader_checks.items_per_edit is None
        return why_not_tested(self._ledger(PLANTED, grader), replay=self._run.config.replay, by_default=by_default)

    def _planted_row(self, grader: str, asked: list[Request]) -> PlanRow:
        patients, of = self._run.patients_per_edit(grader), self._references
        planted = plant_errors(of.items.values(), of.gold, vocabulary=of.vocabulary, urgency=of.urgency, patients=patients)
        requests = self._requests(planted_responses(planted, of.items, patients), grader)
        entries = read_ledger(self._ledger(PLANTED, grader))
        for model in self._run.models if patients else ():
            requests += self._requests(self._edited_answers(model, grader, asked), grader, self._run.models[model].names)
            entries |= read_ledger(self._ledger(model, grader))
        model_of = grader_model(grader, self._llm[grader])
        return self._row(PLANTED, grader, model_of, forecast_calls(requests, model_of, entries))

    def _edited_answers(self, model: str, grader: str, asked: list[Request]) -> list[Response]:
        """Return the answers of a model in which errors are planted; of answers that are not graded yet, as many as there can be."""
        patients = self._run.answers_per_edit(grader)
        table = Path(self._benchmark, model)
        files = [self._results(model) / part for part in (f"responses/{table}.parquet", f"grades/{table}/{grader}.parquet")]
        if all(path.is_file() for path in files):
            planted = plant_in_answers(read_records(files[0], Response), read_records(files[1], Grade), self._references, patients=patients)
            return planted_responses(planted, self._references.items, patients)
        config = load_model_for(self._run.folder, self._benchmark, model)
        wanted = [row for row in requests_for(config, asked) if row.arm == Arm.FULL and row.runner in (Runner.OPEN, Runner.DIALOGUE)]
        answers = {row.patient_id: row for row in _placeholder_answers(wanted, config)}
        place = list(self._run.models).index(model)  # no two are equal
        return [replace(row, text=f"{row.text} {edit.name} {place}") for row in list(answers.values())[:patients] for edit in EDITS]

    def _grader_row(self, model: ModelConfig, grader: str, asked: list[Request]) -> PlanRow:
        name, of = model.name, self._references
        table = self._results(name) / f"responses/{self._benchmark}/{name}.parquet"
        present = read_records(table, Response) if table.is_file() else []
        answered = {response_key(row) for row in present if row.state not in MISSING_STATES or is_by_another_model(row.error)}
        # grader calls for answers that do not exist yet are estimated from placeholders; of a vote one answer is graded
        expected = [row for row in _placeholder_answers(asked, model) if response_key(row) not in answered]
        of_votes = [row for row in expected if not row.repeat or row.strategy != Strategy.SELF_CONSISTENCY]
        answers = [*scored_responses(present, of.items, of.gold, of.vocabulary), *of_votes]
        requests = self._requests(answers, grader, self._run.models[name].names)
        model_of, ledger = grader_model(grader, self._llm[grader]), self._ledger(name, grader)
        outlook = forecast_calls(requests, model_of, read_ledger(ledger))
        notes = []
        if expected:
            notes.append(f"{len(expected)} answers of its model are still to come; they are counted here at half the longest length")
        if outlook.samples and (reason := self._why_not_tested(grader)):
            notes.append(f"not tested with planted errors: {reason}")
        switches = grader_switches(grader, self._llm[grader], requests, ledger.parent, self._run.folder) if outlook.calls else ()
        return replace(self._row(name, grader, model_of, outlook), note="; ".join(notes), switches=tuple(switches))

    def _requests(self, answers: Iterable[Response], grader: str, names: Sequence[str] = ()) -> list[Request]:
        asking = read_model_grader(grader, self._llm[grader], names)
        return list(asking.requests(answers, self._references.items, self._references.gold).values())

    def _row(self, name: str, grader: str, model: ModelConfig, outlook: Forecast) -> PlanRow:
        # destinations that the benchmark allows; any other blocks the call
        allowed = self._run.benchmarks[self._benchmark].allowed_destinations
        destination = _destination(model)
        limit = group_limit(model, self._run.config.rate_limits)
        tokens = outlook.prompt_tokens + outlook.completion_tokens
        # the slower of the two limits decides
        limits = ((outlook.calls, limit.requests_per_minute), (tokens, limit.tokens_per_minute))
        return PlanRow(
            benchmark=self._benchmark,
            model=name,
            grader=grader,
            outlook=outlook,
            prices_dated=model.prices.dated if model.prices else "",
            service_tier=asked_tier(model),
            destination=destination,
            allowed=is_allowed(model, destination, allowed),
            key_env=model.api_key_env or "",
            key_is_set=bool(model.api_key),
            group=model.rate_limit_group or "",
            least_minutes=max(amount / most if most else 0.0 for amount, most in limits),
            max_cost_usd=model.max_cost_usd,
            account=account_of(model),
            blocked=self._blocked(model, allowed) if outlook.calls else "",
            lengths=(*ContextLength(model).words(outlook.lengths), *outlook.pictures),
        )

    def _blocked(self, model: ModelConfig, allowed: Sequence[str]) -> str:
        try:
            # the checks that a real call makes
            check_destination(model, allowed)
            check_paid(model)
        except ConfigError as error:
            return str(error)
        return "the configuration says `replay`" if self._run.config.replay else unavailable_reason(model)


def _earlier_revisions(model: ModelConfig, entries: Iterable[LedgerEntry]) -> str:
    """Say which answers of other revisions stay while those of the present one are asked for; empty if there are none."""
    others = Counter(entry.revision for entry in entries if entry.strategy != INFORMANT and entry.revision not in ("", model.revision))
    stay = listing([f"{counted(number, 'answer')} of revision {revision}" for revision, number in others.items()]) if others else ""
    return f"these calls are of revision {model.revision}; {stay} stay in the ledger and are compared with it" if stay else ""


def _destination(model: ModelConfig) -> str:
    try:
        return destination_of(model)
    except ConfigError:
        return "unknown"


def _placeholder_answers(requests: list[Request], model: ModelConfig) -> list[Response]:
    """Make placeholders for answers that are still to come: only their number and length count, and no two are equal."""
    # half of the longest answer, at most what a grader reads
    length = min(MAX_CHARACTERS, (longest_answer(model) or 0) // 2 * CHARACTERS_PER_TOKEN)
    return [response_row(_placeholder_walk(request, model, repeat, length)) for request in requests for repeat in range(request.samples)]


def _placeholder_walk(request: Request, model: ModelConfig, repeat: int, length: int) -> SampleWalk:
    text = f"{request.arm} {request.strategy} {repeat} ".ljust(length, "x")
    walk = SampleWalk(request, model, repeat)
    walk.entries += [LedgerEntry(key="", state=ResponseState.OK, text=text)] * (len(request.earlier) + 1)
    return walk


SIZES_HEAD = ("estimate for", "asked", "calls", "prompt tokens", "answer tokens, at most", "USD, about", "at most")


def left_out_lines(run: Run) -> Iterator[str]:
    """Yield lines on each benchmark that the run leaves out: the missing file, and an estimate from its published size (as in the table `plan`)."""
    for name, path in run.absent.items():
        yield f"{name}: left out, {path} is missing"
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
            _label(row),
            f"{row.calls:,}",
            f"{row.prompt_tokens:,}",
            _number(row.completion_tokens, ","),
            row.unknown or _number(row.usd, ",.2f"),
            _number(row.most_usd, ",.2f"),
        )
        for row in rows
    ]
    yield from table_lines(cells, SIZES_HEAD)
    # rows without prices are counted apart, not as 0
    known = [(row.usd, row.most_usd) for row in rows if row.usd is not None and row.most_usd is not None]
    usd, most = (sum(amounts) for amounts in zip(*known, strict=True)) if known else (0.0, 0.0)
    unpriced = f", and {len(rows) - len(known)} of unknown cost" if len(known) < len(rows) else ""
    yield f"  estimated in all: {sum(row.calls for row in rows):,} calls, {usd:,.2f} USD, at most {most:,.2f} USD{unpriced}"


HEAD = ("benchmark", "asked", "samples", "answered", "calls", "prompt", "completion", "USD", "at most", "prices of", "goes to", "key")
WORDS = "Nothing was sent. prompt and completion: tokens in thousands, expected / as reserved before a call (one byte per token). Samples with the same request share one answer and one call."


def plan_lines(
    rows: Sequence[PlanRow],
    gaps: Sequence[str],
    run: Run,
    spending: SpendTotals,
    *,
    today: datetime.date | None = None,
    listed_days: Mapping[str, datetime.date] | None = None,
) -> list[str]:
    """Format a plan as text.

    Parameters
    ----------
    rows : sequence of PlanRow
        The plan.
    gaps : sequence of str
        Benchmarks without prompts.
    run : Run
        The run.
    spending : SpendTotals
        Money spent so far.
    today : date, optional
        Day from which the last days of models are counted.
    listed_days : mapping of str to date, optional
        Last days that the providers' own lists name, by model or grader.

    Returns
    -------
    list of str
        A table, its totals, then one line per remark.
    """
    # table and totals first, then one line per remark
    lines = [
        *table_lines(map(_cells, rows), HEAD),
        "",
        WORDS,
        f"Possible now: {_total([row for row in rows if not row.blocked], run, spending)}",
    ]
    if any(row.blocked for row in rows):
        lines.append(f"Including blocked calls: {_total(rows, run, spending)}")
    if gaps:
        command = shlex.join(["snakemake", "--cores", "8", *run.options("--configfile"), "--", *map(_prompts, gaps)])
        have = "it has" if len(gaps) == 1 else "they have"
        lines.append(f"{', '.join(gaps)}: {have} no prompts yet; `{command}` makes them without calling a model")
    lines += left_out_lines(run)
    lines += _layout_lines(run)
    lines += list(dict.fromkeys(f"blocked: {row.blocked}" for row in rows if row.blocked))
    lines += [f"{row.benchmark}, {_label(row)}: {row.note}" for row in rows if row.note and not row.blocked]
    lines += [f"{row.benchmark}, {_label(row)}: {line}" for row in rows for line in row.lengths]
    lines += [
        f"{row.benchmark}, {_label(row)}: USD expects {cached / 1000:.0f} thousand tokens of the prompts from the provider's cache, as of the answers so far"
        for row in rows
        if (cached := row.outlook.cached_tokens)
    ]
    lines += life_lines(run.all_asked(), today or datetime.datetime.now(datetime.UTC).date(), listed_days)
    lines += switch_lines(switch for row in rows for switch in row.switches)
    return [*lines, *_group_lines(rows, run), *_cap_lines(rows, run, spending)]


def _layout_lines(run: Run) -> Iterator[str]:
    """Yield a line on each arm in whose layout no model of the run is asked."""
    known = {model.layout for model in run.models.values()}
    for benchmark, arms in run.arms.items():
        for arm in arms.values():
            if arm.layout and arm.layout.name not in known:
                yield f"{benchmark}: no model is asked in the arm {arm.name}; write `layout: {arm.layout.name}` in the yaml of a model of that family"


def write_plan(path: Path, rows: Iterable[PlanRow]) -> None:
    """Write a plan as CSV, one line per row, money in USD."""
    names = [name for record in (PlanRow, Forecast, LengthCount) for name in record.__dataclass_fields__ if name not in NESTED]
    values = [{**asdict(row), **asdict(row.outlook), **asdict(row.outlook.lengths)} for row in rows]
    with atomic_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: guard_cell(cell) if isinstance(cell, str) else cell for name, cell in row.items()} for row in values)


NESTED = {"outlook", "lengths", "pictures", "switches"}
"""Parts of a row that are no columns."""


def _cells(row: PlanRow) -> tuple[str, ...]:
    forecast = row.outlook
    key = f"{row.key_env} {'is set' if row.key_is_set else 'is not set'}" if row.key_env else "none"
    return (
        row.benchmark,
        _label(row),
        str(forecast.samples),
        str(forecast.answered),
        str(forecast.calls),
        f"{forecast.prompt_tokens / 1000:.0f} / {forecast.most_prompt_tokens / 1000:.0f}",
        f"{forecast.completion_tokens / 1000:.0f} / {forecast.most_completion_tokens / 1000:.0f}",
        _usd(forecast.usd),
        _usd(forecast.most_usd),
        " ".join(filter(None, (row.prices_dated, row.service_tier))) or "-",
        row.destination if row.allowed else f"{row.destination} (not allowed)",
        key,
    )


def _label(row: PlanRow | SizeRow) -> str:
    if row.model == PLANTED:
        return f"{row.grader} on planted errors"
    return f"{row.grader} on {row.model}" if row.grader else row.model


def _total(rows: Sequence[PlanRow], run: Run, spending: SpendTotals) -> str:
    known = [row for row in rows if row.outlook.usd is not None]
    unknown = sum(row.outlook.usd is None and row.outlook.calls > 0 and row.destination != "local" for row in rows)
    calls = sum(row.outlook.calls for row in rows)
    money = f"{_usd(sum(row.outlook.usd or 0 for row in known))} USD, at most {_usd(most_usd(known, run, spending))} USD"
    return f"{calls} calls, {money}" + (f", and {unknown} of unknown price" if unknown else "")


def most_usd(rows: Sequence[PlanRow], run: Run, spending: SpendTotals) -> float:
    """Return the most that calls may cost: the lesser of their reservations and of what the caps leave."""
    reserved: dict[str, float] = defaultdict(float)
    caps = {row.account: row.max_cost_usd for row in rows if row.max_cost_usd is not None}
    for row in rows:
        reserved[row.account] += row.outlook.most_usd or 0.0
    for account, cap in caps.items():
        reserved[account] = min(reserved[account], _usd_left(cap, account, spending))
    most, run_cap = sum(reserved.values()), run.config.max_run_cost_usd
    return most if run_cap is None else min(most, run_cap)


def _usd_left(cap: float, account: str, spending: SpendTotals) -> float:
    return max(0.0, cap - spending.by_account[account] / NANO)


def _group_lines(rows: Sequence[PlanRow], run: Run) -> list[str]:
    """Return one line per rate limit group: its models share the limits, so their times add up."""
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
    return f"{' and '.join(words)} per minute"


def _cap_lines(rows: Sequence[PlanRow], run: Run, spending: SpendTotals) -> list[str]:
    """Return lines on caps that leave less money than the calls are expected to cost."""
    lines = []
    needed: dict[str, tuple[PlanRow, float]] = {}
    for row in rows:
        # models and graders of one account share its cap
        if row.outlook.usd and not row.blocked:
            needed[row.account] = (row, needed.get(row.account, (row, 0.0))[1] + row.outlook.usd)
    for account, (row, usd) in needed.items():
        left = _usd_left(row.max_cost_usd or 0.0, account, spending)
        if usd > left:
            spent = spending.by_account[account] / NANO
            lines.append(
                f"{row.grader or row.model}: max_cost_usd {_usd(row.max_cost_usd)} leaves {_usd(left)} USD ({_usd(spent)} spent so far),"
                f" about {_usd(usd)} are needed: the rest will be over_budget"
            )
    cap, total = run.config.max_run_cost_usd, sum(usd for _, usd in needed.values())
    if cap is not None and total > cap:
        lines.append(
            f"max_run_cost_usd {_usd(cap)} is less than the {_usd(total)} USD that are probably needed: the rest will be over_budget"
        )
    return lines


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def _usd(value: float | None) -> str:
    return _number(value, ".2f" if value is None or value >= 1 or not value else ".4f")
