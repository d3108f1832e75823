"""Items (questions), gold (reference answers) and disclosures: the only stage that writes gold."""


rule build_items:
    """Turn cases or pictures and their answers into items, gold and disclosures."""
    input:
        unpack(lambda wildcards: RUN.item_files(wildcards.benchmark)),
        config="config/benchmarks/{benchmark}.yaml",
        arms=lambda wildcards: RUN.arm_files(wildcards.benchmark),
        vocabulary=RUN.config.vocabulary,
        names=RUN.names_files,
        template="config/prompts/record.j2",
    output:
        item_table="data/items/{benchmark}.parquet",
        gold="data/gold/{benchmark}.parquet",
        lesions="data/gold/{benchmark}/lesions.parquet",
        disclosures="data/disclosures/{benchmark}.parquet",
        exemplars="data/disclosures/{benchmark}/exemplars.parquet",
    log:
        "<logs>/build_items/{benchmark}.log",
    conda:
        "../envs/items.yaml"
    resources:
        mem_mb=lambda wildcards: mb_of_cases(wildcards, 1000, 0.15),
    params:
        # the answers are in the private zone: the command finds them through the benchmark's yaml
        code=code_hash("build_items"),
    shell:
        "python scripts/build_items.py --benchmark {wildcards.benchmark} --slices {input.slices}"
        " --folder data/deidentified/{wildcards.benchmark}"
        " --vocabulary {input.vocabulary:q} --out-items {output.item_table} --out-gold {output.gold}"
        " --out-disclosures {output.disclosures} --out-exemplars {output.exemplars} --out-lesions {output.lesions} &> {log}"
