"""Clinicians' ratings: exports that people carried in become one table; without a round it is empty."""

from neuralmedbench.records.scores import SIMULATED_ROUND


rule import_ratings:
    """Import the ratings of all rounds; a file that does not fit is refused."""
    input:
        # the key of a packet is private and no input: a clone without it plans nothing
        exports=lambda wildcards: sorted(
            path.as_posix()
            for folder in RUN.rating_rounds
            if folder != SIMULATED_ROUND
            for path in Path("data/ratings", folder).glob("*.*")
            if path.suffix in (".json", ".csv") and path.name != "key.json"
        ),
        # made by a rule, and nobody's secret
        simulated=(
            rules.simulate_ratings.output
            if SIMULATED_ROUND in RUN.rating_rounds
            else []
        ),
        form="config/rating.yaml",
        responses=lambda wildcards: (
            expand(
                "results/responses/{benchmark}/{model}.parquet",
                benchmark=RUN.benchmarks,
                model=RUN.models,
            )
            if RUN.rating_rounds
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
        rounds=[f"data/ratings/{folder}" for folder in RUN.rating_rounds],
        code=code_hash("import_ratings"),
    shell:
        "python scripts/import_ratings.py --form {input.form} --rounds {params.rounds} --responses {input.responses}"
        " --out {output.ratings} &> {log}"
