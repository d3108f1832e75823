"""Thoughts are taken out of a reply in the marks of all model families; a mark that a sentence speaks of deletes nothing."""

from __future__ import annotations

import time

import pytest

from neuralmedbench.records.thoughts import ThoughtEnd, answer_of, is_only_thoughts, split_thoughts

PAIRS = {
    "most": ("<think>", "</think>"),
    "in capitals": ("<THINKING>", "</Thinking>"),
    "Gemini": ("<thought>", "</thought>"),
    "Seed": ("<seed:think>", "</seed:think>"),
    "Mistral": ("[THINK]", "[/THINK]"),
    "Kimi": ("◁think▷", "◁/think▷"),
    "MedGemma": ("<unused94>thought\n", "<unused95>"),
    "Gemma 4": ("<|channel>thought\n", "<channel|>"),
    "Cohere": ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    "gpt-oss": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
}
THOUGHT = "Perhaps ANSWER: A\nDIFFERENTIAL:\n1. Meningioma\nNo."


@pytest.mark.parametrize("family", PAIRS)
def test_a_thought_of_every_family_is_taken_out(family):
    first, last = PAIRS[family]
    assert split_thoughts(f"{first}{THOUGHT}{last}ANSWER: B").answer == "ANSWER: B"
    assert split_thoughts(f"{THOUGHT}\n{last}\n\nANSWER: B").end is ThoughtEnd.LONE
    assert answer_of(f"{THOUGHT}\n{last}\n\nANSWER: B") == ("ANSWER: B", "lone")
    never = answer_of(f"{first}{THOUGHT}")
    assert never[1] == "never"
    assert is_only_thoughts(never[0])
    assert answer_of(f"{first}{THOUGHT}", cut=True) == ("", "never")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is B. But the cisterns are bright.</think>A", "A"),
        ("so it is glioma </think> Glioblastoma", "Glioblastoma"),
        ("analysisThe user asks. So A?assistantfinalANSWER: B", "ANSWER: B"),
        ("<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>", "B"),
        ("First A.\n</think>\nThen B.\n</think>\nANSWER: C", "ANSWER: C"),
        ("Perhaps A.\n</think>\nANSWER: B\n</think>", "ANSWER: B\n"),
        ("<think>A?</think>ANSWER: B</think>", "ANSWER: B"),
        ("<think>A <think>B?</think> no</think>\nC", "C"),
        ("<think>A?</think><answer>ANSWER: B</answer>", "ANSWER: B"),
        ("It is A or B.\n<answer>B</answer>", "B"),
        ("<think>A?</think>\n<Final_Answer>\nANSWER: B\n</Final_Answer>\n", "ANSWER: B"),
        ("<think>A?</think>The answer is <|begin_of_box|>B<|end_of_box|>", "The answer is B"),
        ('<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>{"a": 1}', '{"a": 1}'),
    ],
)
def test_what_follows_the_last_thought_is_the_answer(text, answer):
    assert answer_of(text)[0] == answer


@pytest.mark.parametrize(
    "text",
    [
        "The word </think> is not used by me. ANSWER: B",
        "I close with </think>. ANSWER: B",
        "The tags <think> and </think> are marks. ANSWER: B",
        "The tag <think> stands for a thought. ANSWER: B",
        "I write `<think>` first. ANSWER: B",
        '"</think>" ends a thought. ANSWER: B',
        "A lesion of <0.5 cm, a<b>c.",
        "ANSWER: B",
        " \n",
        "",
    ],
)
def test_a_mark_that_a_sentence_speaks_of_deletes_nothing(text):
    assert answer_of(text) == (text, "")


def test_marks_of_its_own_are_taken_out():
    marks = ("<reflect>", "</reflect>")
    assert answer_of("<reflect>A?</reflect>B", marks) == ("B", "closed")
    assert answer_of("A?</reflect>B", ("", "</reflect>")) == ("B", "lone")
    assert answer_of("ANSWER: A? No,", ("", "</reflect>"), cut=True) == ("", "never"), "the template begins the thought"
    text, end = answer_of("<reflect>A?", marks)
    assert (is_only_thoughts(text), end) == (True, "never")


@pytest.mark.parametrize(
    ("reasoning", "answer", "end"),
    [
        ("A? No.\n</think>\n\nANSWER: B", "ANSWER: B", "lone"),
        ("A? ANSWER: B", "<think>A? ANSWER: B</think>", "closed"),
    ],
)
def test_an_answer_in_the_field_of_the_reasoning_is_read_where_a_mark_shows_it(reasoning, answer, end):
    assert answer_of("", reasoning=reasoning) == (answer, end)
    assert answer_of("ANSWER: C", reasoning=reasoning) == ("ANSWER: C", "closed")


@pytest.mark.parametrize(
    "part", ["<think>", "</think>", "a </think> is ", "<unused94>", "<answer>", "<|channel|>analysis", "[THINK]</think>"]
)
def test_the_time_grows_with_the_length_alone(part):
    start = time.perf_counter()
    split_thoughts(part * (400_000 // len(part)))
    assert time.perf_counter() - start < 5
