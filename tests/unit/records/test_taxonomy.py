"""Taxonomy of errors in answers: one list for graders, forms and tables."""

from __future__ import annotations

import re

import pytest

from conftest import ROOT
from neuralmedbench.config.load import check, read_yaml
from neuralmedbench.errors import ConfigError
from neuralmedbench.ratings.form import RatingForm, read_form
from neuralmedbench.records.taxonomy import ERRORS, TAXONOMY, Condition, ErrorGroup, PaperClass, counts_under, error_of


def test_codes_are_names_and_every_group_and_class_has_one():
    assert len(ERRORS) == len(TAXONOMY)
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", error.code) and error.label for error in TAXONOMY)
    assert {error.group for error in TAXONOMY} == set(ErrorGroup)
    assert {error.paper_class for error in TAXONOMY} == {*PaperClass, None}


def test_a_missed_lesion_needs_a_shown_one_and_a_hallucination_complete_findings():
    conditions = {error.code: error.condition for error in TAXONOMY if error.condition}
    assert conditions == {"missed_lesion": Condition.LESION_SHOWN, "hallucinated_finding": Condition.FINDINGS_COMPLETE}
    missed, hallucinated, side = (ERRORS[code] for code in ("missed_lesion", "hallucinated_finding", "wrong_side"))
    for shown, complete in ((True, False), (False, True), (None, True)):
        assert counts_under(missed, lesion_shown=shown, findings_complete=complete) is (shown is True)
        assert counts_under(hallucinated, lesion_shown=shown, findings_complete=complete) is complete
        assert counts_under(side, lesion_shown=shown, findings_complete=complete)


def test_only_a_criterion_with_its_prefix_is_an_error():
    assert error_of("error.wrong_side") is ERRORS["wrong_side"]
    assert error_of("wrong_side") is None
    assert error_of("error.unheard_of") is None


def test_the_form_asks_for_errors_of_the_list_and_for_no_others():
    assert read_form(ROOT / "config" / "rating.yaml").errors == tuple(ERRORS)
    value = read_yaml(ROOT / "config" / "rating.yaml")
    with pytest.raises(ConfigError, match="codes that the taxonomy does not have: perceptual_failure"):
        check(RatingForm, {**value, "errors": ["wrong_side", "perceptual_failure"]}, "form")
    with pytest.raises(ConfigError, match="names a code twice"):
        check(RatingForm, {**value, "errors": ["wrong_side", "wrong_side"]}, "form")
