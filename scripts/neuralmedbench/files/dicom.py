"""Read DICOM headers: a malformed value counts as absent, and never appears in a traceback."""

from __future__ import annotations

import io
import logging
import math
import warnings
import zlib
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralmedbench.errors import DataError
from neuralmedbench.records.case import NoHead

if TYPE_CHECKING:
    from pydicom.dataset import Dataset
    from pydicom.tag import BaseTag

MAX_BYTES = 700_000_000
"""Bytes of the largest DICOM file that is read, as stored and unpacked: 300 million pixels of 16 bits and their headers."""
BLOCK = 2**22
LONGEST_VALUE = 1024
"""Bytes of the longest binary value that is kept of many headers at once."""
BINARY = frozenset({"OB", "OD", "OF", "OL", "OV", "OW", "UN"})
DEFLATED = "1.2.840.10008.1.2.1.99"
"""Transfer syntax of files whose whole content is deflated."""
PREAMBLE = 128
MAGIC = b"DICM"
DELIMITERS = 0xFFFE
"""Group of the elements that begin and end items and sequences; outside of a sequence they mean nothing."""
MEDIA_DIRECTORY = "1.2.840.10008.1.3.10"


def quiet_pydicom() -> None:
    """Stop pydicom from quoting malformed values in warnings and logs: a value can name a patient."""
    import pydicom

    pydicom.config.settings.reading_validation_mode = pydicom.config.IGNORE
    pydicom.config.settings.writing_validation_mode = pydicom.config.IGNORE
    logging.getLogger("pydicom").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module="pydicom")


def looks_like_dicom(start: bytes) -> bool:
    """Return whether a file starts like DICOM: with the magic word, or (old files without one) with group 0002 or 0008."""
    return start[PREAMBLE : PREAMBLE + 4] == MAGIC or start[:4] in {
        b"\x08\x00\x05\x00",
        b"\x08\x00\x08\x00",
        b"\x08\x00\x16\x00",
        b"\x02\x00\x00\x00",
    }


def read_header(content: bytes) -> Dataset:
    """Read the DICOM header from the bytes of a whole file, without pixels.

    Raises
    ------
    DataError
        If it is not DICOM, is truncated before the image, unpacks to more than `MAX_BYTES`, or has no SOP Class UID.
    """
    return header_and_length(content)[0]


def first_header(folder: Path) -> Dataset | None:
    """Read the header of the first DICOM file of a folder by name; None if it holds none. DataError as in `read_header`."""
    first = min(folder.glob("*.dcm"), default=None)
    return None if first is None else read_header(first.read_bytes())


def header_and_length(content: bytes) -> tuple[Dataset, int]:
    """Read a DICOM header as `read_header` does, and return it with its length: the number of bytes before the pixels."""
    return _read(content, pixels=False)


def read_dicom(path: Path) -> Dataset:
    """Read a whole DICOM file; DataError as in `read_header`."""
    check_file_size(path)
    return _read(path.read_bytes(), pixels=True)[0]


class TooLargeError(DataError):
    """A DICOM file has more than `MAX_BYTES`, as stored or inflated."""

    def __init__(self, size: str) -> None:
        limit = f"at most {MAX_BYTES // 10**6} MB are read"
        super().__init__(f"{size} in one DICOM file; {limit}: export it as one file per image and list the cases again")


def check_file_size(path: Path) -> None:
    """Raise TooLargeError for a file of more than `MAX_BYTES`, before it is read."""
    size = path.stat().st_size
    if size > MAX_BYTES:
        stored = f"{size / 1e6:,.0f} MB"
        raise TooLargeError(stored)


def header_bytes(content: bytes) -> bytes:
    """Return the bytes of a DICOM file before its pixels: the part with readable values.

    Raises
    ------
    DataError
        As in `read_header`.
    """
    return content[: header_and_length(content)[1]]


def _read(content: bytes, *, pixels: bool) -> tuple[Dataset, int]:
    import pydicom

    quiet_pydicom()
    if not looks_like_dicom(content):
        message = "not a DICOM file"
        raise DataError(message)
    stream = _BoundedStream(content) if DEFLATED.encode() in content else io.BytesIO(content)
    try:
        header = pydicom.dcmread(stream, stop_before_pixels=not pixels, force=True)
    except DataError:
        raise
    except Exception as error:  # pydicom raises many classes on damaged files, with header values in their messages
        message = f"damaged DICOM file ({type(error).__name__})"
        raise DataError(message) from None
    for tag in [tag for tag in header.keys() if tag.group == DELIMITERS]:  # noqa: SIM118 (a Dataset iterates over decoded elements)
        del header[tag]
    if not text(header, "SOPClassUID"):
        directory = (
            value(header, "DirectoryRecordSequence") is not None or text(header.file_meta, "MediaStorageSOPClassUID") == MEDIA_DIRECTORY
        )
        message = (
            NoHead.DIRECTORY if directory else "DICOM that is no image (no SOP Class UID): a file of the scanner itself, or a damaged one"
        )
        raise DataError(message)
    length = stream.tell()
    header.buffer = None  # it would hold the whole file as long as the header
    return header, length


class _BoundedStream(io.BytesIO):
    """Bytes of a DICOM file. pydicom reads all that is left only to inflate it (deflated transfer syntax), into memory: that has a limit."""

    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(size)
        if size is None or size < 0:
            _check_inflated(content)
        return content


def _check_inflated(content: bytes) -> None:
    """Inflate some bytes block by block, keeping none; TooLargeError if they have more than `MAX_BYTES`."""
    unpacker, total = zlib.decompressobj(-zlib.MAX_WBITS), 0
    while content and not unpacker.eof:
        total += len(unpacker.decompress(content, BLOCK))
        if total > MAX_BYTES:
            inflated = f"more than {MAX_BYTES // 10**6} MB, when inflated,"
            raise TooLargeError(inflated)
        content = unpacker.unconsumed_tail


def drop_bulk(header: Dataset, kept: Collection[tuple[int, int]], shared: dict[Any, Any]) -> None:
    """Drop from a header what takes memory: sequences, private elements but those of `kept`, and long binary values.

    Of a long element of `kept` the tag stays. `shared` has the elements of other headers; equal ones become one.
    """
    from pydicom.dataelem import RawDataElement

    for tag in list(header.keys()):
        element: Any = header.get_item(tag)
        is_kept = (tag.group, tag.element) in kept
        is_raw = isinstance(element, RawDataElement)
        is_long = is_raw and len(element.value or b"") > LONGEST_VALUE
        if not is_kept and (element.VR == "SQ" or tag.is_private or (is_long and _is_binary(element))):
            del header[tag]
        elif is_raw:
            bare = element._replace(value_tell=0, **({"value": b"", "length": 0} if is_kept and is_long else {}))
            header[tag] = shared.setdefault(bare, bare)


def _is_binary(element: Any) -> bool:
    from pydicom.datadict import dictionary_VR

    try:
        return (element.VR or dictionary_VR(element.tag)) in BINARY
    except KeyError:  # an element of no standard
        return True


def value(header: Dataset, keyword: str | int) -> Any:
    """Return the value of an element (by keyword or tag), or None if it is absent, empty or malformed."""
    tag = _tag_of(keyword) if isinstance(keyword, str) else keyword
    try:
        content = header.get(keyword) if tag is None else header[tag].value
    except Exception:  # absent, or malformed: that counts as absent, and must not be shown
        return None
    return None if content is None or content == "" else content


@cache
def _tag_of(keyword: str) -> BaseTag | None:
    """Return the tag of a keyword, or None. Cached, because this lookup takes longer than that of the element."""
    from pydicom.datadict import tag_for_keyword
    from pydicom.tag import Tag

    number = tag_for_keyword(keyword)
    return None if number is None else Tag(number)


def text(header: Dataset, keyword: str | int) -> str:
    """Return the value of an element as one line of text; several values are joined by a backslash, as in DICOM."""
    return "\\".join(texts(header, keyword))


def texts(header: Dataset, keyword: str | int) -> tuple[str, ...]:
    """Return the values of an element as text; empty if it is absent."""
    content = value(header, keyword)
    if content is None:
        return ()
    try:
        # names of persons are iterable, but one value
        single = isinstance(content, str | bytes) or not hasattr(content, "__iter__") or hasattr(content, "family_name")
        parts = [content] if single else list(content)
        return tuple(str(part).strip() for part in parts if str(part).strip())
    except Exception:  # as in `value`
        return ()


def numbers(header: Dataset, keyword: str) -> tuple[float, ...]:
    """Return the values of an element as finite numbers; empty if one of them is not a finite number."""
    try:
        parts = tuple(float(part) for part in texts(header, keyword))
    except ValueError:
        return ()
    return parts if all(math.isfinite(part) for part in parts) else ()


def number(header: Dataset, keyword: str) -> float | None:
    """Return the first value of an element as a finite number, or None."""
    values = numbers(header, keyword)
    return values[0] if values else None


def elements(dataset: Dataset) -> Iterator[tuple[Dataset, Any]]:
    """Yield every readable element with its dataset, those of nested sequences after the sequence itself; delete unreadable ones."""
    for tag in list(dataset.keys()):
        try:
            element = dataset[tag]
            is_sequence = element.VR == "SQ"
            nested = list(element.value or ()) if is_sequence else []
        except Exception:  # an element that cannot be decoded cannot be checked, and is dropped
            del dataset[tag]
            continue
        yield dataset, element
        for part in nested:
            yield from elements(part)
