"""Scoring: read an answer without its gold, grade it by rubric, model or jury, score it, and measure its similarity to the reference.

Doors
-----
checklist: may_be_checklist
evidence: ASKED, PlaceSettings, read_pictures
explain_reading: early_check, why_unread
explain_request: AskedRequest, explain_request
grade_explanations: explain_stored_grades
jury: ballots, decide, grade_with_jury, has_quorum, votes_of
lines: resolve
llm.grader_requests: grader_model, read_model_grader, scored_responses
llm.model_grading: NO_ANSWER, GraderRun, GraderTests, grade_table, why_not_tested
llm.reasoning: COMPLETENESS, EFFICIENCY, FACTUALITY
llm.task: MAX_CHARACTERS
matching: RIGHT, ReferenceAnswer, outside_references, says_no_lesion
other_languages: LANGUAGES
pairs: DIAGNOSES, STATEMENTS, grade_diagnoses, grade_statements, read_pairs, summary
parse: parse_under, plain_text
picture_claims: argues_from_picture, describes_picture, describes_unsent
places: MAX_PLACES, side_right, sides
planted.checks: EditCheck, asked_of_all, believed_grades, check_grader, check_together, unused_criteria, usable_grades
planted.edits: EDITS
planted.planting: References, plant_errors, plant_in_answers, planted_in_answers, planted_responses
rubric: grade_with_rubric, is_outside, verdict
scores: elect_sample, grades_by_response, is_named, is_suggested, PASS_VALUE, RubricGraders, same_answer, score_responses
similarity: PACKAGES, TransformerEncoder, comparable_responses, similarity_rows, weights_folder
structured.form: STEPS, form_of
structured.metrics: compatible_metrics, corrected_metrics
structured.prediction_rows: read_predictions
structured_answer: FIELDS, find_answer_object, gold_labels
workup: MOST_BRIER, MOST_LOG_LOSS, WorkUp, measures_of_asking, read_turn, read_work_up
"""
