"""The vocabulary and its matching: every name is its own, whatever its spelling, and no word beside it makes a wrong answer right."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fixtures.scoring import english_forms, own_forms, vocabulary
from neuralmedbench.records.items import Gold, Lesion
from neuralmedbench.records.vocabulary import Diagnosis, normal_form
from neuralmedbench.scoring.lines import ALTERNATIVES, CUTS, resolve
from neuralmedbench.scoring.matching import RIGHT, ReferenceAnswer, Relation, relation
from neuralmedbench.scoring.places import elsewhere, location_right, mentioned_regions, side_right, sides

ENTRIES = tuple(vocabulary().diagnoses.values())
NAMES = [(entry, term) for entry in ENTRIES for term in entry.terms if term not in entry.narrower[1:]]
"""All names, and of the kinds of a diagnosis the first."""
IN_FULL = [(entry, term) for entry, term in NAMES if entry.classes != "normal" and term not in entry.abbreviations]
PHRASES = [(entry, term) for entry, term in IN_FULL if not (CUTS.search(term) or ALTERNATIVES.search(term) or "(" in term)]
ONE_PHRASE = [pair for number, pair in enumerate(PHRASES) if normal_form(pair[1]) in own_forms() or number % 5 == 0]
"""Names without a word such as `of`, `with` or `and`, at which a longer line is cut; of the names file every fifth."""

STEP = 1 if os.environ.get("NMB_ALL_NAMES") else 32
"""Every so many names are put into one phrase; the next phrase begins one name later. `make validate` puts all names into all phrases."""

BELOW_THE_HEMISPHERES = ("posterior-circulation-infarct", "cerebellar-haemorrhage", "vertebral-dissection")
TERRITORIES = {
    side: [f"{side} cerebral artery territory", f"{side[0].upper()}CA territory"] for side in ("anterior", "middle", "posterior")
}
BRITISH = (("ischem", "ischaem"), ("hem", "haem"), ("edema", "oedema"), ("tumor", "tumour"), ("leuko", "leuco"))

some_names, phrases = st.sampled_from(NAMES), st.sampled_from(ONE_PHRASE)
entries = st.sampled_from(ENTRIES)


@cache
def reference(key: str, side: str = "", location: str = "") -> ReferenceAnswer:
    """Give the reference whose answer is an entry's first name that has nothing in brackets."""
    name = next(term for term in vocabulary().diagnoses[key].terms if "(" not in term)
    lesion = Lesion(location=location, side=side, behaviour={}) if side or location else None
    return ReferenceAnswer.of(Gold(item_id="i", answer=name, lesion=lesion), vocabulary())


def some_of(pairs: list[tuple[Diagnosis, str]], words: str, phrases: Iterable[str]) -> list[tuple[Diagnosis, str]]:
    """Give the share of the names that is put into one of the phrases."""
    return pairs[[*phrases].index(words) % STEP :: STEP]


def right(answer: str, entry: Diagnosis, **lesion: str) -> bool:
    return relation(answer, reference(entry.key, **lesion)) in RIGHT


def wider(entry: Diagnosis) -> set[str]:
    return {one.key for one in vocabulary().ancestors(entry.key)}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.key)
def test_every_name_and_code_is_that_of_its_own_entry(entry: Diagnosis) -> None:
    for term in (*entry.terms, *entry.icd10):
        named = resolve(term, vocabulary())
        assert named is not None, term
        assert named.key == entry.key, term
        assert relation(term, reference(entry.key)) in {Relation.EXACT, Relation.SYNONYM}, term


@settings(max_examples=400)
@given(some_names, entries)
def test_a_name_is_exact_or_synonym_of_no_other_entry_and_passes_for_wider_ones_alone(
    named: tuple[Diagnosis, str], other: Diagnosis
) -> None:
    entry, term = named
    found = relation(term, reference(other.key))
    assert (found in {Relation.EXACT, Relation.SYNONYM}) == (entry.key == other.key)
    assert (found is Relation.CHILD) == (other.key in wider(entry))
    assert (found is Relation.PARENT) == (entry.key in wider(other))


@settings(max_examples=200)
@given(some_names, some_names)
def test_a_child_seen_from_its_parent_is_a_parent_seen_from_its_child(first: tuple[Diagnosis, str], second: tuple[Diagnosis, str]) -> None:
    one, other = relation(first[1], reference(second[0].key)), relation(second[1], reference(first[0].key))
    mirror = {Relation.CHILD: Relation.PARENT, Relation.PARENT: Relation.CHILD, Relation.EXACT: Relation.SYNONYM}
    assert mirror.get(one, one) == (Relation.SYNONYM if other is Relation.EXACT else other)


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.parent], ids=lambda entry: entry.key)
def test_every_wider_term_is_a_parent_and_the_entry_by_its_names_a_child(entry: Diagnosis) -> None:
    for above in vocabulary().ancestors(entry.key):
        assert relation(above.name, reference(entry.key)) is Relation.PARENT
        assert {relation(term, reference(above.key)) for term in entry.terms[:: min(STEP, 4)]} == {Relation.CHILD}


def american(term: str) -> str:
    for us, british in BRITISH:
        term = term.replace(british, us)
    return term


def british(term: str) -> str:
    for us, british in BRITISH:
        term = re.sub(rf"(?<!a){us}", british, american(term))
    return term


SPELLINGS = {
    "upper case": str.upper,
    "lower case": str.lower,
    "title": str.title,
    "hyphens": lambda term: term.replace(" ", "-"),
    "no hyphens": lambda term: term.replace("-", " "),
    "American": american,
    "British": british,
    "stop": lambda term: f"{term}.",
    "bold": lambda term: f"**{term}**",
    "spaces": lambda term: f"  {term.replace(' ', '  ')} ",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_changes_which_entry_a_name_is_of(spelling: str) -> None:
    changed = [(entry, SPELLINGS[spelling](term)) for entry, term in some_of(NAMES, spelling, SPELLINGS)]
    assert [term for entry, term in changed if (found := resolve(term, vocabulary())) is None or found.key != entry.key] == []


def plural(term: str) -> str:
    """Write the English plural of a name in letters; the name itself where it has none of the usual kind."""
    last = term.rsplit(maxsplit=1)[-1]
    if not last.isalpha() or not last[-1].islower() or len(last) <= 3 or last.endswith(("s", "i", "ia")):
        return re.sub(r"sis$", "ses", term)
    if last.endswith("y") and last[-2] not in "aeiou":
        return f"{term[:-1]}ies"
    return f"{term}es" if last.endswith(("sh", "ch", "x")) else f"{term}s"


def test_the_plural_of_a_name_is_the_name() -> None:
    english = [(entry, term) for entry, term in IN_FULL if normal_form(term) in english_forms()]
    changed = [(entry, plural(term), term) for entry, term in english[:: min(STEP, 3)]]
    assert sum(new != term for _, new, term in changed) > 600 / min(STEP, 3)
    assert [new for entry, new, _ in changed if not right(new, entry)] == []


BESIDE = (
    "left {}",
    "right frontal {}",
    "{}, left",
    "{} of the left hemisphere",
    "{} in the right temporal lobe",
    "probable {}",
    "Most likely {}",
    "suspected {}",
    "a {}",
    "{} (likely)",
    "{} with mass effect",
    "findings consistent with {}",
    "Diagnosis: {}",
)


def lies_elsewhere(words: str, entry: Diagnosis) -> bool:
    """Return True if words put a diagnosis whose own name states its site at another one: a prolactinoma of the frontal lobe."""
    regions = mentioned_regions(reference(entry.key).gold.answer, vocabulary())
    return elsewhere(mentioned_regions(words, vocabulary()), regions, vocabulary())


def is_kind_at(words: str, entry: Diagnosis, other: Diagnosis) -> bool:
    """Return True if a diagnosis at a place is one of its kinds, which has the place in a name: a `frontal intracerebral haemorrhage` is lobar."""
    place = {*normal_form(words.replace("{}", "")).split()} - {"left", "right", "in", "of", "the", "a"}
    return bool(place) and entry.key in wider(other) and any(place <= {*normal_form(term).split()} for term in other.terms)


@pytest.mark.parametrize("words", BESIDE)
def test_sides_places_doubt_and_what_follows_change_no_diagnosis(words: str) -> None:
    chosen = some_of(ONE_PHRASE, words, BESIDE)
    named = [(entry, term) for entry, term in chosen if not lies_elsewhere(words, entry)]
    assert len(named) > 0.9 * len(chosen)
    assert [term for entry, term in named if not right(words.format(term), entry)] == []


@settings(max_examples=300)
@given(phrases, st.sampled_from(BESIDE), entries)
def test_sides_places_and_doubt_never_make_a_wrong_answer_right(named: tuple[Diagnosis, str], words: str, other: Diagnosis) -> None:
    if not right(named[1], other) and not is_kind_at(words, named[0], other):
        assert not right(words.format(named[1]), other)


def test_a_place_that_makes_a_wider_name_one_of_its_kinds_counts() -> None:
    wide, lobar = (vocabulary().diagnoses[key] for key in ("intracerebral-haemorrhage", "lobar-haemorrhage"))
    assert is_kind_at("right frontal {}", wide, lobar)
    assert not is_kind_at("left {}", wide, lobar)
    assert not right("left intraparenchymal haemorrhage", lobar)
    assert right("right frontal intraparenchymal haemorrhage", lobar)


@pytest.mark.parametrize("words", ["{}", "Diagnosis: {}", "Most likely {}"])
@pytest.mark.parametrize(
    ("name", "own", "other"),
    [
        ("human herpesvirus 6 encephalitis", "viral-encephalitis", "herpes-encephalitis"),
        ("intracranial epidural abscess", "cns-infection", "brain-abscess"),
    ],
)
def test_a_name_behind_a_lead_in_is_the_name_and_not_a_narrower_one_of_which_it_has_the_words(
    words: str, name: str, own: str, other: str
) -> None:
    assert right(words.format(name), vocabulary().diagnoses[own])
    assert not right(words.format(name), vocabulary().diagnoses[other])


def test_no_name_is_right_for_another_entry_that_is_not_wider() -> None:
    """Not in translation, as an abbreviation of something else, nor part by part."""
    wrong = [
        (term, other.key)
        for entry, term in NAMES[::STEP]
        for other in ENTRIES
        if other.key not in {entry.key, *wider(entry)} and right(term, other)
    ]
    assert wrong == []


@pytest.mark.parametrize("words", ["{}", "left {}", "probable {}", "findings consistent with {}", "Diagnosis: {}", "{} with mass effect"])
@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("CC agenesis", "contusion"),
        ("ACM-Infarkt", "malformation"),
        ("CCA dissection", "amyloid-angiopathy"),
        ("minimal HE", "hypoglycaemic-encephalopathy"),
        ("venöser Infarkt", "cerebral-infarction"),
        ("méningite carcinomateuse", "meningitis"),
    ],
)
def test_a_name_is_not_read_again_as_another(words: str, name: str, other: str) -> None:
    assert not right(words.format(name), vocabulary().diagnoses[other])


DENIED = (
    "no {}",
    "No evidence of {}",
    "no acute {}",
    "no sign of {}",
    "there is no {}",
    "without {}",
    "not {}",
    "not consistent with {}",
    "inconsistent with {}",
    "negative for {}",
    "absence of {}",
    "free of {}",
    "nothing to suggest {}",
    "low suspicion for {}",
    "argues against {}",
    "cannot be {}",
    "isn't {}",
    "rule out {}",
    "r/o {}",
    "unlikely {}",
    "neither {} nor abscess",
    "neither abscess nor {}",
    "no abscess or {}",
    "no abscess, {} or haematoma",
    "without abscess and {}",
    "history of {}",
    "history of abscess or {}",
    "family history of {}",
    "mimicking {}",
    "lesion resembling {}",
    "{} (excluded)",
    "{} (not likely)",
)
DENIED_AT_THE_END = (
    "{} excluded",
    "{} ruled out",
    "{} is unlikely",
    "{} not likely",
    "{} less likely",
    "{} not present",
    "{}: no",
    "{} - absent",
    "{}? No.",
    "{} was considered but rejected",
    "{} doubtful",
    "{} mimic",
)


@pytest.mark.parametrize("words", DENIED)
def test_a_diagnosis_that_is_denied_is_not_named(words: str) -> None:
    """Names with an `or` in them too; what is denied of a normal scan is another matter."""
    plain = [(entry, term) for entry, term in NAMES if entry.classes != "normal" and (" or " not in term or "resembling" not in words)]
    assert [term for entry, term in some_of(plain, words, DENIED) if right(words.format(term), entry)] == []


@pytest.mark.parametrize("words", DENIED_AT_THE_END)
def test_a_denial_behind_a_diagnosis_counts(words: str) -> None:
    """As far back as the comma before it."""
    plain = [(entry, term) for entry, term in NAMES if not ALTERNATIVES.search(term) and f"{term} mimic" not in entry.terms]
    assert [term for entry, term in some_of(plain, words, DENIED_AT_THE_END) if right(words.format(term), entry)] == []


@settings(max_examples=400)
@given(some_names, st.sampled_from((*DENIED, *DENIED_AT_THE_END)), entries)
def test_a_negation_never_makes_a_wrong_answer_right(named: tuple[Diagnosis, str], words: str, other: Diagnosis) -> None:
    if not right(named[1], other):
        assert not right(words.format(named[1]), other)


@pytest.mark.parametrize(
    ("answer", "wanted", "passes"),
    [
        ("Acute infarct, no haemorrhage", "acute ischaemic stroke", True),
        ("Acute infarct (no haemorrhage)", "acute ischaemic stroke", True),
        ("Acute infarct without haemorrhage or tumour", "acute ischaemic stroke", True),
        ("Glioblastoma, lymphoma less likely", "glioblastoma", True),
        ("Glioblastoma, lymphoma less likely", "primary CNS lymphoma", False),
        ("not meningioma, but glioblastoma", "glioblastoma", True),
        ("not meningioma, but glioblastoma", "meningioma", False),
        ("no meningioma; glioblastoma", "glioblastoma", True),
        ("no infarct, glioblastoma or abscess", "glioblastoma", False),
        ("non-enhancing glioma, oligodendroglioma", "oligodendroglioma", True),
        ("History of breast cancer, brain metastases", "brain metastasis", True),
        ("left non-communicating hydrocephalus", "obstructive hydrocephalus", True),
    ],
)
def test_a_negation_reaches_as_far_as_a_reader_takes_it(answer: str, wanted: str, passes: bool) -> None:
    entry = vocabulary().find(wanted)
    assert entry is not None
    assert right(answer, entry) is passes


@settings(max_examples=200)
@given(
    phrases,
    st.sampled_from(["left", "right"]),
    st.sampled_from(["{side} {}", "{}, {side}", "{side}-sided {}", "{} of the {side} hemisphere"]),
)
def test_the_other_side_is_never_right_and_the_same_side_always(named: tuple[Diagnosis, str], side: str, words: str) -> None:
    entry, term = named
    assume(not sides(term))  # "bilateral thalamic infarct" has its side in its name
    assume(not lies_elsewhere(words, entry))  # a clival chordoma of the left hemisphere
    # a name that does not say its site in English, such as "Wallenberg syndrome", is elsewhere than in a hemisphere
    assume("hemisphere" not in words or entry.key not in BELOW_THE_HEMISPHERES)
    other = {"left": "right", "right": "left"}[side]
    assert right(words.format(term, side=side), entry, side=side)
    assert not right(words.format(term, side=other), entry, side=side)


@settings(max_examples=200)
@given(st.sampled_from([*TERRITORIES]), st.sampled_from([*TERRITORIES]), st.integers(0, 1), st.sampled_from(["{} in the {}", "{}, {}"]))
def test_an_infarct_of_another_artery_is_never_right(shown: str, said: str, form: int, words: str) -> None:
    stroke = vocabulary().diagnoses["acute-ischaemic-stroke"]
    answer = words.format("acute infarct", TERRITORIES[said][form])
    assert right(answer, stroke, location=TERRITORIES[shown][0]) is (shown == said)


@settings(max_examples=200)
@given(st.sampled_from(sorted(vocabulary().locations)), st.sampled_from(sorted(vocabulary().places)), st.text(max_size=30))
def test_a_place_is_itself_and_no_other_and_a_side_is_only_itself(place: str, name: str, text: str) -> None:
    lesion = Lesion(location=place, side="left", behaviour={})
    assert location_right(place, lesion, vocabulary())
    if vocabulary().places[name] != place and not place.endswith("territory"):
        assert not location_right(name, lesion, vocabulary())
    assert not side_right("right", lesion)
    assert side_right(text, lesion) is (sides(text) == {"left"})


def test_look_alikes_of_a_few_letters_are_kept_apart() -> None:
    for text, key in (("GBM", "glioblastoma"), ("GBS", "guillain-barre"), ("gbm", "glioblastoma")):
        named = resolve(text, vocabulary())
        assert named is not None
        assert named.key == key
    glioblastoma = vocabulary().diagnoses["glioblastoma"]
    assert not right("tumour", glioblastoma)
    assert not right("brain tumour", glioblastoma)
    assert not right("Guillain-Barré syndrome", glioblastoma)
    assert not right("no acute infarct", vocabulary().diagnoses["acute-ischaemic-stroke"])


@settings(max_examples=300)
@given(st.text(max_size=120), st.lists(some_names, max_size=4), st.sampled_from(("", ", ", " or ", " / ", " no ", " (", " - ", ": ")))
def test_any_line_names_one_entry_or_none(text: str, named: list[tuple[Diagnosis, str]], between: str) -> None:
    line = between.join([*(term for _, term in named), text])
    found = resolve(line, vocabulary())
    assert found is None or vocabulary().diagnoses[found.key] == found
    assert (relation(line, reference("glioblastoma")) is None) == (not normal_form(line))
