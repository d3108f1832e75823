"""Parse the answers of a structured item whose values are asked for one after another."""

from __future__ import annotations

from neuralmedbench.records.items import Item, Runner
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import ParseStatus, Prediction
from neuralmedbench.records.value_rules import part_of_schema
from neuralmedbench.scoring.parse import plain_text
from neuralmedbench.scoring.structured_answer import parse_structured


def in_stages(item: Item) -> bool:
    """Return True for a structured item that is asked in several turns, each for its own fields."""
    return item.runner is Runner.STRUCTURED and bool(item.turns)


def parse_stages(response: Response, item: Item) -> Prediction:
    """Parse every turn of an item that is asked in stages; fields of a turn that cannot be read are empty.

    `strict` if every turn kept its form, `failed` if none could be read. A refusal or a truncation is known of the last turn only, which is
    then not read; an earlier one has words that cannot be read, or none.
    """
    texts = response.turns or (response.text,)
    answered = texts if response.state is ResponseState.OK else texts[:-1]
    fields: dict[str, str] = {}
    states, stated = [], []
    for place, turn in enumerate(item.turns):
        text = plain_text(answered[place]) if place < len(answered) else ""
        read = parse_structured(text, part_of_schema(item.answer_schema, turn.asks))
        states.append(read.parse_status)
        fields |= dict.fromkeys(turn.asks, "") if read.parse_status is ParseStatus.FAILED else read.fields or {}
        stated += [f"{name} {fields[name]}" for name in turn.asks if fields.get(name)]
    read_turns = [status for status in states if status is not ParseStatus.FAILED]
    return Prediction(
        parse_status=ParseStatus.FAILED
        if not read_turns
        else ParseStatus.STRICT
        if set(states) == {ParseStatus.STRICT}
        else ParseStatus.REPAIRED,
        differential=("; ".join(stated),) if stated else (),
        fields=fields if read_turns else None,
        abstained=not stated,
    )
