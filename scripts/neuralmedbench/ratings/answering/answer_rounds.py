"""Freeze a reader round: draw the questions, make one packet per reader without answers or references, and a key that stays here."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from random import Random

from neuralmedbench.errors import RatingError
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.ratings.answering.answers import AskedItem, ReaderKey, ReaderRoundKey, forms_of
from neuralmedbench.ratings.answering.work_ups import turns_of, work_up_data
from neuralmedbench.ratings.form import AnswerSettings
from neuralmedbench.ratings.page import Json, form_page, read_pictures
from neuralmedbench.ratings.rounds import StratifiedDraw, draw, opaque_id, presentation_order
from neuralmedbench.records.examinations.matching import offered_requests
from neuralmedbench.records.items import Item, Level, Strategy
from neuralmedbench.records.requests import Request

TITLE = "Questions"
FORM = Path(__file__).with_name("form")


@dataclass(frozen=True)
class RoundQuestion:
    """A question that a round may draw: the item, and the request under arm `full`, strategy `direct` or `workup`."""

    item: Item
    request: Request

    @property
    def stratum(self) -> str:
        """Benchmark, family and level."""
        return f"{self.item.benchmark}/{self.item.family}/{self.item.level}"

    @property
    def case(self) -> str:
        """Benchmark and case."""
        return f"{self.item.benchmark}/{self.item.case_id}"


@dataclass(frozen=True)
class FrozenReaderRound:
    """A reader round before it is written: its key, and the page of each reader by pseudonym."""

    key: ReaderRoundKey
    pages: dict[str, str]


@dataclass(frozen=True)
class _DrawnQuestion:
    """A question with the probability of its draw."""

    question: RoundQuestion
    probability: float


def freeze_reader_round(
    round_id: str, settings: AnswerSettings, questions: Iterable[RoundQuestion], *, root: Path = Path(), secret: str = ""
) -> FrozenReaderRound:
    """Draw a reader round and make its packets.

    Parameters
    ----------
    round_id : str
        Name of the round, from which the pseudonyms of readers are made.
    settings : AnswerSettings
        Settings of the draw.
    questions : iterable of RoundQuestion
        Every question that may be drawn: the population of the draw probabilities. All are asked by one strategy.
    root : Path
        Repository root; paths of pictures are relative to it.
    secret : str
        Hexadecimal key for opaque ids and orders; a new one is made if it is empty.

    Returns
    -------
    FrozenReaderRound
        Equal bytes for an equal secret and equal input.

    Raises
    ------
    RatingError
        If there is nothing to draw, fewer questions are requested than there are strata, or a page cannot ask a question.
    DataError
        If a picture is not the one that models are sent.
    """
    secret, seed = secret or secrets.token_hex(32), f"{settings.seed}/{round_id}"
    # sorted, so that the draw does not depend on the order of the input
    frame = sorted(questions, key=lambda one: one.item.item_id)
    if not frame:
        message = (
            f"{round_id}: there is no question to draw from the families {', '.join(settings.families)}; run the workflow first"
            " (work-ups need `workup` among the strategies of a benchmark)"
        )
        raise RatingError(message)
    among = _once_per_case(frame, seed) if settings.once_per_case else [_DrawnQuestion(one, 1.0) for one in frame]
    drawn = draw([one.question.stratum for one in among], settings.items, seed)
    chosen = [_with_probability(among[place], drawn) for place in drawn.places]
    # read once, because all readers get the same questions
    requests = [one.question.request for one in chosen]
    of_facts = (turn for request in requests if request.inquiry for turn in turns_of(request.inquiry))
    pictures = read_pictures(chain((turn for request in requests for turn in request.turns), of_facts), root)
    packets, pages = [], {}
    for number in range(settings.readers):
        reader = f"{round_id}-{number + 1}"
        # each reader has other ids and another order
        key, data = _packet(reader, chosen, secret, pictures)
        packets.append(key)
        pages[reader] = form_page(TITLE, data, FORM)
    whole = ReaderRoundKey(
        schema="neuralmedbench.answers_key/1",
        round_id=round_id,
        seed=settings.seed,
        secret=secret,
        strata=drawn.strata,
        packets=packets,
        strategy=Strategy.WORKUP if frame[0].request.inquiry else Strategy.DIRECT,
    )
    return FrozenReaderRound(whole, pages)


def _once_per_case(frame: Sequence[RoundQuestion], seed: str) -> list[_DrawnQuestion]:
    """Draw one question per case, so that no reader sees a case twice: of n questions, each has the probability 1 / n."""
    of_case: dict[str, list[RoundQuestion]] = defaultdict(list)
    for one in frame:
        of_case[one.case].append(one)
    drawn = [_DrawnQuestion(Random(f"{seed}/{case}").choice(ones), 1 / len(ones)) for case, ones in of_case.items()]
    return sorted(drawn, key=lambda one: one.question.item.item_id)


def _with_probability(one: _DrawnQuestion, drawn: StratifiedDraw) -> _DrawnQuestion:
    """Multiply the probabilities of both draws: of the question within its case, and of the case within its stratum."""
    return _DrawnQuestion(one.question, one.probability * drawn.strata[one.question.stratum].probability)


def _packet(reader: str, chosen: Sequence[_DrawnQuestion], secret: str, pictures: dict[str, str]) -> tuple[ReaderKey, Json]:
    """Return one reader's packet: its key and the data of its page; ids and order are derived from the secret."""
    # ids differ by reader, so that two readers cannot compare questions by id
    shown = {opaque_id(secret, reader, one.question.item.item_id): one for one in chosen}
    cases = {item_id: one.question.case for item_id, one in shown.items()}
    order = presentation_order(shown, cases, _predecessors(shown), Random(f"{secret}/{reader}"))
    items = [_question_data(item_id, opaque_id(secret, reader, f"case/{cases[item_id]}"), shown[item_id].question) for item_id in order]
    data: Json = {"packet_id": opaque_id(secret, reader, "packet"), "rater": reader, "items": items, "pictures": pictures}
    if any(one.question.request.inquiry for one in chosen):
        data["requests"] = list(offered_requests())
    # the digest ties an export to this packet
    digest = sha256_of_value(data)
    asked = {
        item_id: AskedItem(
            item_id=one.question.item.item_id,
            benchmark=one.question.item.benchmark,
            request_id=one.question.request.request_id,
            stratum=one.question.stratum,
            probability=one.probability,
        )
        for item_id, one in shown.items()
    }
    key = ReaderKey(packet_id=data["packet_id"], packet_sha256=digest, rater=reader, items=asked, order=order)
    return key, data | {"packet_sha256": digest}


def _predecessors(shown: dict[str, _DrawnQuestion]) -> dict[str, str]:
    """Return the predecessor of each further question on a case: the questions that reveal most come last."""
    of_case: dict[str, list[str]] = defaultdict(list)
    for item_id in sorted(
        shown, key=lambda item_id: (_disclosure_rank(shown[item_id].question.item), shown[item_id].question.item.item_id)
    ):
        of_case[shown[item_id].question.case].append(item_id)
    return {second: first for ids in of_case.values() for first, second in pairwise(ids)}


def _disclosure_rank(item: Item) -> tuple[bool, int]:
    """Rank how much a question reveals of its case: one that states the diagnosis reveals most."""
    return bool(item.given), list(Level).index(item.level) if item.level is not Level.NONE else -1


def _question_data(item_id: str, group: str, question: RoundQuestion) -> Json:
    """Return a question as the page reads it: the system prompt of models, and each message with its pictures and form."""
    turns = [
        {
            "text": turn.words[turn.example_characters :].strip(),
            "pictures": [[image.sha256, image.label] for image in turn.images if not image.example],
            "form": form.shown(),
        }
        for turn, form in zip(question.request.turns, forms_of(question.item, question.request), strict=True)
    ]
    data: Json = {"item_id": item_id, "group": group, "told": question.request.system, "turns": turns}
    return data | ({"work_up": work_up_data(question.request.inquiry)} if question.request.inquiry else {})
