"""Tables: every number with its n and its interval; each table declares itself (`declare.Table`), and `write.TABLES` lists them.

Doors
-----
answers: GRADES, Samples
bundle: AskedOf, bundle_cases
declare: Cells, NUMBER, SHAPES, Tables
frames: RECORDS, dtype_of, record_dtypes, record_frame, table_frame
form_warnings: FORM_LIMIT
gate.looks: UpdateLook, LookRecord, level_after, look_record
gate.plan: plan_update
gate.verdict: APPROVE, Alarm, CONDITIONAL, MarginVerdict, REJECT, REVIEW, UpdatePair, alarms_of, outcome_of, read_pair, verdicts_of
outcomes: DIRECT, FULL, Key, Outcomes, PASS1_STRICT, can_pass, gather_outcomes
papers.comparison: COLUMNS, comparison_rows, latex, markdown
papers.own_results: OwnResults
papers.shape: shapes
papers.size: SizeRow, by_published_size, size_words
pass_rules: pass_definition
probe: ProbeTarget, probe_model
release: RANKS, Release
study: BenchmarkStudy, Study, StudySettings, cluster_noun, read_study, study_of
two_runs: Audience, ChangedItemRow, RunComparison, RunDifferenceRow, Sides, compare_runs, comparison_answer, read_sides
words: case_noun, cluster_of
write: TABLES, file_columns, measures_of_topics, released_tables, result_columns, write_tables
"""
