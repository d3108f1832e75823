"""Arguments that every command which asks a model has: how it may ask, none of which changes an answer."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from neuralmedbench.models.control.bounds import UNLIMITED, RunLimits


def add_call_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a command."""
    parser.add_argument("--ledger", type=Path, required=True, help="ledger of the calls (JSON lines, only ever appended to)")
    parser.add_argument("--max-failed-fraction", type=float, required=True, help="a larger share of failed calls is an error")
    parser.add_argument("--replay", action="store_true", help="take every answer from the ledger, ask for nothing")
    parser.add_argument("--control", type=RunLimits.read, default=UNLIMITED, help="caps and rate limits of the run (JSON)")


def call_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Give them as `models.engine.answer_requests` takes them."""
    return {name: getattr(args, name) for name in ("ledger", "max_failed_fraction", "replay", "control")}
