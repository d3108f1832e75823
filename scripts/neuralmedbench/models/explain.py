"""What a model is really sent, in words that a person can check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.models.conversation import Said, next_messages
from neuralmedbench.models.keys import call_key
from neuralmedbench.models.ledger import Entry
from neuralmedbench.records.requests import Request


def explain(request: Request, model: ModelConfig, entries: Mapping[str, Entry], *, code: str = "") -> str:
    """Write down the conversation of one request and what the ledger holds of it.

    Parameters
    ----------
    request : Request
        The request.
    model : ModelConfig
        The model: its picture budget decides which pictures are sent.
    entries : mapping of str to Entry
        The ledger.
    code : str
        As in `models.keys.call_key`.

    Returns
    -------
    str
        The messages of the first sample, pictures by label, path and digest, then one line a sample.
    """
    lines = [f"request {request.request_id} ({request.item_id}, arm {request.arm}, strategy {request.strategy})", ""]
    for repeat in range(request.samples):
        answers: list[str] = []
        said: tuple[Said, ...] = ()
        while (due := next_messages(request, answers, model.max_images)) is not None:
            said = due
            entry = entries.get(call_key(model, said, repeat, code=code))
            if entry is None:
                break
            answers.append(entry.text)
        if repeat == 0:
            lines += [line for message in said for line in _message(message)]
            lines += ["--- answer", *(answers[-1:] if due is None else []), ""]
        asked = (
            f"up to {request.inquiry.max_questions + 1}"
            if request.inquiry and due
            else str(len(answers) if due is None else len(request.turns))
        )
        lines.append(f"sample {repeat}: {len(answers)} of {asked} calls are in the ledger")
    return "\n".join(lines)


def _message(said: Said) -> Iterator[str]:
    yield f"--- {said.role}"
    yield said.text
    for image in said.images:
        yield f"[{image.label}: {image.path}, sha256 {image.sha256[:12]}]"
