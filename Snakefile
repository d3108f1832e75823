"""Raw head scans, records and notes to results/report.html."""

from snakemake.utils import min_version

min_version("9.20")


configfile: "config/config.yaml"


include: "rules/common.smk"
include: "rules/05_demo.smk"
include: "rules/10_ingest.smk"
include: "rules/20_deidentify.smk"
include: "rules/30_normalise.smk"
include: "rules/40_slices.smk"
include: "rules/45_items.smk"
include: "rules/50_prompts.smk"
include: "rules/60_infer.smk"
include: "rules/70_score.smk"
include: "rules/75_ratings.smk"
include: "rules/80_tables.smk"
include: "rules/90_report.smk"


localrules:
    all,


rule all:
    """The report, and with it everything that is out of date."""
    default_target: True
    input:
        "results/report.html",
