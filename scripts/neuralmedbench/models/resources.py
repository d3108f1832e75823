"""What a model takes up while it is asked, so that not too many are asked at once: a place among the calls, or a graphics card."""

from __future__ import annotations

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.destinations import LOCAL, destination_of

API, GPU = "api_slots", "gpu"
"""Names of the resources; the profiles say how many there are."""


def resources_of(model: ModelConfig | None) -> dict[str, int]:
    """Say what a job that asks a model takes of the run's slots.

    Parameters
    ----------
    model : ModelConfig or None
        Its yaml; None for a grader that asks no model.

    Returns
    -------
    dict of str to int
        What is taken, and nothing else: some cluster plugins take `gpu: 0` for a wish. A remote host takes one of `api_slots`; weights
        that the job loads itself take a graphics card, and where there is none a place among the models that compute here. A
        server on this machine has its own queue.
    """
    if model is None or model.backend in ("builtin", "imported"):
        return {}
    if model.backend == "transformers":
        return {GPU: 1}
    try:
        return {} if destination_of(model) == LOCAL else {API: 1}
    except ConfigError:
        # the job explains what is wrong with the address; a plan may still be made
        return {API: 1}
