"""Choices in the words of other languages, and in a line of their own below a sentence that announces them."""

from __future__ import annotations

import pytest

from neuralmedbench.scoring.choice import read_choice

OPTIONS = ("Depósitos de grasa", "Quiste hidatídico", "Esteatosis hepática", "Raquitismo")


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("La respuesta correcta es la **C**.", "C"),
        ("La opción correcta es la C: Esteatosis hepática.", "C"),
        ("Portanto, a resposta correta é a opção D.", "D"),
        ("Resposta: alternativa C", "C"),
        ("Die richtige Antwort ist C.", "C"),
        ("選項C是正確的", "C"),
        ("Die Antwort ist C, nicht B.", "C"),
        ("La respuesta es la C y no la B.", "C"),
        ("A resposta correta é C, não a alternativa B.", "C"),
        ("La réponse est C, pas B.", "C"),
        ("La risposta è C, non B.", "C"),
        ("答案是C，不是B。", "C"),
        ("The other answers are A and B, which are wrong.\n\nC. Esteatosis hepática", "C"),
        ("La imagen muestra vacuolas.\n\nLa respuesta correcta es:\n\nC. Esteatosis hepática.\n\nPorque se ven vacuolas claras.", "C"),
        ("The most likely diagnosis is:\n\n**B. Quiste hidatídico**\n\nIt has daughter cysts.", "B"),
    ],
)
def test_a_choice_is_read_in_the_words_of_its_language(text: str, letter: str) -> None:
    assert read_choice(text, OPTIONS).letter == letter


@pytest.mark.parametrize(
    "text",
    [
        "La respuesta correcta no es la C.",
        "Die Antwort ist nicht C.\n\nC. Esteatosis hepática",
        "答えはCではなくBかもしれない。\n\nC. Esteatosis hepática",
        "答案不是C。\n\nC. Esteatosis hepática",
        "The correct answers are **A. Depósitos de grasa** and **B. Quiste hidatídico**.\n\n* **C. Esteatosis hepática:** wrong",
        "The answers are A and B.\n\nC. Esteatosis hepática is wrong.",
        "Die richtige Antwort ist C oder D.",
        "La respuesta puede ser la B o la C.",
        "The options are:\nA. Depósitos de grasa\nB. Quiste hidatídico\nC. Esteatosis hepática\nD. Raquitismo",
        "Incorrect answers:\n\nA. Depósitos de grasa would be darker.\n\nB. Quiste hidatídico has daughter cysts.",
    ],
)
def test_a_denied_choice_several_and_a_list_are_none(text: str) -> None:
    assert read_choice(text, OPTIONS).letter == ""


STAGES = ("Glycolyse", "Lipolyse", "Néoglucogénèse", "Glycogénolyse", "Cétogénèse")


@pytest.mark.parametrize(
    "text",
    [
        "Réponse : E est fausse, D est vraie.",
        "Answer: E is false, D is true.",
        "Réponse : A ? Non. E.",
        "Answer: A? No. E.",
        "Option E : non. Option D : oui.",
        "La réponse est E.\n\nAttendez, après vérification, A est exacte.",
        "The answer is E.\n\nWait, on checking, A is the correct one.",
        "Si le patient est à jeun, la réponse est C, sinon D.",
    ],
)
def test_a_letter_that_the_answer_takes_back_or_denies_is_not_read(text: str) -> None:
    assert not read_choice(text, STAGES).letter


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("La bonne réponse est la proposition E, car le glucose monte.", "E"),
        ("**Réponse correcte : D**", "D"),
        ("Réponse finale : C", "C"),
        ("La proposition exacte est A.", "A"),
        ("L'option correcte est donc la C.", "C"),
        ("C'est la B.", "B"),
        ("Je choisis D.", "D"),
        ('{"réponse": "C"}', "C"),
        ("The answer is B. Wait, let me check: B is right.", "B"),
        ("The answer is D. Actually the glucose rises in A later.", "D"),
        ("Answer: C. No other stage fits.", "C"),
    ],
)
def test_french_answers_and_later_remarks_are_read(text: str, letter: str) -> None:
    assert read_choice(text, STAGES).letter == letter


@pytest.mark.parametrize(
    ("text", "letter"), [("Да.", "A"), ("**Да**", "A"), ("Нет.", "B"), ("Ответ: Да", "A"), ("Правильный ответ: нет", "B")]
)
def test_yes_and_no_in_russian_are_read_in_capitals_too(text: str, letter: str) -> None:
    assert read_choice(text, ["да", "нет"]).letter == letter


RUSSIAN = ("Пневмония", "Туберкулёз", "Рак", "Абсцесс")


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Б", "B"),
        ("**А**", "A"),
        ("Ответ — Г.", "D"),
        ("Верный ответ: А, потому что кашель.", "A"),
        ("С учётом данных правильный ответ: Г", "D"),
        ("Ответ: Г, а не Б.", "D"),
        ("В) Рак", "C"),
        ("В. Туберкулёз", "B"),
        ("Б) нет.\nОтвет: В", "C"),
        # looks like B and stands in the third place
        ("В", ""),
        ("Ответ: В", ""),
        ("А и Б", ""),
        ("Ответ: А или Б", ""),
        ("Ответ: не Б", ""),
        ("Правильный ответ: Д", ""),
        ("В данном случае это не важно.", ""),
    ],
)
def test_a_cyrillic_letter_is_read_where_it_can_be_told_which_option_it_means(text: str, letter: str) -> None:
    assert read_choice(text, RUSSIAN).letter == letter


EXAM = ("Prostatitis", "Bladder stones", "Benign prostatic hyperplasia", "Cancer", "Urethritis")
REASONS = "\n\nA. Prostatitis: no fever.\nB. Bladder stones: no pain."


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        # a heading of reasons, as published answers of real models have it, is no answer
        (f"The correct answer is D. Cancer.\n\nThe other options are not the correct answer:{REASONS}", "D"),
        (f"The correct answer is D. Cancer.\n\nLet's examine each option:{REASONS}", "D"),
        (f"**D**\n\nAnalysis of each answer:{REASONS}", "D"),
        ("The correct answer is D. Cancer.\n\nIncorrect answer: A. Prostatitis", "D"),
        (f"The correct answer is D. Cancer. Here is why D is the right choice:{REASONS}", "D"),
        ("Question: what is it?\nOptions:\nA. Prostatitis\nB. Bladder stones\nAnswer: D", "D"),
        ("Option A is correct in part. The answer is C.", "C"),
        ("Option C is correct.", "C"),
        ("If I had to choose, the answer would be B", "B"),
        ("This is why the answer is C.", "C"),
        # what is said of another option, of another case or of another question, and what is taken back
        ("###Answer: C\n\nOption E is correct in general but does not apply here.", ""),
        ("B. Bladder stones\n- Option E is correct because it is typical.", ""),
        ("ANSWER: B\n\nActually no, I take that back; B cannot be right.", ""),
        ("Please give me more details. For example, if the answer is C, then say so.", ""),
        ("If the patient were pregnant, the answer would be C. As she is not, I am unsure.", ""),
        ("C. Benign prostatic hyperplasia\n\n###Question: which is not?\n###Options:\nA. Rh\nE. Iron\n\n###Answer: E", ""),
        ("So the answer is E.\n\nOptions:\nA. Warfarin\nD. Heparin\nAnswer: D. Heparin", ""),
    ],
)
def test_a_letter_counts_where_it_answers_this_question(text: str, letter: str) -> None:
    assert read_choice(text, EXAM).letter == letter
