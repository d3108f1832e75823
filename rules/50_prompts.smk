"""Prompts: the last check before anything can leave the machine; they never read gold. Text that gives an answer away is listed."""


rule assemble_prompts:
    """Render the requests, unless a passed audit does not cover a picture."""
    input:
        slices=lambda wildcards: RUN.slice_tables(wildcards.benchmark),
        altered=lambda wildcards: RUN.altered_tables(wildcards.benchmark),
        views=lambda wildcards: RUN.view_tables(wildcards.benchmark),
        item_table="data/items/{benchmark}.parquet",
        disclosures="data/disclosures/{benchmark}.parquet",
        exemplars="data/disclosures/{benchmark}/exemplars.parquet",
        audit="data/deidentified/{benchmark}/audit.json",
        config="config/benchmarks/{benchmark}.yaml",
        arms=lambda wildcards: RUN.arm_files(wildcards.benchmark),
        templates=sorted(
            str(path)
            for path in Path("config/prompts").rglob("*.j2")
            if not path.name.startswith("grader")
        ),
    output:
        prompts="data/prompts/{benchmark}.parquet",
    log:
        "<logs>/assemble_prompts/{benchmark}.log",
    conda:
        "../envs/prompts.yaml"
    resources:
        mem_mb=lambda wildcards: mb_of_cases(wildcards, 1000, 0.3),
    params:
        code=code_hash("assemble_prompts"),
    shell:
        "python scripts/assemble_prompts.py --benchmark {wildcards.benchmark} --items {input.item_table}"
        " --disclosures {input.disclosures} --exemplars {input.exemplars} --audit {input.audit} --slices {input.slices}"
        " --altered {input.altered} --views {input.views} --out {output.prompts} &> {log}"


rule find_answer_leaks:
    """Find text in the prompts that gives the answer away, before any model is asked."""
    input:
        prompts="data/prompts/{benchmark}.parquet",
        item_table="data/items/{benchmark}.parquet",
        gold="data/gold/{benchmark}.parquet",
        vocabulary=RUN.config.vocabulary,
        names=RUN.names_files,
        accepted=lambda wildcards: [
            path
            for path in (f"config/benchmarks/{wildcards.benchmark}.leaks.json",)
            if Path(path).exists()
        ],
    output:
        leaks="data/leaks/{benchmark}.json",
        page="data/leaks/{benchmark}.html",
    log:
        "<logs>/find_answer_leaks/{benchmark}.log",
    conda:
        "../envs/items.yaml"
    resources:
        mem_mb=lambda wildcards: mb_of_cases(wildcards, 1000, 0.3),
    params:
        code=code_hash("find_answer_leaks"),
    shell:
        "python scripts/find_answer_leaks.py --benchmark {wildcards.benchmark} --items {input.item_table}"
        " --gold {input.gold} --prompts {input.prompts} --vocabulary {input.vocabulary:q}"
        " --accepted {input.accepted}"
        " --out-page {output.page} --out {output.leaks} &> {log}"
