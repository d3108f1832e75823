"""Clinicians' ratings: frozen rounds for raters, readers and adjudicators, and the strict import of their exports.

Doors
-----
adjudication: adjudication_lines, freeze_stored_adjudication, require_complete, require_new_name
answering.answer_rounds: RoundQuestion, freeze_reader_round
answering.answers: AnswerExport, AskedItem, ReaderRoundKey, forms_of, given_answers, read_exports
candidates: RatingCandidate
exports: COLUMNS, RoundKey, read_file
folders: reader_round_lines, require_new, round_lines, write_round
form: PassRule, RatingForm, read_form
imports: KEY_FILE, import_round
redcap: DICTIONARY, RECORD, data_dictionary, read_export, records_of
rounds: RoundMaterial, freeze_round
simulated_raters: simulate_round
"""
