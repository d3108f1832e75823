"""The search for identifying values finds what one pattern of all of them would: same places, same kinds, same order."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from neuralmedbench.files import identity as module
from neuralmedbench.files.identity import Identity, fold, identity_pattern

UIDS = st.one_of(
    st.lists(st.sampled_from(["1", "2", "12", "840", "0", ""]), min_size=2, max_size=6).map(".".join),
    st.sampled_from(
        ["1.2.840.1", "1.2.840", "1.2.840.1.", "12.84", "1.2.840a", "1234567", "1.2 .3", "1.2.840.1.12345678", "é1.2.3", "9" * 70]
    ),
)
NUMBERS = st.sampled_from(["1234567", "A123456", "12345678", "1.2.840", "0012345", "1.2.840.12", "20310314"])
NAMES = st.sampled_from(["Vandermeer^Johanna", "Te^Young", "May^Anna", "山田^太郎", "O'Neil^B"])
PLACES = st.sampled_from(["Oosterhaven General Hospital", "12.84 Street", "1234567 Road"])
IDENTITIES = st.builds(
    lambda uids, numbers, names, places: Identity(uids=tuple(uids), numbers=tuple(numbers), names=tuple(names), places=tuple(places)),
    st.lists(UIDS, max_size=6), st.lists(NUMBERS, max_size=3), st.lists(NAMES, max_size=2), st.lists(PLACES, max_size=1),
)  # fmt: skip
BETWEEN = st.sampled_from(["", " ", ".", "..", "-", "x", "5", "\n", "_", "Ä", " May 2031 ", "=", "/"])


@st.composite
def searched(draw: st.DrawFn) -> tuple[Identity, str]:
    identity = draw(IDENTITIES)
    names = [part for name in identity.names for part in name.split("^")]
    values = [*identity.uids, *identity.numbers, *names, *identity.places, "1.2.840.1.1", "1234567.89", "Oosterhaven", "12345"]
    parts = draw(st.lists(st.tuples(st.sampled_from(values), BETWEEN), max_size=12))
    return identity, fold("".join(value + sign for value, sign in parts))


def one_pattern(identity: Identity) -> re.Pattern[str] | None:
    """Compile all values, UIDs too, into one pattern, as the search did until UIDs were looked up."""
    pattern = identity_pattern(identity)
    if pattern is None:
        return None
    groups = dict(
        re.findall(r"\(\?P<(place|number|name)>(.*?)\)(?=\|\(\?P<|$)", pattern.values.pattern, re.DOTALL) if pattern.values else ()
    )
    numbers = sorted({*pattern.numbers, *map(module._exact, pattern.uids)}, key=lambda value: (-len(value), value))
    groups["number"] = "|".join(numbers)
    return re.compile("|".join(f"(?P<{kind}>{groups[kind]})" for kind in ("place", "number", "name") if groups.get(kind)))


@settings(max_examples=500, deadline=None)
@given(searched())
def test_the_search_finds_what_one_pattern_would(drawn: tuple[Identity, str]) -> None:
    identity, text = drawn
    fast, slow = identity_pattern(identity), one_pattern(identity)
    assert (fast is None) == (slow is None)
    if fast is None or slow is None:
        return
    found = [(match.span(), match.lastgroup, match[0]) for match in fast.finditer(text)]
    assert found == [(match.span(), match.lastgroup, match[0]) for match in slow.finditer(text)]
    first, whole = slow.search(text), slow.fullmatch(text)
    assert (fast.search(text) is None) == (first is None)
    assert (fast.fullmatch(text) is None) == (whole is None)
