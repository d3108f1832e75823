"""A command that is asked to end makes no more calls, waits for those under way, and keeps their answers."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def graceful_interrupt(stop: Callable[[], None], name: str) -> Iterator[None]:
    """Take Ctrl-C, SIGTERM and a closed terminal for a wish to end; the second one ends at once.

    Parameters
    ----------
    stop : callable
        Called once, by the first signal.
    name : str
        Name of the model, for the line that says what is waited for.

    Notes
    -----
    Only the main thread of a process is told of signals; in another thread nothing changes. Under `nohup` a closed terminal stays ignored.
    """
    loop = asyncio.get_running_loop()
    heard = [number for number in SIGNALS if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN]

    def first() -> None:
        for number in heard:
            loop.remove_signal_handler(number)
        print(f"{name}: no more calls are made; waiting for those under way (once more to end at once)", file=sys.stderr, flush=True)
        stop()

    try:
        for number in heard:
            loop.add_signal_handler(number, first)
    except (ValueError, RuntimeError):
        yield
        return
    try:
        yield
    finally:
        for number in heard:
            loop.remove_signal_handler(number)
