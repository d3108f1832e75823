"""Altered pictures: what some arms show instead of the pictures of the items; benchmarks without such arms have none."""


rule alter_pictures:
    """Make the altered pictures of a benchmark's arms."""
    input:
        item_table="data/items/{benchmark}.parquet",
        config="config/benchmarks/{benchmark}.yaml",
        arms=lambda wildcards: RUN.arm_files(wildcards.benchmark),
    output:
        table="data/altered/{benchmark}/pictures.parquet",
        pictures=directory("data/altered/{benchmark}/png"),
    log:
        "<logs>/alter_pictures/{benchmark}.log",
    conda:
        "../envs/imaging.yaml"
    resources:
        mem_mb=lambda wildcards: mb_of_cases(wildcards, 1000, 0.3),
    params:
        code=code_hash("alter_pictures"),
    shell:
        "python scripts/alter_pictures.py --benchmark {wildcards.benchmark} --items {input.item_table}"
        " --out-pictures {output.pictures} --out {output.table} &> {log}"
