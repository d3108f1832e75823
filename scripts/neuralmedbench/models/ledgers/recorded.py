"""Whether the answers that were paid for are here."""

from __future__ import annotations

from pathlib import Path

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ProviderError
from neuralmedbench.files.dvc_lock import DVC_LOCK, read_dvc_lock


def check_recorded_ledger(name: str, model: ModelConfig, ledger: Path, lock: Path = DVC_LOCK) -> None:
    """Refuse to ask a model that costs money while answers that were recorded are not here.

    Parameters
    ----------
    name : str
        Name of the model.
    model : ModelConfig
        Its yaml; one without a key and without prices is asked whatever is here.
    ledger : Path
        Its ledger, relative to the repository root.
    lock : Path
        The `dvc.lock` that may name the ledger.

    Raises
    ------
    ProviderError
        If the recorded ledger was longer than the one here; a ledger only ever grows.
    ConfigError
        If `dvc.lock` cannot be read.
    """
    if model.api_key_env is None and model.prices is None:
        return
    recorded = read_dvc_lock(lock).get(ledger.as_posix())
    here = ledger.stat().st_size if ledger.exists() else 0
    if recorded is not None and here < recorded.size:
        message = (
            f"model {name}: the recorded ledger {ledger.as_posix()} has {recorded.size} bytes, here are {here}: run `make pull` first,"
            f" or these answers are paid for again (when they are lost for good: take the ledger out of {lock.name})"
        )
        raise ProviderError(message)
