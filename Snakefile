"""From raw head scans, records and notes to the report of a run."""

from functools import cache

import snakemake.rules
from snakemake.utils import min_version

min_version("9.20")
# Snakemake looks at the signature of each function of a rule once per job: a tenth of the time of a plan
snakemake.rules.get_function_params = cache(snakemake.rules.get_function_params)


include: "rules/common.smk"


# in the paths of all rules: every run has its own folders
pathvars:
    results=RUN.results,
    logs=RUN.logs,
    simulated_round=RUN.round_folder("simulated"),


include: "rules/05_demo.smk"
include: "rules/10_ingest.smk"
include: "rules/20_deidentify.smk"
include: "rules/30_normalise.smk"
include: "rules/40_slices.smk"
include: "rules/42_review.smk"
include: "rules/45_items.smk"
include: "rules/48_alter.smk"
include: "rules/50_prompts.smk"
include: "rules/60_infer.smk"
include: "rules/65_plant_errors.smk"
include: "rules/70_score.smk"
include: "rules/75_ratings.smk"
include: "rules/80_tables.smk"
include: "rules/85_published.smk"
include: "rules/87_cards.smk"
include: "rules/90_report.smk"
include: "rules/95_exports.smk"


# Short jobs with little memory: on a cluster they run where Snakemake runs, without queueing.
localrules:
    all,
    gather_answers,
    cut_demo_pictures,
    describe_scans,
    gather_slices,
    find_answer_leaks,
    simulate_ratings,
    import_ratings,
    compare_published,
    draw_figures,
    record_provenance,
    describe_benchmark,
    build_report,


onstart:
    before_jobs()
    if not workflow.non_local_exec:
        # it is for clusters, and makes Snakemake look for jobs to start as often a second as jobs have ended
        workflow.scheduler.job_rate_limiter = None


onerror:
    TERMINAL.fail(log)


onsuccess:
    TERMINAL.record(workflow)


rule all:
    """The report, and with it everything that is out of date."""
    default_target: True
    input:
        "<results>/report.html",
