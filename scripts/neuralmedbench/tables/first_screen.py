"""Sentences for the top of the page, its badges and its rules of measurement; none claims more than its interval."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from neuralmedbench.config.benchmark import are_shallow_texts
from neuralmedbench.config.load import withhold_outside_paths
from neuralmedbench.estimates.contrasts import smallest_difference
from neuralmedbench.estimates.prediction_powered import FEWEST_RATERS
from neuralmedbench.records.items import Axis, Family
from neuralmedbench.records.responses import is_by_another_model, printable_name
from neuralmedbench.records.results import RANKING, is_simulated
from neuralmedbench.records.words import capital, counted, listing, percent, percent_with_span
from neuralmedbench.tables.calibrated import FEWEST_ANSWERS, FEWEST_PATIENTS, SCORE
from neuralmedbench.tables.claims import lower_models, primary_sentence
from neuralmedbench.tables.clinicians.opinions import verdicts_of
from neuralmedbench.tables.confidence import confidence_statements
from neuralmedbench.tables.contrasts import Pair, oracle_arms, picture_sentence
from neuralmedbench.tables.cost import GRADER
from neuralmedbench.tables.declare import Cells, Tables
from neuralmedbench.tables.deid_audit import audited, stated_badges, stated_sentences
from neuralmedbench.tables.form_warnings import form_badges, form_sentences, open_rate
from neuralmedbench.tables.grader_vs_clinician import FEWEST_UNITS, follow_words
from neuralmedbench.tables.graders import not_used
from neuralmedbench.tables.leaderboard import limited_words
from neuralmedbench.tables.missing import case_words, not_graded_sentences
from neuralmedbench.tables.parts import pool_statements
from neuralmedbench.tables.study import Study, nonfinite_statements
from neuralmedbench.tables.title import title_sentence
from neuralmedbench.tables.words import (
    begun,
    best_of,
    constant_of,
    is_closed,
    models_of,
    ranked_of,
    rows_of_best,
    share,
    size_of,
    value_share,
)

MOST_BOUNDS = 4
"""Models whose bounds a sentence states; the leaderboard has all."""

ENOUGH = f"{FEWEST_ANSWERS} answers of {FEWEST_PATIENTS} patients"


def ratings_badge(study: Study) -> Cells:
    """Return the badge with the number of clinicians' ratings; simulated ones do not count."""
    clinical = [row for row in study.sampled_ratings if not row.simulated and not row.adjudicated]
    if clinical:
        text = f"{len(clinical)} by {len({row.rater_id for row in clinical})} raters"
    else:
        text = "none yet: grader only" + (" (simulated ones stand apart)" if study.sampled_ratings else "")
    return {"name": "Clinician ratings", "state": "ok" if clinical else "none", "text": text}


def trust_statements(study: Study) -> list[str]:
    """Return the rules by which clinicians correct a score and are compared with graders."""
    passes = study.form.passes
    if passes is None:
        return ["A clinician's pass is not defined: `config/rating.yaml` has no `passes`, so no score is corrected by clinicians."]
    return [
        (
            f"A clinician's pass: the mean of an answer's raters on the axis {passes.axis}, or the adjudicated value where there is one, is "
            f"{passes.from_} or more. (Our rule.)"
        ),
        (
            "Calibrated score: the graders' pass rate over all answers, plus the mean of clinician minus grader over the rated ones, each weighted "
            "with the inverse of the probability with which it was drawn (a prediction-powered mean). Answers that nobody could judge are left "
            "out; topic `calibrated` says what the score would be if all of them had failed or passed. Refused and truncated answers are wrong "
            "without a clinician. Patients are resampled, with half a pseudo-patient of disagreement added in each direction, so that few "
            f"ratings without a contradiction do not look certain. With {FEWEST_RATERS} or more raters the interval also allows "
            "for other raters judging differently (each is left out in turn); with fewer it is about these raters only. The rate is shown "
            f"beside a score once {ENOUGH} of a model are rated. (Our rules.)"
        ),
        (
            "Graders against clinicians: a grader's value and one clinician's, before anything was adjudicated; every rated answer weighs the "
            f"same, and coefficients are given for at least {FEWEST_UNITS} answers, items or models. (Our rule.) Beside it one clinician is compared with "
            "another, the upper limit for a grader. Simulated raters stand apart and never correct a score."
        ),
    ]


GRADER_ONLY = "Grader only:"


def trust_notes(study: Study, tables: Tables) -> Cells:
    """Return the lines below a leaderboard, per benchmark.

    `grader_only` where no clinician corrected it, else `raters`, whom it is about; `graders_not_used` after planted errors; `not_graded`
    where answers came and have no grade.
    """
    lines = {"grader_only": _grader_only(study, tables), "raters": _raters(tables), "graders_not_used": _graders_not_used(study, tables)}
    return {name: dict(line) for name, line in lines.items()} | {"not_graded": not_graded_sentences(study, tables)}


def trust_sentences(study: Study, tables: Tables) -> list[str]:
    """State how far the graders can be trusted; empty before clinicians have rated."""
    text = follow_words(study, tables)
    return [f"Graders: {text}"] if text else []


def _graders_not_used(study: Study, tables: Tables) -> Iterator[tuple[str, str]]:
    for benchmark in study.benchmarks:
        if parts := [part for grader in study.graders for part in not_used(study, tables, benchmark, grader)]:
            yield benchmark, f"{begun('; '.join(parts), study)}. The next grader of the list decides; without one the answer is missing."


def _raters(tables: Tables) -> Iterator[tuple[str, str]]:
    corrected = {(row["benchmark"], row["model"]) for row in tables["leaderboard"] if row.get("calibrated") is not None}
    numbers: dict[str, list[int]] = {}
    for row in tables["calibrated"]:
        if (row["measure"], row["source"]) == ("raters", SCORE) and not is_simulated(row) and (row["benchmark"], row["model"]) in corrected:
            numbers.setdefault(row["benchmark"], []).append(int(row["value"]))
    for benchmark, found in numbers.items():
        fewest, most = min(found), max(found)
        number = str(most) if fewest == most else f"{fewest} to {most}"
        if fewest < FEWEST_RATERS:
            whom = "this one rater" if most == 1 else f"these {number} raters"
            yield benchmark, f"Calibrated rates are about {whom}: what other clinicians would have judged is not in their intervals."
        else:
            yield (
                benchmark,
                f"Calibrated rates are by {number} raters: their intervals count that other clinicians might judge differently.",
            )


def _grader_only(study: Study, tables: Tables) -> Iterable[tuple[str, str]]:
    # a corrected leaderboard needs no warning
    corrected = {row["benchmark"] for row in tables["leaderboard"] if row.get("calibrated") is not None}
    # that answers were rated is no secret, also where their number is hidden
    verdicts = verdicts_of(study, simulated=False)
    rated = {key[0].partition("/")[0] for key, verdict in verdicts.items() if verdict.value is not None}
    for name, benchmark in study.benchmarks.items():
        if not benchmark.outcomes.repeatable.any() or name in corrected:
            continue
        if study.form.passes is None:
            yield name, f"{GRADER_ONLY} config/rating.yaml does not say what a clinician's pass is."
        elif name in rated:
            yield name, f"{GRADER_ONLY} clinicians have rated too few of these answers; they count once {ENOUGH} of a model are rated."
        else:
            yield name, f"{GRADER_ONLY} no clinician has rated this run."


def served_answers(study: Study) -> dict[str, Counter[tuple[str, str, str]]]:
    """Count the answers of each model and grader (`grader <name>`) by benchmark, by the model that gave them, and by why that is another one."""
    answers: dict[str, Counter[tuple[str, str, str]]] = defaultdict(Counter)
    for name, benchmark in study.benchmarks.items():
        for model, responses in benchmark.responses.items():
            answers[model].update(_answer(name, row.served_model, row.error) for row in responses)
        for (_, grader), grades in benchmark.grades.items():
            calls = {(grade.item_id, grade.text_sha256): _answer(name, grade.served_model, grade.explanation) for grade in grades}
            answers[f"{GRADER}{grader}"].update(calls.values())
    return answers


def _answer(benchmark: str, served: str, why: str) -> tuple[str, str, str]:
    return benchmark, printable_name(served), why if is_by_another_model(why) else ""


def _mixed(answers: Mapping[tuple[str, str, str], int]) -> bool:
    """Return True if more than one model answered as the one asked."""
    return len({served for _, served, why in answers if served and not why}) > 1


def served_badges(study: Study) -> list[Cells]:
    """Return a warning badge; none when every model answered for itself, throughout."""
    answers = served_answers(study)
    other = sorted({_title(study, who) for who, counts in answers.items() if any(why for _, _, why in counts)})
    mixed = sorted({_title(study, who) for who, counts in answers.items() if _mixed(counts)})
    texts = [f"another one answered for {', '.join(other)}"] if other else []
    texts += [f"changed within the run: {', '.join(mixed)}"] if mixed else []
    return [{"name": "Served models", "state": "warn", "text": "; ".join(texts)}] if texts else []


def served_sentences(study: Study) -> list[str]:
    """State for the top of the page which answers another model gave than the one asked; none is that model's answer."""
    sentences = []
    for who, counts in served_answers(study).items():
        parts = [f"{_counted(study, name, number)} were {why}" for (name, _, why), number in counts.items() if why]
        if parts:
            folder = "graders" if who.startswith(GRADER) else "models"
            sentences.append(
                f"Served models: {_title(study, who)}: {listing(parts)}. They count as missing, and their cost at its prices; if the name is"
                f" right, add it to `served_as` in config/{folder}/{who.removeprefix(GRADER)}.yaml."
            )
    return sentences


def served_statements(study: Study) -> list[str]:
    """State which models were served as several; empty when every model was one model throughout."""
    parts = []
    for who, counts in served_answers(study).items():
        if _mixed(counts):
            of_each = [
                f"{_counted(study, name, number)} by {withhold_outside_paths(served)}"
                for (name, served, why), number in counts.items()
                if served and not why
            ]
            parts.append(f"{_title(study, who)}: {listing(of_each, len(of_each))}")
    if not parts:
        return []
    return [
        (
            f"Served models: a provider answered under one name with more than one model ({'; '.join(parts)}). The score of such a model is that of a "
            "mixture, and a grader that changed did not measure all answers alike."
        )
    ]


def _counted(study: Study, benchmark: str, number: int) -> str:
    return f"{counted(number, 'answer')} to {study.benchmarks[benchmark].config.title}"


def _title(study: Study, who: str) -> str:
    if who.startswith(GRADER):
        return f"{GRADER}{study.all_graders[who.removeprefix(GRADER)].title}"
    return study.models[who].title


def title_answer(study: Study, tables: Tables) -> Cells:
    """Answer the question of the page's title: the same cases as a choice and openly (`title.title_sentence`).

    Below it stand two rates, of the first set of depth and of breadth; where no case is asked both ways, in its place. Nothing compares them:
    the two sets have other cases.

    Returns
    -------
    dict
        `short`, one line; `asked`, the question that it answers where it is another one; `support`,
        the two rates, and whether the reasoning of the best model was judged.
    """
    models = [row for name in study.benchmarks for row in models_of(tables, name)]
    if not models:
        return {"short": "No model has a rate to state.", "support": ""}
    if are_shallow_texts(benchmark.config for benchmark in study.benchmarks.values()):
        answers = [_right_answers(study, tables, name) for name in study.benchmarks]
        short = " ".join(filter(None, answers))
        return {"asked": "How many answers are right?", "short": short, "support": ""}
    depth, breadth = _first_of(study, Axis.DEPTH), _first_of(study, Axis.BREADTH)
    rates = [
        _rate_of_best(study, tables, Axis.DEPTH, depth),
        _rate_of_best(study, tables, Axis.BREADTH, breadth),
    ]
    both, reasoning = "; ".join(rates) + ".", _reasoning(study, tables, depth)
    if not study.limit and (answer := title_sentence(study, tables)):
        return {"short": answer, "support": f"{both} {reasoning}".rstrip()}
    return {"short": both, "support": reasoning}


def _first_of(study: Study, axis: Axis) -> str:
    names = [name for name, benchmark in study.benchmarks.items() if benchmark.config.axis is axis]
    return names[0] if names else ""


def _rate_of_best(study: Study, tables: Tables, axis: Axis, benchmark: str) -> str:
    head = capital(str(axis))
    if not benchmark:
        return f"{head}: no set was run"
    head = f"{head}, {study.benchmarks[benchmark].config.title}"
    best = best_of(tables, benchmark)
    if best is None or best["pass1_patients"] is None:
        return f"{head}: {_no_rank(study, models_of(tables, benchmark))}"
    size = size_of(best, " of ", separator="")
    return f"{head}: {_title_with_pool(best)} passes {share(best, 'pass1_patients')} of {size}"


def _right_answers(study: Study, tables: Tables, benchmark: str) -> str:
    """State how many answers of the best model are right, beside what a constant answer and chance earn; empty without a rank."""
    best = best_of(tables, benchmark)
    if best is None or best["pass1_patients"] is None:
        return ""
    constant = constant_of(tables, benchmark)
    floors = [f"the best constant answer earns {share(constant, 'pass1_patients')}"] if constant.get("pass1_patients") is not None else []
    floors += [f"one option at random {percent(constant['chance'])}"] if constant.get("chance") is not None else []
    size = size_of(best, " of ", separator="")
    unread = open_rate(best, tables)
    text = f"{best['title']} answers {share(best, 'pass1_patients')} of {size} rightly{f'; {listing(floors)}' if floors else ''}"
    read = (
        f"{percent(best['unread_fraction'])} could not be read{unread}"
        if unread
        else f"{best.get('unparsable') or 'none'} could not be read"
    )
    head = f"{study.benchmarks[benchmark].config.title}: " if len(study.benchmarks) > 1 else ""
    return f"{head}{text}. Of its answers {read}."


def _reasoning(study: Study, tables: Tables, benchmark: str) -> str:
    """State what is known of the reasoning behind the answers of the best model; empty without a rank."""
    best = best_of(tables, benchmark)
    if best is None or best["pass1_patients"] is None:
        return ""
    model, title = best["model"], best["title"]
    judged = [row for row in rows_of_best(tables["reasoning"], tables, benchmark) if row["value"] is not None]
    ratings = [row for row in tables["ratings"] if (row["model"], row["axis"]) == (model, "reasoning")]
    rated = any(not row["simulated"] and row["mean"] is not None for row in ratings)
    steps = []
    for row in judged:
        if row["measure"] == "reasoning.factuality":
            grader = study.all_graders[row["source"]].title
            steps.append(f"of the steps that the case decides {title} supports {value_share(row)} by {grader}")
    if steps:
        known = ", ".join(steps)
    elif judged or rated:
        known = f"the reasoning of {title} was judged, see the leaderboard"
    else:
        known = "reasoning was not measured in this run"
    parts = {row["value_of_slice"] for row in tables["rates"] if (row["benchmark"], row["slice"]) == (benchmark, "family")}
    also = ", also for the rationale items" if Family.RATIONALE_GENERATION in parts else ""
    return f"These are final answers{also}; {known}."


def sentences(study: Study, tables: Tables) -> list[str]:
    """State the main results, depth before breadth; a sentence without numbers behind it is left out. A limited run has no result to state."""
    if study.limit:
        head = f"This run is {limited_words(study.limit)}."
        return [
            head,
            *served_sentences(study),
            *_not_graded(study, tables),
            *filter(None, form_sentences(study, tables)),
            *stated_sentences(study, tables),
        ]
    order = sorted(study.benchmarks.values(), key=lambda benchmark: benchmark.config.axis is not Axis.DEPTH)
    found = [*served_sentences(study), primary_sentence(study, tables)]
    found += [_leader(study, tables, benchmark.name) for benchmark in order]
    found += [
        *_not_graded(study, tables),
        *form_sentences(study, tables),
        *stated_sentences(study, tables),
        picture_sentence(study, tables),
    ]
    return [sentence for sentence in found if sentence]


def _not_graded(study: Study, tables: Tables) -> list[str]:
    return [f"{study.benchmarks[name].config.title}: {text}" for name, text in not_graded_sentences(study, tables).items()]


def _leader(study: Study, tables: Tables, benchmark: str) -> str:
    title = study.benchmarks[benchmark].config.title
    ranked = ranked_of(tables, benchmark)
    if not ranked:
        return f"{title}: {_no_rank(study, models_of(tables, benchmark))}."
    best = ranked[0]
    rate = percent_with_span(*(best[name] for name in RANKING))
    size = size_of(best, " of ", separator="")
    sentence = f"{title}: {_title_with_pool(best)} passes {rate} of its single answers ({size})"
    if is_closed(tables):
        return f"{sentence}."
    lower, unread = lower_models(tables, benchmark, best["model"], 1 - study.settings.confidence)
    worse = [_title_with_pool(row) for row in ranked[1:] if row["model"] in lower]
    others = [_title_with_pool(row) for row in ranked[1:] if row["model"] not in lower | unread.keys()]
    rest = listing(worse) if 0 < len(worse) < 3 else f"{len(worse)} more" if unread else "all others"
    if others:
        rest = f", but {rest} {'does' if len(worse) == 1 else 'do'}" if worse else ""
        sentence += f"; {listing(others)} {'does' if len(others) == 1 else 'do'} not score significantly lower{rest}"
    elif worse:
        sentence += f"; {rest} {'scores' if len(worse) == 1 else 'score'} significantly lower"
    untold = [row for row in ranked[1:] if row["model"] in unread]
    if untold:
        shares = listing([percent(unread[row["model"]]) for row in untold], len(untold))
        sentence += f"; inconclusive for {listing(list(map(_title_with_pool, untold)))} ({shares} unread)"
    return f"{sentence}."


def _no_rank(study: Study, models: Sequence[Cells]) -> str:
    """Say why no model has a rank, and between which rates the pass rate of each lies."""
    limit = study.settings.max_missing_fraction
    if not models or any((row.get("missing_fraction") or 0) <= limit for row in models):
        return "no model has a rank yet"
    of_each = {1: f"of {_title_with_pool(models[0])}"}.get(len(models), "of every model")
    between = [f"{_title_with_pool(row)} passes {words}" for row in models if (words := case_words(row))]
    bounds = f"; {listing(between, len(between))}, depending on what is missing" if 0 < len(between) <= MOST_BOUNDS else ""
    return f"no model has a rank: more than {percent(limit)} of the answers {of_each} are missing or not graded{bounds}"


def _title_with_pool(row: Cells) -> str:
    return f"{row['title']} (of its reference pool)" if row["in_reference_pool"] else str(row["title"])


def badges(study: Study, tables: Tables) -> list[Cells]:
    """Return the badges of the run, each in the state `ok`, `warn` or `none`."""
    asked = [row for row in tables["leaderboard"] if not row.get("reader")]  # items that a reader was not shown are not missing
    expected = sum(row.get("expected") or 0 for row in asked)
    missing = sum(row.get("missing") or 0 for row in asked)
    kinds = sorted({benchmark.audit.kind for benchmark in study.benchmarks.values()})
    state = "complete" if not missing else f"{expected - missing:,} of {expected:,}"
    unread = form_badges(study, asked)
    limited = (
        [{"name": "Limited run", "state": "warn", "text": f"{counted(study.limit, 'answer')} per model: no result"}] if study.limit else []
    )
    return [
        *limited,
        # green only for answers that are all there and were read
        {"name": "Answers", "state": "warn" if missing else "none" if unread else "ok", "text": state}
        if expected
        else {"name": "Answers", "state": "none", "text": "none expected"},
        *unread,
        *stated_badges(study),
        ratings_badge(study),
        {"name": "De-identification", **_deidentification(study)},
        {"name": "Subjects", "state": "none" if kinds in ([], ["phantom"]) else "ok", "text": " and ".join(kinds) or "none"},
        *served_badges(study),
    ]


def _deidentification(study: Study) -> Cells:
    """Return state and text of the badge: green only where checks ran on the data of every benchmark."""
    if not study.benchmarks:
        return {"state": "none", "text": "nothing to check"}
    checked, unchecked = audited(study)
    parts = ["passed" if all(checked) else "not passed everywhere"] if checked else []
    if unchecked:
        parts.append(f"not run on {listing(unchecked)}: public data" if checked else "not run: public data")
    return {"state": "warn" if not all(checked) else "none" if unchecked else "ok", "text": "; ".join(parts)}


def notes(study: Study, tables: Tables, pairs: dict[str, list[Pair]]) -> Cells:
    """Return the rules of measurement in words, with their numbers."""
    smallest: dict[str, float | None] = {}
    for benchmark, found in pairs.items():
        models = [pair.difference for pair in found if study.readers.keys().isdisjoint((pair.row.model, pair.row.other))]
        known = sorted((difference.error, difference.patients) for difference in models if difference.error > 0 and difference.patients > 1)
        # the median pair stands for the benchmark
        shown = smallest_difference(*known[len(known) // 2], 1 - study.settings.confidence) if known else None
        smallest[benchmark] = None if shown is None else round(shown, 6)
    settings = study.settings
    return {
        "min_difference": smallest,
        "resamples": settings.resamples,
        "seed": settings.seed,
        "confidence": settings.confidence,
        "statements": [
            *_statements_on_rates(study),
            *_statements_on_comparisons(study),
            *confidence_statements(),
            *trust_statements(study),
            *_oracle(study),
            *pool_statements(study),
            *served_statements(study),
            *nonfinite_statements(study),
        ],
        "oracle": oracle_benchmarks(study),
        "pass_axis": study.form.passes.axis if study.form.passes else "",
    }


def _statements_on_rates(study: Study) -> list[str]:
    settings = study.settings
    level, limit = percent(settings.confidence), percent(settings.max_missing_fraction)
    return [
        (
            "Denominator: all expected items times samples. Refused, truncated and unparsable answers "
            "are wrong: they are the model's behaviour."
        ),
        ("Each request is independent of the others: it holds one item, and earlier turns only within a dialogue or a work-up."),
        (
            "Missing answers are ours: failed, over budget, skipped, not graded. "
            f"Above {limit} missing a model has no rank and no rate. In its place stand two scores, "
            "without an interval: if all missing answers had failed, and if all had passed. "
            "Contrasts use items without a missing answer. (Our rule.)"
        ),
        (
            "Pass: a closed item passes by the option or the class. For an open item the grader decides, "
            "by the first diagnosis (the reference, a synonym or a narrower term) or by the place and "
            "side of the lesion. A wider term is the right family and does not pass. (Our rule.)"
        ),
        (
            "pass@5 has two readings, over the items that ask for a ranked differential and have five samples. One is the "
            "chance that any of five samples passes, unbiased, only at a temperature above 0. The other is the reference among "
            "five candidates of one answer. Other items with five samples have a pass@5 only in their task. (Our rule.)"
        ),
        (
            f"Rates have {level} intervals, which treat patients, not answers, as independent. They are exact for the "
            "effective sample size, at any number of patients (Korn and Graubard). The variance of a mean over "
            "items is never below that of equally correlated items (Kish). If all or no answers pass, the interval is "
            "one-sided; any other interval of as many items is at least as wide on each side. (Our rules.)"
        ),
    ]


def _statements_on_comparisons(study: Study) -> list[str]:
    settings = study.settings
    return [
        (
            "Differences: each patient gives one number, and patients count alike. Patients who share a request count "
            "as one. A sign-flip permutation test is exact up to 12 patients, with "
            f"{settings.resamples:,} draws above (seed {settings.seed}). Below what the draws can resolve, p is Hoeffding's bound. "
            "The interval contains every value that the same test does not reject. Its limit farther from 0 is never "
            "closer to 0 than Newcombe's. (Our rules.)"
        ),
        (
            "Tiers: a model joins the tier of the best model unless it is significantly different from it. Rank ranges "
            f"come from {settings.resamples:,} resamples of patients, who count alike."
        ),
        (
            "Best constant answer: the score of one and the same answer to all items of a task. It is chosen on one half "
            "of the patients and tested on the other, over 2,000 random halves. Its upper limit is the constant that is best "
            "in hindsight, so it is no confidence limit. It is computed, not asked. (Our rule.)"
        ),
        (
            "Sentences at a glance: a comparison that was stated before the run is tested first, at the full error rate. Pictures "
            "and all pairs of models are tested only if it is significant, or if none was stated. They are corrected "
            "together (step-down max-T with joint sign flips of patients). A difference from the leader is not stated if it would "
            "vanish had all unread answers passed. Tiers follow the same p values. All other comparisons are exploratory: "
            "their intervals are not corrected. (Our rule.)"
        ),
        (
            "Perception or reasoning: f is the score under the full request, d the score with the findings given in words. "
            "d - f always has its sign, interval and p value. The share of the errors that the findings repair, "
            "(d - f) / (1 - f), is given only if d is significantly above three scores: f, the score with another "
            "patient's findings, and the score with the findings only. Errors that remain are not necessarily reasoning "
            "errors. (Our rules.)"
        ),
        (
            "Similarity of words is descriptive. In a separate test on hard clinical pairs it did worse than chance, so it never decides a pass."
        ),
    ]


def oracle_benchmarks(study: Study) -> list[str]:
    """Return the titles of the benchmarks whose slices were chosen with the answer."""
    return [
        benchmark.config.title
        for benchmark in study.benchmarks.values()
        if any(image.oracle for item in benchmark.items for image in item.images)
    ]


def _oracle(study: Study) -> list[str]:
    found, beside = oracle_benchmarks(study), [one.config.title for one in study.benchmarks.values() if oracle_arms(one)]
    stated = []
    if found:
        stated.append(
            f"Oracle slices: the pictures of {listing(found)} were chosen with the answer, around the known lesion. Scores on them say what a "
            "model makes of the right slices, not what it would find by itself, and are not comparable with others."
        )
    if beside:
        stated.append(
            f"Oracle slices as an arm: of {listing(beside)} models were also shown slices cut at the known lesion, as an upper bound, which uses "
            "the truth. No other arm shows them, and they decide no rank."
        )
    return stated
