"""Inference: one job a benchmark and model; the ledger makes sure that no request is paid for twice."""


rule run_inference:
    """Ask one model everything that the ledger does not hold yet."""
    input:
        prompts="data/prompts/{benchmark}.parquet",
        # never read: a person can look at it before anything is asked
        leaks="data/leaks/{benchmark}.json",
        audit="data/deidentified/{benchmark}/audit.json",
        benchmark_config="config/benchmarks/{benchmark}.yaml",
        model_config="config/models/{model}.yaml",
        vocabulary=RUN.config.vocabulary,
    output:
        responses="results/responses/{benchmark}/{model}.parquet",
    log:
        "logs/run_inference/{benchmark}_{model}.log",
    conda:
        "../envs/inference.yaml"
    resources:
        mem_mb=2000,
        api_slots=lambda wildcards: slots_of_model(wildcards).get("api_slots"),
        gpu=lambda wildcards: slots_of_model(wildcards).get("gpu"),
    params:
        ledger="data/ledger/{benchmark}/{model}.jsonl",
        max_failed_fraction=lookup(within=config, dpath="max_failed_fraction"),
        replay=lambda wildcards, input: REPLAY,
        control=lambda wildcards, input: CONTROL,
        code=code_hash("run_inference"),
    shell:
        "python scripts/run_inference.py --benchmark {wildcards.benchmark} --model {wildcards.model} --prompts {input.prompts}"
        " --audit {input.audit} --vocabulary {input.vocabulary:q} --ledger {params.ledger}"
        " --max-failed-fraction {params.max_failed_fraction} {params.replay}"
        " --control {params.control:q} --out {output.responses} &> {log}"
