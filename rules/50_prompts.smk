"""Prompts: the last gate before anything can leave the machine; it never reads gold."""


rule assemble_prompts:
    """Render what a model is sent, unless a picture is not covered by a passed audit."""
    input:
        unpack(lambda wildcards: RUN.slice_tables(wildcards.benchmark)),
        item_table="data/items/{benchmark}.parquet",
        disclosures="data/disclosures/{benchmark}.parquet",
        audit="data/deidentified/{benchmark}/audit.json",
        config="config/benchmarks/{benchmark}.yaml",
        templates=sorted(
            str(path)
            for path in Path("config/prompts").glob("*.j2")
            if not path.name.startswith("grader")
        ),
    output:
        prompts="data/prompts/{benchmark}.parquet",
    log:
        "logs/assemble_prompts/{benchmark}.log",
    conda:
        "../envs/prompts.yaml"
    resources:
        mem_mb=lambda wildcards: mb_of_cases(wildcards, 1000, 0.3),
    params:
        sources=lambda wildcards, input: (
            ["--slices", input.slices] if input.get("slices") else []
        ),
        code=code_hash("assemble_prompts"),
    shell:
        "python scripts/assemble_prompts.py --benchmark {wildcards.benchmark} --items {input.item_table}"
        " --disclosures {input.disclosures} --audit {input.audit} {params.sources:q} --out {output.prompts} &> {log}"
