"""Whatever a header says, a label comes out and nothing is raised."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from neuralmedbench.ingest.sequences import Physics, label_sequence, plain_words
from neuralmedbench.records.case import Sequence

NUMBERS = st.none() | st.floats(allow_nan=False, min_value=-10, max_value=20_000)


@given(
    modality=st.sampled_from(["MR", "CT", "PT", ""]),
    words=st.text(max_size=80),
    physics=st.builds(Physics, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.text(max_size=20)),
)
def test_a_label_comes_out_of_any_header(modality: str, words: str, physics: Physics) -> None:
    label = label_sequence(modality, plain_words(words), physics)
    assert label.sequence in Sequence
    assert (modality in {"MR", "CT"}) or label.sequence is Sequence.UNKNOWN
