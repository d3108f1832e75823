"""Sums of money, whatever is set aside and settled in whatever order by however many."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fixtures.models import model_config
from neuralmedbench.models.budget import NANO, Budget, account_of, read_spend_log
from neuralmedbench.models.conversation import PromptMessage

PRICES = {"usd_per_million_prompt_tokens": 0, "usd_per_million_completion_tokens": 1000, "dated": "x"}
STEP = st.tuples(st.integers(0, 3), st.integers(1, 4), st.one_of(st.none(), st.integers(0, 100)), st.booleans())
"""Who asks, for how many samples, what a sample really cost in thousandths of a dollar (None: not known), and whether it is settled."""


@given(st.lists(STEP, max_size=30), st.integers(0, 2000), st.integers(0, 2000))
def test_no_cap_is_ever_passed_and_every_process_and_the_book_agree(steps, cap, run_cap):
    """Four budgets are two models in two runs; 100 tokens of an answer cost 0.1 USD at most."""
    models = [model_config(prices=PRICES, max_tokens=100, max_cost_usd=cap / 1000, revision=str(number % 2)) for number in range(4)]
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder, "money.jsonl")
        budgets = [Budget(model, log=book, run=f"r{number // 2}", run_cap=run_cap / 1000) for number, model in enumerate(models)]
        spent = [0] * 4
        for who, samples, cost, settled in steps:
            booked = (spent[who % 2] + spent[who % 2 + 2], spent[who // 2 * 2] + spent[who // 2 * 2 + 1])
            fits = (booked[0] + 100 * samples <= cap, booked[1] + 100 * samples <= run_cap)
            reserved = budgets[who].reserve((PromptMessage("user", "?"),), samples)
            assert (reserved is not None) == all(fits)
            if reserved is None:
                assert budgets[who].why == ("max_run_cost_usd" if fits[0] else "max_cost_usd")
                continue
            spent[who] += 100 * samples
            if settled:
                budgets[who].settle(reserved, None if cost is None else samples * cost / 1000)
                spent[who] -= 0 if cost is None else (100 - cost) * samples
        found = read_spend_log(book)
        of_models = [found.by_account[account_of(model)] for model in models[:2]]
        assert of_models == [(spent[0] + spent[2]) * NANO // 1000, (spent[1] + spent[3]) * NANO // 1000]
        assert max(of_models, default=0) <= cap * NANO // 1000
        assert max(found.by_run.values(), default=0) <= run_cap * NANO // 1000
