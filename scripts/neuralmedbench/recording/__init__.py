"""Recording of runs: the DVC record of a run and its audit, plans and their cost, and the origin of a number.

Doors
-----
audit: audit_run
finished_runs: finished_run, list_runs, look_up_cell, run_lines
limited_run: add_server_model, check_server, limited_lines, limited_run, refused_calls
patient_traces: PARQUET, ZIP, find_traces, remove_case, withdrawn_ids
plan: plan_lines, plan_run, write_plan
reader_answers: answers_of, import_readers, model_names, reader_lines, round_material, round_questions
record: incomplete_files, incomplete_line, missing_lines, not_graded_lines, record_run, repairs, scored_files
repository: pull
run_mistakes: run_mistakes
stages: make_files, run_again
trace: trace
"""
