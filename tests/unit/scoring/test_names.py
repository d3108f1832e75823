"""Names in other words: misspelt, in another order, in shorthand, with the words of a clinician around them."""

from __future__ import annotations

import random
from string import ascii_lowercase

import pytest

from fixtures.scoring import vocabulary
from neuralmedbench.records.items import Gold, Lesion
from neuralmedbench.records.vocabulary import Diagnosis, normal_form
from neuralmedbench.scoring.lines import resolve
from neuralmedbench.scoring.matching import RIGHT, ReferenceAnswer, Relation, relation
from neuralmedbench.scoring.places import sides
from neuralmedbench.scoring.spelling import MIN_MISSPELT, spell

IN_FULL = [
    (entry, term) for entry in vocabulary().diagnoses.values() if entry.classes != "normal" for term in (entry.name, *entry.synonyms)
]


def related(answer: str, reference: str, side: str = "", location: str = "") -> Relation | None:
    lesion = Lesion(location=location, side=side, behaviour={}) if side or location else None
    return relation(answer, ReferenceAnswer.of(Gold(item_id="i", answer=reference, lesion=lesion), vocabulary()))


def misspelt(word: str, chance: random.Random) -> str:
    """Leave out, double, exchange or replace one letter behind the first."""
    at = chance.randrange(1, len(word) - 1)
    changed = {
        "left out": word[:at] + word[at + 1 :],
        "doubled": word[:at] + word[at] + word[at:],
        "exchanged": word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        "replaced": word[:at] + chance.choice(ascii_lowercase) + word[at + 1 :],
    }
    return changed[chance.choice(sorted(changed))]


def with_one_misspelt_word(seed: int) -> list[tuple[Diagnosis, str, str]]:
    chance, changed = random.Random(seed), []
    for entry, term in IN_FULL:
        words = normal_form(term).split()
        long = [index for index, word in enumerate(words) if len(word) >= MIN_MISSPELT and word.isalpha() and word.isascii()]
        if long:
            index = chance.choice(long)
            changed.append((entry, term, " ".join([*words[:index], misspelt(words[index], chance), *words[index + 1 :]])))
    return changed


def test_one_wrong_letter_in_a_long_word_hides_few_names():
    changed = with_one_misspelt_word(1)
    read = [(found := resolve(text, vocabulary())) is not None and found.key == entry.key for entry, _, text in changed]
    assert len(read) > 700
    assert sum(read) >= 0.95 * len(read)


def test_one_wrong_letter_never_turns_a_name_into_that_of_another_diagnosis():
    """It may leave a wider one."""
    wrong = []
    for entry, term, text in with_one_misspelt_word(2):
        found = resolve(text, vocabulary())
        wider = {entry.key, *(above.key for above in vocabulary().ancestors(entry.key))}
        if found is not None and found.key not in wider:
            wrong.append((term, text, found.key))
    assert wrong == []


def test_no_word_of_a_name_is_ever_mended_into_another():
    for _, term in IN_FULL:
        assert normal_form(spell(term, vocabulary())) == normal_form(term)


@pytest.mark.parametrize("word", ["injection", "pupillary", "medical", "arthritis", "course", "spiral", "verbal"])
def test_an_english_word_that_is_one_letter_from_a_name_stays(word):
    assert spell(word, vocabulary()) == word


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("Abscess of the brain", "brain abscess"),
        ("stroke, ischaemic, acute", "acute ischaemic stroke"),
        ("Thrombosis of the transverse venous sinus", "cerebral venous sinus thrombosis"),
        ("L ACA CVA", "acute anterior cerebral artery infarct"),
        ("?meningioma, would be top of my list", "meningioma"),
        ("Meningioma until proven otherwise", "meningioma"),
        ("Meningioma; schwannoma unlikely", "meningioma"),
        ("Meningioma rather than schwannoma", "meningioma"),
        ("Atrophy in keeping with Alzheimer's disease", "Alzheimer disease"),
        ("variant of CJD named after Brownell", "Creutzfeldt-Jakob disease"),
        ("Toxoplasmosis of the CNS in an HIV-positive patient", "cerebral toxoplasmosis"),
    ],
)
def test_the_words_of_a_name_may_stand_apart_and_among_others(answer, reference):
    assert related(answer, reference) in RIGHT


@pytest.mark.parametrize(
    ("answer", "reference", "side", "location"),
    [
        ("Acute pontine infarct", "acute ischaemic stroke (left MCA territory)", "left", "MCA territory"),
        ("Cerebellar infarction", "acute ischaemic stroke (left MCA territory)", "left", "MCA territory"),
        ("Basilar artery occlusion", "left MCA stroke", "left", "middle cerebral artery territory"),
        ("Bilateral thalamic infarct", "left MCA stroke", "left", "middle cerebral artery territory"),
        ("Left occipital infarct", "left MCA stroke", "left", "middle cerebral artery territory"),
        ("Left parietal glioblastoma", "glioblastoma", "left", "frontal lobe"),
        ("Spinal meningioma", "meningioma", "right", "parietal convexity"),
        ("Right thalamic hypertensive haemorrhage", "hypertensive haemorrhage", "right", "putamen"),
        ("Cavernoma of the cerebellum", "cavernous malformation of the pons", "", ""),
        ("Traumatic subarachnoid haemorrhage", "aneurysmal subarachnoid haemorrhage", "", ""),
        ("Acute subdural haematoma", "chronic subdural haematoma", "", ""),
        ("Secondary CNS lymphoma", "primary CNS lymphoma", "", ""),
        ("Chiari II malformation", "Chiari I malformation", "", ""),
        ("variant CJD", "sporadic Creutzfeldt-Jakob disease", "", ""),
    ],
)
def test_another_site_or_another_kind_is_a_sibling(answer, reference, side, location):
    assert related(answer, reference, side, location) not in RIGHT


@pytest.mark.parametrize(
    ("answer", "reference", "side", "location"),
    [
        ("Infarct of the left insula from an M1 occlusion", "left MCA stroke", "left", "middle cerebral artery territory"),
        ("Left frontoparietal glioblastoma", "glioblastoma", "left", "frontal lobe"),
        ("Putaminal haemorrhage, hypertensive", "hypertensive haemorrhage", "right", "basal ganglia"),
        ("Brainstem cavernoma", "cavernous malformation of the pons", "", ""),
        ("Meningioma compressing the brainstem", "meningioma", "left", "cerebellopontine angle"),
        ("Multiple sclerosis with a thalamic lesion", "multiple sclerosis", "", "spinal cord"),
    ],
)
def test_a_part_of_the_site_a_wider_one_and_what_is_beside_it_are_no_other_site(answer, reference, side, location):
    assert related(answer, reference, side, location) in RIGHT


@pytest.mark.parametrize(
    "answer",
    [
        "Meningioma or an unusual granuloma",
        "meningioma vs. something else entirely",
        "Sequelae of a resected meningioma",
        "Meningioma resection cavity",
        "hydrocephalus, meningioma not present",
    ],
)
def test_a_line_that_leaves_it_open_or_speaks_of_the_aftermath_names_nothing(answer):
    assert related(answer, "meningioma") not in RIGHT


def test_a_reference_with_its_site_in_words_is_known_by_all_names_of_the_disease():
    assert related("Pontine cavernoma", "cavernous malformation (cavernoma) of the pons") in RIGHT
    assert related("ADEM", "acute disseminated encephalomyelitis, post-infectious") in RIGHT


@pytest.mark.parametrize(
    ("reference", "key"),
    [
        ("Medulloblastoma confirmed by pathology.", "medulloblastoma"),
        ("Creutzfeldt-Jacob disease", "creutzfeldt-jakob"),
        ("Tuberculous meningitis with disseminated tuberculosis", "tuberculous-meningitis"),
        ("Ischaemic stroke due to occlusion of the posterior cerebral artery", "acute-pca-infarct"),
        ("Dengue encephalitis with mixed movement disorders", "viral-encephalitis/dengue encephalitis"),
        ("Mantle cell lymphoma", "reference"),
        ("Pineal tumour", "reference"),
        ("Paraneoplastic neuropathy due to meningioma", "reference"),
    ],
)
def test_a_reference_is_the_diagnosis_that_its_first_words_name(reference, key):
    assert ReferenceAnswer.of(Gold(item_id="i", answer=reference), vocabulary()).entry.key == key


@pytest.mark.parametrize(
    ("answer", "reference", "passes"),
    [
        ("Encephalitis due to dengue virus", "Dengue encephalitis with mixed movement disorders", True),
        ("Dravet syndrome (severe myoclonic epilepsy of infancy)", "Atypical Dravet Syndrome (DS).", True),
        ("Neuronal intranuclear inclusion disease", "Adult-onset neuronal intranuclear inclusion disease (NIID) with keratitis", True),
        ("NIID", "Adult-onset neuronal intranuclear inclusion disease (NIID) with keratitis", True),
        ("encephalitis", "Dengue encephalitis", False),
        ("no dengue encephalitis", "Dengue encephalitis", False),
        ("dengue encephalitis or malaria", "Dengue encephalitis", False),
        ("Herpes simplex encephalitis", "Dengue encephalitis", False),
    ],
)
def test_a_reference_outside_the_vocabulary_is_compared_by_the_words_of_its_name(answer, reference, passes):
    assert (related(answer, reference) in RIGHT) is passes


@pytest.mark.parametrize(
    "answer",
    [
        "Based on the history, the most likely diagnosis in this patient is trigeminal neuralgia.",
        "**Final Diagnosis:** Trigeminal neuralgia",
        "The diagnosis would be trigeminal neuralgia",
    ],
)
def test_a_sentence_that_comes_to_its_diagnosis_names_it(answer):
    assert related(answer, "trigeminal neuralgia") in RIGHT


def test_a_sentence_that_denies_its_diagnosis_does_not_name_it():
    assert related("The diagnosis is not trigeminal neuralgia", "trigeminal neuralgia") not in RIGHT
    assert related("There is no doubt that no diagnosis is trigeminal neuralgia", "trigeminal neuralgia") not in RIGHT


def test_a_reference_of_an_unknown_kind_is_not_taken_for_its_wider_group():
    assert related("Herpes simplex encephalitis", "varicella zoster encephalitis") not in RIGHT
    assert related("varicella-zoster encephalitis", "varicella zoster encephalitis") in RIGHT


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        ("Dementia (Alzheimer disease)", True),
        ("Dementia (e.g. Alzheimer disease)", False),
        ("Dementia (Alzheimer disease or vascular dementia)", False),
        ("Dementia (not Alzheimer disease)", False),
    ],
)
def test_a_bracket_may_say_which_member_of_a_group_it_is(answer, passes):
    assert (related(answer, "Alzheimer disease") in RIGHT) is passes


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Mediainfarkt links", {"left"}),
        ("hematoma subdural derecho", {"right"}),
        ("infarctus sylvien gauche", {"left"}),
        ("左侧大脑中动脉梗死", {"left"}),
        ("双侧丘脑", {"bilateral"}),
        ("beidseits", {"bilateral"}),
    ],
)
def test_sides_are_read_in_the_languages_of_the_names(text, stated):
    assert sides(text) == stated


@pytest.mark.parametrize(
    "answer",
    ["Wallenberg syndrome", "artery of Percheron infarct", "acute lacunar infarct", "watershed infarct", "brainstem or cerebellar infarct"],
)
def test_a_stroke_whose_name_has_its_site_is_none_of_the_middle_cerebral_artery(answer):
    assert related(answer, "acute ischaemic stroke (MCA territory)") not in RIGHT
    assert related(answer, "acute ischaemic stroke") in RIGHT


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("WE, non-alcoholic", "Wernicke encephalopathy"),
        ("R VS, Koos grade 3", "vestibular schwannoma (right)"),
        ("dAVF with cortical venous reflux", "dural arteriovenous fistula"),
        ("tSAH over the convexity", "traumatic subarachnoid haemorrhage"),
        ("PSP-Richardson", "progressive supranuclear palsy"),
    ],
)
def test_initials_of_the_reference_and_abbreviations_with_a_letter_or_a_variant_name_it(answer, reference):
    assert related(answer, reference) in RIGHT


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("PCA", "posterior cortical atrophy of the left hemisphere, not otherwise specified"),
        ("MS", "mesial sclerosis"),
        ("we see nothing", "Wernicke encephalopathy"),
        ("RIGHT VS LEFT ASYMMETRY OF THE VENTRICLES", "vestibular schwannoma"),
    ],
)
def test_initials_that_stand_for_something_else_or_are_no_capitals_name_nothing(answer, reference):
    assert related(answer, reference) not in RIGHT


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("Liegh syndrome", "Leigh syndrome"),
        ("Bells plasy", "Bell palsy"),
        ("idiopathic intercranial hypertension", "idiopathic intracranial hypertension"),
        ("HIV encefalopathy", "HIV encephalopathy"),
    ],
)
def test_exchanged_letters_of_short_words_and_two_wrong_ones_of_very_long_words_are_mended(answer, reference):
    assert related(answer, reference) in RIGHT


@pytest.mark.parametrize(
    ("answer", "reference"),
    [("CARASIL", "CADASIL"), ("hyperglycaemic encephalopathy", "hypoglycaemic encephalopathy"), ("brain concussion", "brain contusion")],
)
def test_another_word_of_medicine_is_no_misspelling(answer, reference):
    assert related(answer, reference) not in RIGHT


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        (
            "Thunderclap headache with beaded arteries: reversible cerebral vasoconstriction syndrome",
            "reversible cerebral vasoconstriction syndrome",
        ),
        ("Right hemianopia due to a recent left PCA infarct", "acute ischaemic stroke (left posterior cerebral artery territory)"),
        ("cystic lesion with a mural nodule - haemangioblastoma", "haemangioblastoma"),
        ("cortical tubers diagnostic of tuberous sclerosis", "tuberous sclerosis complex"),
        ("vascular dementia with white matter change and multiple lacunes", "vascular dementia"),
    ],
)
def test_a_line_that_comes_to_its_diagnosis_behind_findings_names_it(answer, reference):
    assert related(answer, reference) in RIGHT


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("Brain abscess: glioblastoma considered", "glioblastoma"),
        ("glioblastoma; abscess; meningioma", "meningioma"),
        ("Brain abscess and metastasis - meningioma", "meningioma"),
        ("Not typical of glioblastoma", "glioblastoma"),
        ("Cystic lesion, less likely: haemangioblastoma", "haemangioblastoma"),
        ("Lymphoma - glioblastoma unlikely", "glioblastoma"),
        ("no Alzheimer-type dementia (ATD)", "Alzheimer disease"),
    ],
)
def test_what_stands_behind_another_diagnosis_a_denial_or_a_doubt_is_not_named(answer, reference):
    assert related(answer, reference) not in RIGHT


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("Wernicke aphasia", "Wernicke encephalopathy"),
        ("Niemann-Pick disease", "frontotemporal dementia"),
        ("herpes zoster encephalitis", "herpes simplex encephalitis"),
        ("Brain metastasis from renal cell carcinoma", "brain metastasis from lung carcinoma"),
        ("left MCA/PCA watershed infarct", "acute ischaemic stroke (left PCA territory)"),
        ("migraine without aura", "migraine with aura"),
        ("primary progressive MS", "relapsing-remitting multiple sclerosis"),
        ("oligodendroglioma, grade 2", "anaplastic oligodendroglioma"),
        ("pilocytic astrocytoma", "diffuse astrocytoma"),
        ("vestibular schwannoma", "facial nerve schwannoma"),
        ("NF1", "neurofibromatosis type 2"),
    ],
)
def test_a_disease_with_the_same_words_or_of_another_kind_is_another_one(answer, reference):
    assert related(answer, reference) not in RIGHT


def test_a_reference_outside_the_vocabulary_may_have_its_words_in_two_halves():
    reference = "Congenital hypoplasia of the left internal carotid artery with ischemic stroke"
    assert related("Ischaemic stroke due to hypoplasia of the left internal carotid artery", reference) in RIGHT
    assert related("Ischaemic stroke, no hypoplasia of the left internal carotid artery", reference) not in RIGHT
