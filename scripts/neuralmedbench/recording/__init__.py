"""What was made, when, from what: the DVC ledger of a run, and the audit of it.

Doors
-----
audit: audit_run
incomplete: incomplete_files, incomplete_line
metadata: repair_metadata
patient_traces: find_traces, withdrawn_ids
plan: plan_run
plan_page: plan_lines, write_plan
rated_answers: answers_of, model_names, rated_answers
reader_answers: asked_items, import_readers, reader_lines
record: record_run
repository: pull
stages: dvc_yaml, run_again
table_lookup: look_up_cell
trace: trace
"""
