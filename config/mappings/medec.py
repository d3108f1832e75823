"""MEDEC: flag, sentence and rewrite of an error; blank rows stand for the notes of another hospital."""

from dataclasses import replace

from neuralmedbench.benchmarks.adapters.set_reader import SetRow
from neuralmedbench.benchmarks.question import Question, Value

FLAG = "1 if the note contains an error, 0 if it does not"
SENTENCE = "the number of the sentence with the error, -1 if there is none"
REWRITE = 'the corrected sentence, "NA" if there is no error'


def question(row: SetRow) -> Question | None:
    """Ask for all three; no corrected sentence is the reference where there is no error."""
    if not row["Text"]:
        return None
    rewrite = row["Corrected Sentence"]
    values = (
        Value(name="flag", rule="index", reference=row["Error Flag"], words=FLAG),
        Value(name="sentence", rule="index", reference=row["Error Sentence ID"], words=SENTENCE),
        Value(name="rewrite", rule="words", reference="" if rewrite == "NA" else rewrite, words=REWRITE),
    )
    return replace(row.by_columns(), values=values)
