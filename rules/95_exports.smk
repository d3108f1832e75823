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
        benchmarks=list(RUN.benchmarks),
        models=list(RUN.models),
        graders=list(RUN.graders),
        grader_floor=lookup(within=config, dpath="grader_checks/floor"),
        confidence=lookup(within=config, dpath="statistics/confidence"),
        limit=lookup(within=config, dpath="limit"),
        profile=lookup(within=config, dpath="report/profile"),
        min_patients_shown=lookup(within=config, dpath="report/min_patients_shown"),
        code=code_hash("export_results"),
    shell:
        "python scripts/export_results.py --results {params.results} --benchmarks {params.benchmarks} --models {params.models}"
        " --graders {params.graders} --vocabulary {input.vocabulary:q} --grader-floor {params.grader_floor}"
        " --confidence {params.confidence} --limit {params.limit} --profile {params.profile}"
        " --min-patients-shown {params.min_patients_shown} --out {output.exports} &> {log}"
