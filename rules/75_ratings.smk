"""Clinicians' ratings: exports that people carried in become one table; without a round it is empty."""


rule import_ratings:
    """Import the ratings of all rounds; a file that does not fit is refused."""
    input:
        # the key of a packet is private and no input: a clone without it plans nothing
        exports=lambda wildcards: sorted(
            path.as_posix()
            for folder in config["rating_rounds"]
            for path in Path("data/ratings", folder).glob("*.*")
            if path.suffix in (".json", ".csv") and path.name != "key.json"
        ),
        form="config/rating.yaml",
        responses=lambda wildcards: (
            expand(
                "results/responses/{benchmark}/{model}.parquet",
                benchmark=RUN.benchmarks,
                model=RUN.models,
            )
            if config["rating_rounds"]
            else []
        ),
    output:
        ratings="results/ratings/ratings.parquet",
    log:
        "logs/import_ratings/all.log",
    conda:
        "../envs/ratings.yaml"
    resources:
        mem_mb=500,
    params:
        rounds=[f"data/ratings/{folder}" for folder in config["rating_rounds"]],
        code=code_hash("import_ratings"),
    shell:
        "python scripts/import_ratings.py --form {input.form} --rounds {params.rounds} --responses {input.responses}"
        " --out {output.ratings} &> {log}"
