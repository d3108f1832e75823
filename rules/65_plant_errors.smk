"""Planted errors: answers on which the graders are tested before they are believed; they grade them as those of a model."""


rule plant_errors:
    """Plant errors in answers made from the references of a benchmark: graders are tested on them before they are believed."""
    input:
        item_table="data/items/{benchmark}.parquet",
        gold="data/gold/{benchmark}.parquet",
        vocabulary=RUN.config.vocabulary,
        names=RUN.names_files,
        urgency=RUN.urgency_files,
    output:
        planted="<results>/planted/{benchmark}.parquet",
    log:
        "<logs>/plant_errors/{benchmark}.log",
    conda:
        "../envs/scoring.yaml"
    resources:
        mem_mb=700,
    params:
        settings=settings(patients=RUN.config.grader_checks.most),
        code=code_hash("plant_errors"),
    shell:
        "python scripts/plant_errors.py --items {input.item_table} --gold {input.gold} --vocabulary {input.vocabulary:q}"
        " --settings {params.settings:q} --out {output.planted} &> {log}"
