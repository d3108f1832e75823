"""Exports: the numbers of a run in the forms that other tools and archives read. Not part of the report: `nmb run export` makes them."""

from neuralmedbench.records.results import COLUMNS


rule export_results:
    """Write the released numbers for other tools and archives, after a search for private ids in every file."""
    input:
        tables=expand("<results>/tables/{table}.csv", table=COLUMNS),
        provenance="<results>/provenance.json",
        cards=CARDS,
        citation="CITATION.cff",
        workflow=["Snakefile", *sorted(map(str, Path("rules").glob("*.smk")))],
        prompts=sorted(map(str, Path("config/prompts").glob("*.j2"))),
        vocabulary=RUN.config.vocabulary,
    output:
        exports=directory("<results>/exports"),
    log:
        "<logs>/export_results.log",
    conda:
        "../envs/tables.yaml"
    resources:
        mem_mb=3000,
    params:
        results=lambda wildcards: RUN.results,
        settings=settings(
            "limit",
            "grader_checks/floor",
            "statistics/confidence",
            "report/profile",
            "report/min_patients_shown",
            benchmarks=list(RUN.benchmarks),
            models=list(RUN.models),
            graders=list(RUN.graders),
        ),
        code=code_hash("export_results"),
    shell:
        "python scripts/export_results.py --results {params.results} --settings {params.settings:q}"
        " --vocabulary {input.vocabulary:q} --out {output.exports} &> {log}"
