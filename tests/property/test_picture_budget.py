from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fixtures.models import request
from neuralmedbench.models.requests_of_model import too_many_pictures, within_budget
from neuralmedbench.records.requests import RequestImage, RequestTurn


def turns_of(counts):
    numbers = iter(range(1000))
    return [
        RequestTurn(text="t", images=tuple(RequestImage(path=f"{next(numbers)}", sha256="s", label="") for _ in range(count)))
        for count in counts
    ]


@given(st.lists(st.integers(0, 12), min_size=1, max_size=5), st.integers(0, 40))
def test_a_budget_is_used_up_and_never_broken_and_the_pictures_keep_their_order(counts, budget):
    shown = [int(image.path) for turn in within_budget(turns_of(counts), budget) for image in turn.images]
    assert len(shown) == min(budget, sum(counts))
    assert shown == sorted(set(shown))


@given(st.lists(st.booleans(), min_size=1, max_size=20), st.integers(0, 24))
def test_a_picture_that_the_question_needs_is_never_cut_and_too_many_of_them_are_told(needed, budget):
    images = tuple(RequestImage(path=f"{number}", sha256="s", label="", needed=one) for number, one in enumerate(needed))
    asked = request("q", RequestTurn(text="t", images=images[::2]), RequestTurn(text="t", images=images[1::2]))
    if reason := too_many_pictures(asked, budget):
        assert sum(needed) > budget
        assert f"needs all of its {sum(needed)} pictures" in reason
        return
    shown = {image.path for turn in within_budget(asked.turns, budget) for image in turn.images}
    assert {image.path for image in images if image.needed} <= shown
    assert len(shown) == min(budget, len(images))


@given(st.integers(2, 60), st.integers(2, 30))
def test_pictures_are_left_out_evenly_and_the_first_and_last_stay(total, budget):
    shown = [int(image.path) for turn in within_budget(turns_of([total]), budget) for image in turn.images]
    gaps = [after - before for before, after in pairwise(shown)]
    assert (shown[0], shown[-1]) == (0, total - 1)
    assert max(gaps) - min(gaps) <= 1
