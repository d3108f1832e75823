"""Benchmarks: items and gold of local cases and imported data sets, curation, checks, and the search for leaked answers.

Doors
-----
adapters.registry: data_sets, table
adapters.rows: QuestionEntry
adapters.set_reader: SetRow
answer_leaks: find_leaks
case_items: answers_of, build_cases
case_text: object_text
check: check_benchmark, check_page
curation: curate_folder, read_scores, write_curated, write_curated_yaml
importing: ImportPaths, check_name, import_set, import_summary, write_yaml
leak_review: accept_text, leak_page, read_accepted, write_accepted
question: Picture, Question, QuestionRound, Value
question_items: build_questions, question_outcomes, read_question_set, read_questions
sources: read_sources
told_by_arms: add_shown_by_arms
"""
