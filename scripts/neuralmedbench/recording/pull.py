"""What others recorded, brought here; a ledger gains answers by it and never loses one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.dvc_lock import DVC_LOCK
from neuralmedbench.models.ledger import add_missing
from neuralmedbench.recording.repository import LEDGERS, open_repository, why_not_versioned


@dataclass(frozen=True)
class Pulled:
    """What a pull did: files that changed, and answers that the ledgers gained."""

    files: int
    answers: int


def pull() -> Pulled:
    """Bring everything that `dvc.lock` names.

    All of it is fetched before anything here is touched. Ledgers are not replaced but united by key: an answer that was paid for here
    after the recorded run stays.

    Returns
    -------
    Pulled
        What was done.

    Raises
    ------
    ConfigError
        If nothing was recorded, there is no remote, or another process works with DVC.
    DataError
        If an object is missing everywhere, the remote cannot be reached, or files here were never recorded and would be lost.
    """
    if reason := why_not_versioned():
        message = f"nothing can be pulled: {reason}"
        raise ConfigError(message)
    if not DVC_LOCK.is_file():
        message = f"nothing was recorded in this commit: {DVC_LOCK} is not there; run the pipeline, or check out a commit that has it"
        raise ConfigError(message)
    with open_repository() as repository:
        if repository.missing():
            repository.fetch()
        outs = repository.outs()
        answers = sum(add_missing(Path(path), cached) for path, cached in outs.items() if path.startswith(LEDGERS))
        files = repository.checkout([path for path in outs if not path.startswith(LEDGERS)])
    return Pulled(files, answers)
