"""Workflow resources that a job takes while it asks a model: an API slot or a GPU."""

from __future__ import annotations

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.destinations import LOCAL, destination_of

API, GPU = "api_slots", "gpu"
"""Names of the resources; the profiles set how many there are."""


def resources_of(*models: ModelConfig | None) -> dict[str, int]:
    """Return the resources that a job takes while it asks a model, or a model and its informant.

    Parameters
    ----------
    *models : ModelConfig or None
        Their yaml; None for a grader that asks no model.

    Returns
    -------
    dict of str to int
        Only resources that are taken, because some cluster plugins read `gpu: 0` as a request. A remote host takes one of `api_slots`;
        weights that the job loads or serves take one `gpu` (on a machine without one it limits the models that compute at once). A server
        that runs already has its own queue and takes nothing.
    """
    found: dict[str, int] = {}
    for model in models:
        found |= _resources_of(model)
    return found


def _resources_of(model: ModelConfig | None) -> dict[str, int]:
    if model is None or model.backend in ("builtin", "imported"):
        return {}
    if model.backend in ("transformers", "server"):
        return {GPU: 1}
    try:
        return {} if destination_of(model) == LOCAL else {API: 1}
    except ConfigError:
        # the job explains what is wrong with the address; a plan may still be made
        return {API: 1}
