"""Inference: one job per benchmark and model; thanks to the ledger no answer is paid for twice."""


rule run_inference:
    """Ask one model all requests that its ledger does not answer yet."""
    input:
        prompts="data/prompts/{benchmark}.parquet",
        item_table="data/items/{benchmark}.parquet",
        # not read: it must exist before a model is asked, so that a person can look at it
        leaks="data/leaks/{benchmark}.json",
        audit="data/deidentified/{benchmark}/audit.json",
        benchmark_config="config/benchmarks/{benchmark}.yaml",
        model_config="config/models/{model}.yaml",
        vocabulary=RUN.config.vocabulary,
        names=RUN.names_files,
        # the model that tells facts
        informant=lambda wildcards: RUN.informant_files(wildcards.benchmark),
        # the scans from which views are cut
        volumes=lambda wildcards: RUN.view_volumes(wildcards.benchmark, wildcards.model),
    output:
        responses="<results>/responses/{benchmark}/{model}.parquet",
    log:
        "<logs>/run_inference/{benchmark}_{model}.log",
    conda:
        "../envs/inference.yaml"
    resources:
        mem_mb=lambda wildcards: mb_of_cases(wildcards, 2000, 0.7),
        api_slots=lambda wildcards: slots_of_model(wildcards).get("api_slots"),
        gpu=lambda wildcards: slots_of_model(wildcards).get("gpu"),
    params:
        ledger="data/ledger/{benchmark}/{model}.jsonl",
        settings=settings("limit", max_failed_fraction=RUN.config.max_failed_fraction),
        control=lambda wildcards, input: CONTROL,
        code=code_hash("run_inference"),
    shell:
        "python scripts/run_inference.py --benchmark {wildcards.benchmark} --model {wildcards.model} --prompts {input.prompts}"
        " --items {input.item_table} --audit {input.audit} --vocabulary {input.vocabulary:q} --ledger {params.ledger}"
        " --settings {params.settings:q}"
        " --control {params.control:q} --out {output.responses} &> {log}"
