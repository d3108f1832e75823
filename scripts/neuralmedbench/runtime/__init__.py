"""Robustness against killed processes, full disks and concurrent runs; other code needs little of it beyond `run_command`.

Doors
-----
atomic_write: atomic_file, atomic_folder, is_partial, partial_folder, sweep, write_text, write_tsv
commands: close_folders, is_debugging, private_files, run_command
console_tables: table_lines
job_progress: JobProgress, Report, duration, warn_run
locks: read_holder, try_lock, write_holder
machine: not_installed, usable_cores, usable_memory_mb
one_writer: lock_folder, name_this_run, this_run, wait_for_writers
append_log: Record, SharedLog, append, append_line, read_log, values
options: Command
storage: check_places, check_project, disk_full, full_disk_cause, has_room, LEAST_ROOM_BYTES, open_private
supervisor: GRACE_S, descendants, end_recorded, supervised
terminal: snakemake_terminal
watch: watch
"""
