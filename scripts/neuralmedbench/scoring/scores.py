"""The scoring rules: score each response on its own, let the samples of self-consistency vote, and say whether two answers are the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from neuralmedbench.errors import ScoringError
from neuralmedbench.records.arm_changes import by_digest, in_form, right_letter
from neuralmedbench.records.items import Family, Gold, Item, Runner, Strategy
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.responses import MISSING_STATES, Response, ResponseState
from neuralmedbench.records.scores import (
    CORE_DIAGNOSIS,
    MAIN_CONDITION,
    Grade,
    GradeState,
    Key,
    ParseStatus,
    Prediction,
    Score,
    response_key,
    text_digest,
)
from neuralmedbench.records.thoughts import is_only_thoughts
from neuralmedbench.records.value_rules import RULES, is_right, read_value, share_of
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.scoring.evidence import Pictures, judge_evidence
from neuralmedbench.scoring.matching import RIGHT, ReferenceAnswer, Relation, diagnosis_of_criterion, reference_rank, relation
from neuralmedbench.scoring.other_languages import unread_language
from neuralmedbench.scoring.parse import in_stages, parse_answer, parse_stages, parse_under
from neuralmedbench.scoring.rubric import GRADED_RUNNERS, is_outside, is_question, verdict
from neuralmedbench.scoring.structured_answer import FIELDS, gold_labels
from neuralmedbench.scoring.workup import without_candidates

Group = tuple[str, str, str, str]

PASS_VALUE = 0.5
"""An open item passes with a core-diagnosis grade of at least this value."""

Criteria = dict[str, Grade]


class RubricGraders(NamedTuple):
    """Names of the graders that judge whole rubrics: by comparing words, and language models or juries of them."""

    by_words: Collection[str] = ()
    by_models: Collection[str] = ()


NO_RUBRICS = RubricGraders()
NO_PICTURES = Pictures()


class Points(NamedTuple):
    """Share of the points of a rubric, 0 to 1: with capping criteria, and without."""

    capped: float | None
    uncapped: float | None


class Election(NamedTuple):
    """The elected sample, its votes, and the number of samples that are there (including those without a vote)."""

    row: Score
    votes: int
    samples: int


def score_responses(
    responses: Iterable[Response],
    items: Mapping[str, Item],
    gold: Mapping[str, Gold],
    grades: Sequence[Iterable[Grade]],
    *,
    vocabulary: Vocabulary,
    rubrics: RubricGraders = NO_RUBRICS,
    pictures: Pictures = NO_PICTURES,
) -> list[Score]:
    """Score the responses of one model.

    Parameters
    ----------
    responses : iterable of Response
        One row per expected answer, including missing ones.
    items, gold : mapping
        By item id; an item without gold is reported as not scored.
    grades : sequence of iterable of Grade
        Grades of each grader, in the order of the run list: the first grader with a value counts.
    vocabulary : Vocabulary
        Diagnoses and their synonyms.
    rubrics : RubricGraders
        Graders of which points are counted: `keyword_coverage` by words, `rubric` by models.
    pictures : Pictures
        The known lesion on each picture, and the unit of the coordinates that answers state.

    Returns
    -------
    list of Score
        One row per response; under `self_consistency` one per item (`elect`).

    Raises
    ------
    ScoringError
        If a response belongs to no item, or two have the same key.
    """
    references = {item_id: ReferenceAnswer.of(row, vocabulary) for item_id, row in gold.items()}
    by_grader = [grades_by_response(rows) for rows in grades]
    scores, seen = [], set[Key]()
    for response in responses:
        key = response_key(response)
        if response.item_id not in items:
            message = f"{response.model}: a response to {response.item_id}, which is no item; run the stage infer again"
            raise ScoringError(message)
        if key in seen:
            message = f"{response.model}: two responses with the key {key}; delete the responses and run the stage infer again"
            raise ScoringError(message)
        seen.add(key)
        digest = text_digest(response.text)
        # a grade counts only for the text it was made for: the digest keeps grades of an earlier answer out
        criteria = [table.get((key, digest), {}) for table in by_grader]
        item, reference = in_form(items[response.item_id], response.arm), references.get(response.item_id)
        scores.append(_score(response, digest, item, reference, criteria, rubrics=rubrics, pictures=pictures))
    return elect(scores, vocabulary)


def grades_by_response(rows: Iterable[Grade]) -> dict[tuple[Key, str], Criteria]:
    """Sort the grades of one grader; failed ones are left out.

    Parameters
    ----------
    rows : iterable of Grade
        Grades of any responses.

    Returns
    -------
    dict of (Key, str) to dict of str to Grade
        By the key of the response and the digest of its text, then by criterion: a grade counts only for the text it was made for.
    """
    table: dict[tuple[Key, str], Criteria] = {}
    for row in rows:
        if row.state is GradeState.OK and row.value is not None:
            table.setdefault((response_key(row), row.text_sha256), {})[row.criterion] = row
    return table


def _score(
    response: Response,
    digest: str,
    item: Item,
    reference: ReferenceAnswer | None,
    grades: Sequence[Criteria],
    *,
    rubrics: RubricGraders,
    pictures: Pictures,
) -> Score:
    missing = response.state in MISSING_STATES
    as_shown = pictures.under(response.arm, item) if item.runner in GRADED_RUNNERS else None
    shown, view = as_shown or (item, pictures)
    right = reference.gold.choice if reference else ""
    text = without_candidates(response.text) if response.strategy == Strategy.WORKUP else response.text
    if missing:
        prediction = Prediction(parse_status=ParseStatus.ABSENT)
    else:
        prediction = (
            parse_stages(response, item) if in_stages(item) else parse_under(text, shown, response.arm, right=right, y_first=view.y_first)
        )
    verdict: dict[str, Any] = {}
    if reference is not None and not missing:
        verdict = _verdict(response, item, prediction, reference, grades, rubrics=rubrics)
        if as_shown is not None:
            read = prediction if response.state is ResponseState.OK else Prediction(parse_status=ParseStatus.FAILED)
            verdict |= vars(judge_evidence(read, shown, reference, view))
    return Score(
        item_id=item.item_id,
        case_id=item.case_id,
        patient_id=item.patient_id,
        benchmark=item.benchmark,
        axis=item.axis,
        family=item.family,
        level=item.level,
        runner=item.runner,
        arm=response.arm,
        strategy=response.strategy,
        model=response.model,
        revision=response.revision,
        repeat=response.repeat,
        text_sha256=digest,
        state=response.state,
        parse_status=prediction.parse_status,
        missing=missing,
        scored=reference is not None,
        lesion_shown=item.lesion_shown,
        differential=prediction.differential,
        fields=prediction.fields,
        confidence=prediction.confidence,
        abstained=prediction.abstained,
        text=response.text,
        **verdict,
    )


def _verdict(
    response: Response,
    item: Item,
    prediction: Prediction,
    reference: ReferenceAnswer,
    grades: Sequence[Criteria],
    *,
    rubrics: RubricGraders,
) -> dict[str, Any]:
    """Return the fields of a score that say right or wrong; a refused or truncated answer, and thoughts alone, are wrong whatever their text."""
    answered = response.state is ResponseState.OK and not is_only_thoughts(response.text)
    if item.runner is Runner.STRUCTURED:
        # the turns before a last one that was refused or cut off were answered
        return _structured(prediction, reference.gold, answered=answered or in_stages(item))
    # what words cannot judge has no points by words, whether answered or refused
    by_words = () if any(is_question(criterion) for criterion in reference.gold.rubric) else rubrics.by_words
    by_model = _points(grades, reference.gold, rubrics.by_models, answered=answered)
    # open items: the grades decide; a missing grade stays None and is never a zero
    graded = {
        "main_condition": _first(grades, MAIN_CONDITION) if answered else 0.0,
        "core_diagnosis": _first(grades, CORE_DIAGNOSIS) if answered else 0.0,
        "rubric": by_model.capped,
        "rubric_uncapped": by_model.uncapped,
        "keyword_coverage": _points(grades, reference.gold, by_words, answered=answered).capped,
    }
    main, core = graded["main_condition"], graded["core_diagnosis"]
    if main is not None and core is not None and core > main:  # the narrow diagnosis without the wide one, which it includes: no verdict
        graded["main_condition"] = graded["core_diagnosis"] = core = None
    passed = None if core is None else core >= PASS_VALUE
    if item.runner is Runner.CHOICE:
        # the letter decides, not the diagnosis: two options may be synonyms
        return {"passed": answered and prediction.choice == right_letter(item, reference.gold)}
    outside = is_outside(item, reference)
    language = unread_language(response.text, prediction, item, reference) if answered and not outside else ""
    if item.family is Family.LESION_RECOGNITION:
        return {**graded, "passed": passed, "other_language": language}
    if outside:
        return {**graded, "passed": passed}
    lead = _relation(prediction, reference)
    rank = reference_rank(prediction.differential, reference) if answered else None
    return {
        **graded,
        "passed": passed,
        "relation": "" if language else lead or "",
        "right_family": None if language else answered and lead is Relation.PARENT,
        "reference_rank": rank,
        "in_candidates": None if language and rank is None else rank is not None,
        "other_language": language,
        **_turns(response, item, reference),
    }


def _structured(prediction: Prediction, gold: Gold, *, answered: bool) -> dict[str, Any]:
    if gold.values:
        return _values(prediction, gold, answered=answered)
    if gold.fields is None:
        return {}
    # fields without a reference label are not scored; an unreadable answer is wrong in all others but abstains in none
    wanted = gold_labels(gold.fields)
    given = prediction.fields or {}
    right = {name: answered and given.get(name) == wanted[name] for name in FIELDS if name in wanted}
    read = prediction.parse_status is not ParseStatus.FAILED
    return {
        "passed": right.get("class"),
        "fields_right": right,
        "fields_abstained": tuple(name for name in FIELDS if read and name in wanted and name not in given),
    }


def _values(prediction: Prediction, gold: Gold, *, answered: bool) -> dict[str, Any]:
    """Compare every value with its reference by its rule; an answer passes if all values that decide and can be right are right."""
    given = prediction.fields or {} if answered else {}
    read = {value.field: read_value(value.rule, given[value.field]) if value.field in given else None for value in gold.values}
    verdicts = {value.field: is_right(read[value.field], value) for value in gold.values}
    right = {name: verdict for name, verdict in verdicts.items() if verdict is not None}
    decisive = [right[value.field] for value in gold.values if value.decides and value.field in right]
    named = prediction.parse_status is not ParseStatus.FAILED
    return {
        "passed": all(decisive) if decisive else None,
        "fields_right": right,
        "fields_share": {
            value.field: 0.0 if read[value.field] is None else share_of(read[value.field], value)
            for value in gold.values
            if RULES[value.rule].degrees
        },
        "fields_abstained": tuple(value.field for value in gold.values if named and value.field not in (prediction.fields or {})),
    }


def _first(grades: Sequence[Criteria], criterion: str) -> float | None:
    return next((table[criterion].value for table in grades if criterion in table), None)


def _points(grades: Sequence[Criteria], gold: Gold, graders: Collection[str], *, answered: bool) -> Points:
    """Return the points earned over all positive points, 0 to 1, by the first of some graders that judged the item's whole rubric.

    As in HealthBench (Arora et al., arXiv 2505.08775), but each item is clipped to 0..1 (there only the mean is), as LiveMedBench does with
    its cases, so that one dangerous answer cannot outweigh good ones in a mean. An answer that meets a capping criterion is harmful and gets 0.
    """
    names = [criterion.criterion for criterion in gold.rubric]
    available = sum(criterion.points for criterion in gold.rubric if criterion.points > 0)
    if not answered:
        return Points(0.0, 0.0) if names and graders else Points(None, None)
    # one grader must have judged every criterion: points of two graders are not mixed
    judged = next((table for table in grades if names and all(name in table and table[name].grader in graders for name in names)), None)
    if judged is None or available <= 0:
        return Points(None, None)
    values = {name: judged[name].value or 0.0 for name in names}
    earned = sum(criterion.points * values[criterion.criterion] for criterion in gold.rubric)
    share = min(1.0, max(0.0, earned / available))
    harmful = any(criterion.cap and values[criterion.criterion] >= PASS_VALUE for criterion in gold.rubric)
    return Points(0.0 if harmful else share, share)


def _relation(prediction: Prediction, reference: ReferenceAnswer) -> Relation | None:
    return relation(prediction.differential[0], reference) if prediction.differential else None


def _turns(response: Response, item: Item, reference: ReferenceAnswer) -> dict[str, Any]:
    if item.runner is not Runner.DIALOGUE or response.strategy == Strategy.ASK:  # under `ask` all turns but the last are questions
        return {}
    read = [parse_answer(text, item) for text in response.turns or (response.text,)]
    leaders = tuple(prediction.differential[0] if prediction.differential else "" for prediction in read)
    return {"turn_leaders": leaders, "turn_passes": tuple(_relation(prediction, reference) in RIGHT for prediction in read)}


def elect(scores: Iterable[Score], vocabulary: Vocabulary) -> list[Score]:
    """Let the samples of `self_consistency` vote: one row per item is kept; rows of other strategies are unchanged.

    Unweighted majority over final answers, as in Wang et al., Self-Consistency (ICLR 2023). A vote is an option, a class, lesion location
    and side, or the leading diagnosis (of a dialogue's last turn); an answer that names nothing has none. The kept row is the first sample
    of the majority, or the first sample if nobody voted. Ties are broken by a digest of item and answer, which depends neither on the
    order of samples nor on the alphabet. If samples that are missing for our reasons could have changed the vote, the item is missing.
    """
    elected: list[Score] = []
    groups: dict[Group, list[Score]] = defaultdict(list)
    for score in scores:
        if score.strategy == Strategy.SELF_CONSISTENCY:
            groups[score.item_id, score.arm, score.model, score.revision].append(score)
        else:
            elected.append(score)
    return elected + [elect_sample(rows, vocabulary).row for rows in groups.values()]


def elect_sample(rows: Iterable[Score], vocabulary: Vocabulary) -> Election:
    """Elect one of the samples of an item, by the rules of :func:`elect`.

    Parameters
    ----------
    rows : iterable of Score
        The samples of one model under one arm and strategy; at least one.
    vocabulary : Vocabulary
        Makes two names of one diagnosis one vote.

    Returns
    -------
    Election
        The elected sample; a missing one if the missing samples could have changed the vote.
    """
    rows = sorted(rows, key=lambda row: row.repeat)
    missing = [row for row in rows if row.missing]
    present = [row for row in rows if not row.missing]
    # count the votes; ties by digest
    votes = [(vote, row) for row in present if (vote := _vote_of(row, vocabulary))]
    counts = Counter(vote for vote, _ in votes)
    order = sorted(counts, key=lambda vote: (-counts[vote], by_digest(rows[0].item_id, vote)))
    # the missing samples could all have voted for the runner-up
    lead = counts[order[0]] - (counts[order[1]] if len(order) > 1 else 0) if order else 0
    if missing and len(missing) >= lead:
        return Election(missing[0], 0, len(present))
    if not order:
        return Election(present[0], 0, len(present))
    return Election(next(row for vote, row in votes if vote == order[0]), counts[order[0]], len(present))


def _vote_of(row: Score, vocabulary: Vocabulary) -> str:
    """Return the vote of a sample: its answer under one name; empty if it names nothing."""
    if row.state != "ok" or not row.differential:
        return ""
    if row.family == Family.LESION_RECOGNITION:
        fields = row.fields or {}
        place, side = (normal_form(fields.get(name, "")) for name in ("location", "side"))
        return f"{vocabulary.places.get(place, place)} / {side}"
    first = row.differential[0]
    # options and classes are compared as written: in their data set two synonyms are two answers
    known = None if row.runner in (Runner.CHOICE, Runner.STRUCTURED) else vocabulary.find(first)
    return known.key if known else normal_form(first)


def is_named(score: Score) -> bool:
    """Return True if an answer could be read and names something."""
    return score.state == "ok" and not score.abstained and bool(score.differential or score.fields)


def same_answer(one: Score, other: Score, vocabulary: Vocabulary) -> bool:
    """Return True if two answers to one item say the same.

    Parameters
    ----------
    one, other : Score
        The answers, in any order.
    vocabulary : Vocabulary
        Names of diagnoses and places.

    Returns
    -------
    bool
        Options and classes by their text, lesions by place and side, other structured answers by all their values; diagnoses if one of the
        first two is the other under any name, or a narrower term. False if one of them names nothing.
    """
    if not (is_named(one) and is_named(other)):
        return False
    if one.runner == Runner.STRUCTURED and not (one.differential and other.differential):
        return one.fields == other.fields
    if _vote_of(one, vocabulary) == _vote_of(other, vocabulary):
        return True
    if one.runner in (Runner.CHOICE, Runner.STRUCTURED) or one.family == Family.LESION_RECOGNITION:
        return False
    first, second = one.differential[0], other.differential[0]
    return any(relation(line, diagnosis_of_criterion(name, vocabulary)) in RIGHT for line, name in ((first, second), (second, first)))


def is_suggested(score: Score, item: Item, suggested: Gold, vocabulary: Vocabulary) -> bool:
    """Return True if an answer is the one that was suggested.

    Parameters
    ----------
    score : Score
        The answer.
    item : Item
        Its item.
    suggested : Gold
        The suggested answer as if it were the reference (`records.arm_changes`).
    vocabulary : Vocabulary
        Names of diagnoses and places.

    Returns
    -------
    bool
        By the words alone, as the grader `rubric` compares them with a reference, whatever grader decides what is right.
    """
    if not is_named(score):
        return False
    if item.runner is Runner.CHOICE:
        return score.differential[:1] == (item.options[LETTERS.index(suggested.choice)],)
    if item.runner is Runner.STRUCTURED:
        return suggested.fields is not None and (score.fields or {}).get("class") == suggested.fields.diagnosis_class
    prediction = Prediction(parse_status=ParseStatus(score.parse_status), differential=score.differential, fields=score.fields)
    return verdict(prediction, item, ReferenceAnswer.of(suggested, vocabulary))[1]
