"""Work on many records at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the collector of cyclic garbage out of a block that makes many records.

    Records hold no cycles, so none of them is ever its garbage; left on, it looks at each of them again and again.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
