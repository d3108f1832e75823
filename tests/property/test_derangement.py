from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fixtures.items import VOCABULARY, benchmark_config, source
from neuralmedbench.benchmarks.case_items import build_cases
from neuralmedbench.prompts.arms import donors_of

ITEM = build_cases("b", benchmark_config(), [source("a1")], {}, VOCABULARY).items[0]


def items_of(owners):
    """Items whose pictures are known by their owner."""
    return [
        replace(ITEM, item_id=f"b/{n}", patient_id=patient, images=(replace(ITEM.images[0], sha256=f"{patient}/{n}"),))
        for n, patient in enumerate(owners)
    ]


@given(
    st.lists(st.text("abcdef", min_size=1, max_size=4), min_size=2, max_size=30).filter(lambda owners: len(set(owners)) > 1), st.randoms()
)
def test_no_patient_is_ever_shown_with_own_pictures_in_any_order_of_the_items(owners, random):
    items = items_of(owners)
    donors = donors_of(items)
    assert all(donors[item.item_id].patient_id != item.patient_id for item in items)
    shuffled = random.sample(items, len(items))
    assert {key: donor.item_id for key, donor in donors_of(shuffled).items()} == {key: donor.item_id for key, donor in donors.items()}


@given(st.sets(st.text("abcdef", min_size=1, max_size=4), min_size=2, max_size=12), st.text("xyz", min_size=1, max_size=4))
def test_a_new_patient_changes_the_pictures_of_one_other_patient_at_most(patients, newcomer):
    owners = sorted(patients)
    before = donors_of(items_of(owners))
    after = donors_of(items_of([*owners, newcomer]))
    assert sum(before[key].patient_id != after[key].patient_id for key in before) <= 1
