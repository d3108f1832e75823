"""A limited run: few answers of one model, to see that everything works before a whole run is paid for (`nmb run try`)."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from neuralmedbench.config.load import check, load_grader, read_yaml, wildcard
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.run_names import results_folder
from neuralmedbench.config.workflow import Run, merged_config, read_run
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import read_by_item, read_records, read_table
from neuralmedbench.models.causes import next_step
from neuralmedbench.models.model_run import spent_here
from neuralmedbench.recording.plan import PlanRow, most_usd, plan_run
from neuralmedbench.recording.run_mistakes import run_mistakes
from neuralmedbench.records.arm_changes import as_asked
from neuralmedbench.records.items import Item
from neuralmedbench.records.responses import Response, ResponseState, distinct_calls, is_by_another_model, is_cut_in_thought
from neuralmedbench.records.results import PASS1
from neuralmedbench.records.words import ONCE, counted, listing, percent, percent_span
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.scoring.explain_reading import why_unread
from neuralmedbench.tables.study import cluster_noun

SERVER = {"revision": "1", "temperature": 1.0, "seed": 1, "max_tokens": 1024, "max_images": 32, "concurrency": 8}
"""Settings of a model whose yaml is written for a server; those of config/models/local-server.yaml but for the requests in flight."""


LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
SERVER_S = 2.0
"""Seconds in which a server of this machine takes a connection."""


def limited_run(model: str, benchmark: str, limit: int, configfiles: Sequence[Path] = ()) -> Run:
    """Write the configfile of a limited run among its results, and read the run with it.

    Parameters
    ----------
    model : str
        Name of the model; it need not be in the run list.
    benchmark : str
        Name of the benchmark; empty for the first of the run list.
    limit : int
        Most answers.
    configfiles : sequence of Path
        Configuration files on which it is based: settings, caps, rate limits.

    Returns
    -------
    Run
        The run `try-<model>`: its results lie in a folder of their own, and graders that ask a model, and the comparison of texts,
        are left out.

    Raises
    ------
    ConfigError
        If it has mistakes, or its model may not be asked: all of them.
    """
    if limit < 1:
        message = f"--limit {limit}: ask at least one answer"
        raise ConfigError(message)
    base, name = merged_config(configfiles), f"try-{wildcard(model)}"
    listed = base.get("graders") or []
    free = [grader for grader in listed if load_grader(Path(f"config/graders/{grader}.yaml")).kind == "rubric"]
    benchmarks = [benchmark] if benchmark else list(base.get("benchmarks") or [])[:1]
    chosen = {"benchmarks": benchmarks, "models": [model], "graders": free or ["rubric"], "limit": limit}
    return read_small_run(name, chosen, configfiles)


def read_small_run(name: str, chosen: Mapping[str, object], configfiles: Sequence[Path]) -> Run:
    """Write the configfile of a run `<verb>-...` of `nmb run <verb>` among its results, and read the run with it."""
    verb, _, _ = name.partition("-")
    # the similarity of texts is descriptive, and the slowest step of a run of few answers
    value = {**chosen, "published": [], "rating_rounds": [], "similarity": {"encoder": ""}}
    path = Path(results_folder(name)) / f"{name}.yaml"
    write_text(path, f"# Written by `nmb run {verb}`.\n{yaml.safe_dump(value, sort_keys=False)}")
    return read_run([*configfiles, path], also=run_mistakes)


def add_server_model(model: str, api_base: str, model_id: str) -> Path | None:
    """Write the yaml of a model on a server with the OpenAI protocol if it is missing, or is still as this function wrote it.

    Parameters
    ----------
    model : str
        Name of the model: `config/models/<model>.yaml`.
    api_base, model_id : str
        Address of the server, and the name under which it offers the model; both or neither.

    Returns
    -------
    Path or None
        The file that was written; None if there was one.

    Raises
    ------
    ConfigError
        If the file is missing and address or name were not given, if it is there, changed by hand, and they were, or if they are wrong.
    """
    path, server = Path(f"config/models/{wildcard(model)}.yaml"), "--api-base http://127.0.0.1:8000/v1 --id NAME"
    if path.is_file() and not (api_base or model_id):
        return None
    if path.is_file() and not _untouched(path, model):
        message = f"{path.as_posix()} is there already: leave out --api-base and --id, or correct the file"
        raise ConfigError(message)
    if not (api_base and model_id):
        message = (
            f"{path.as_posix()}: the file is not there; write it (docs/add-a-model.md), or let this command write it for a server with the"
            f" OpenAI protocol: {server}"
        )
        raise ConfigError(message)
    if urlsplit(api_base).scheme not in {"http", "https"}:
        message = f"--api-base: expected an address such as in {server}"
        raise ConfigError(message)
    value = _server_model(model, api_base, f"openai/{model_id}")
    check(ModelConfig, value, path.as_posix())
    write_text(path, yaml.safe_dump(value, sort_keys=False))
    return path


def _server_model(model: str, api_base: object, model_id: object) -> dict[str, object]:
    return {"title": model, "backend": "litellm", "id": model_id, "api_base": api_base, **SERVER}


def _untouched(path: Path, model: str) -> bool:
    """Return True if a model's yaml is as `add_server_model` wrote it: address and name may have been wrong."""
    value = read_yaml(path)
    return isinstance(value, dict) and value == _server_model(model, value.get("api_base"), value.get("id"))


def check_server(run: Run) -> None:
    """Refuse a run whose model is on a server of this machine at whose port nothing listens, before anything is made.

    Raises
    ------
    ConfigError
        If the connection is refused. A server on another host is first asked when its calls were planned and are allowed, and with prompts
        that are there nothing takes long: its answers may be in the ledger.
    """
    if all(Path(f"data/prompts/{name}.parquet").is_file() for name in run.benchmarks):
        return
    for model in run.models.values():
        address = urlsplit(model.api_base or "")
        if model.backend == "litellm" and address.hostname in LOOPBACK:
            port = address.port or (443 if address.scheme == "https" else 80)
            try:
                socket.create_connection((address.hostname, port), timeout=SERVER_S).close()
            except ConnectionRefusedError:
                message = (
                    f"model {model.name}: nothing listens at {address.scheme}://{address.netloc}: start the server, or correct `api_base` in"
                    " its yaml, and run the same command again"
                )
                raise ConfigError(message) from None
            except OSError:  # slow, or a name that resolves oddly: the first call finds out
                continue


def refused_calls(rows: Sequence[PlanRow]) -> None:
    """Raise all reasons why calls of a plan are not possible now as one ConfigError."""
    if reasons := list(dict.fromkeys(f"{row.benchmark}: {row.blocked}" for row in rows if row.blocked)):
        raise ConfigError(*reasons)


def limited_lines(run: Run) -> list[str]:
    """Summarise a finished limited run: what came, what was read, what passed, what it cost, and what the whole run would.

    Parameters
    ----------
    run : Run
        As `limited_run` returned it.

    Returns
    -------
    list of str
        Lines for a terminal, without any word of an answer.

    Raises
    ------
    DataError
        If the run has not been finished.
    """
    (model,), (benchmark,) = run.models.values(), run.benchmarks
    table = read_records(Path(run.results, "responses", benchmark, f"{model.name}.parquet"), Response)
    rows = [row for row in table if row.revision == model.revision]
    items = read_by_item(Path(f"data/items/{benchmark}.parquet"), Item)
    return [
        *_answers(rows, items, benchmark, model.name, cluster_noun(run.benchmarks[benchmark], list(items.values()))),
        *_pass_lines(run, benchmark, model.name),
        *_spent(rows),
        *_whole_run(run, rows, model),
        _worth(rows),
        f"page: {run.report}; numbers: {run.results}/tables/leaderboard.csv",
    ]


def _answers(rows: Sequence[Response], items: dict[str, Item], benchmark: str, model: str, cluster: str) -> Iterator[str]:
    states = Counter(str(row.state) for row in rows)
    patients, families = {row.patient_id for row in rows}, {items[row.item_id].family for row in rows}
    spread = f"{counted(len(patients), cluster)}, {len(families)} {'family' if len(families) == 1 else 'families'}"
    yield f"{counted(len(rows), 'answer')} of {model} to {benchmark} ({spread}): {listing([f'{number} {state}' for state, number in states.items()])}"
    errors = Counter(row.error for row in rows if row.error)
    if errors:
        yield f"not answered: {'; '.join(f'{number} {error}' for error, number in errors.most_common(3))}"
        yield from (f"  {error}: {step}" for error, _ in errors.most_common(3) if (step := next_step(error)))
    if thinking := sum(is_cut_in_thought(row.state, row.text) for row in rows):
        yield f"cut off while thinking, before an answer began: {thinking} of {states['truncated']} truncated; raise `max_tokens`"
    if not states["ok"]:
        return
    unread = [
        (row, why) for row in rows if row.state is ResponseState.OK and (why := why_unread(row.text, as_asked(items[row.item_id], row.arm)))
    ]
    if not unread:
        yield "all that was answered could be read"
        return
    first, why = unread[0]
    ended = f"ended by {first.finish_reason}, " if first.finish_reason else ""
    yield f"could not be read: {len(unread)}; the first ({ended}{counted(first.completion_tokens or 0, 'token')}): {why}"
    yield f"  nmb model explain --benchmark {benchmark} --model {model} --item {first.item_id} shows it, where the case may be read"


def _worth(rows: Sequence[Response]) -> str:
    """Say what so few answers are good for, if any came."""
    came = sum(row.state is ResponseState.OK or is_by_another_model(row.error) for row in rows)
    if not came:
        return "no answer has come yet"
    if came == 1:
        return "1 answer shows that everything works; as a result it says nothing yet."
    return f"{came} answers show that everything works; as a result they say nothing yet."


def _pass_lines(run: Run, benchmark: str, model: str) -> Iterator[str]:
    board = read_table(Path(run.results, "tables", "leaderboard.csv"))
    row = next(row for row in board if (row["benchmark"], row["model"]) == (benchmark, model))
    if not row["pass1"]:
        between = percent_span(row["worst_case"], row["best_case"], ONCE)
        lost = f"{row['missing']} of {row['expected']} answers are missing or not graded"
        yield f"passed: {between}, as {lost}" if between else "passed: not known, no answer was graded"
        return
    rate, low, high = (float(row[name]) if row[name] else None for name in PASS1)
    number, size = int(row["n_items"]), f"{percent(run.config.statistics.confidence)} interval"
    span = f" ({size} {percent_span(low, high)}, {row['interval']})" if low is not None else ""
    yield f"passed: {round((rate or 0) * number)} of {number}, {percent(rate)}{span}"


def _spent(rows: Sequence[Response]) -> Iterator[str]:
    calls = distinct_calls(rows)
    prompt, completion = (sum(getattr(call, name) or 0 for call in calls) for name in ("prompt_tokens", "completion_tokens"))
    costs = [call.cost_usd for call in calls if call.cost_usd is not None]
    seconds = [row.latency_s for row in rows if row.latency_s is not None]
    words = [f"tokens: {prompt:,} of requests, {completion:,} of answers"]
    words += [f"cost: {sum(costs):.4f} USD" if costs else "cost: none, or no prices are known"]
    words += [f"{sum(seconds) / len(seconds):.1f} s per answer"] if seconds else []
    yield "; ".join(words)


def _whole_run(run: Run, rows: Sequence[Response], model: ModelConfig) -> Iterator[str]:
    """Yield what the whole run of this model on this benchmark would take: its calls at the speed and length of these answers."""
    plan, _ = plan_run(replace(run, config=run.config.model_copy(update={"limit": 0})))
    planned = next(row for row in plan if not row.grader)
    whole = planned.outlook
    words = [f"{counted(whole.samples, 'answer')}, {counted(whole.calls, 'call')} still to be made"]
    if whole.usd is not None and whole.most_usd is not None:
        words.append(f"about {whole.usd:.2f} USD, at most {most_usd([planned], run, spent_here()):.2f}")
    seconds = [row.latency_s / len(row.turns) for row in rows if row.latency_s is not None and row.turns]
    if seconds and model.backend in ("litellm", "server"):
        minutes = max(planned.least_minutes, whole.calls * sum(seconds) / len(seconds) / model.concurrency / 60)
        words.append(f"about {minutes:.0f} minutes" if minutes >= 1 else "less than a minute")
    yield f"the whole run: {'; '.join(words)}; it asks only what is not in the ledger"
