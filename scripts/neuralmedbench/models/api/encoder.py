"""Pictures as the protocol carries them."""

from __future__ import annotations

import base64
from collections import deque
from weakref import WeakValueDictionary

from neuralmedbench.models.protocol import MessageImage

KEPT = 32


class _Url(str):
    """A text that can be forgotten when nobody holds it any more."""


class PictureEncoder:
    """Pictures as data URLs: each is written once for all samples and turns that show it, and kept only as long as a call holds it.

    The last few are kept in any case, for a dialogue whose next turn shows them again.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._shared: WeakValueDictionary[str, _Url] = WeakValueDictionary()
        self._last: deque[_Url] = deque(maxlen=kept)

    def url(self, image: MessageImage) -> str:
        """Give the data URL of a picture."""
        url = self._shared.get(image.sha256)
        if url is None:
            url = self._shared[image.sha256] = _Url(f"data:image/png;base64,{base64.b64encode(image.png).decode('ascii')}")
            self._last.append(url)
        return url
