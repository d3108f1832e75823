"""Published numbers beside ours, in the layout of the papers."""

from neuralmedbench.records.results import COLUMNS


rule compare_published:
    """Compare the tables of a paper with our results; an empty cell of ours gives the reason."""
    input:
        published="config/published/{paper}.yaml",
        tables=expand("<results>/tables/{table}.csv", table=COLUMNS),
        model_configs=expand("config/models/{model}.yaml", model=RUN.models),
        grader_configs=RUN.grader_files(),
    output:
        table="<results>/tables/paper/{paper}.csv",
        markdown="<results>/tables/paper/{paper}.md",
        latex="<results>/tables/paper/{paper}.tex",
    log:
        "<logs>/compare_published/{paper}.log",
    conda:
        "../envs/tables.yaml"
    resources:
        mem_mb=500,
    params:
        results=lambda wildcards: RUN.results,
        settings=lambda wildcards: settings(
            "statistics/confidence", absent=RUN.why_absent(wildcards.paper)
        ),
        code=code_hash("compare_published"),
    shell:
        "python scripts/compare_published.py --published {input.published} --models {input.model_configs}"
        " --graders {input.grader_configs} --results {params.results} --settings {params.settings:q} --out {output.table} &> {log}"
