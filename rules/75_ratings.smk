"""Clinicians' ratings: the exports of all rounds become one table, which is empty without a round."""

from neuralmedbench.records.scores import SIMULATED_ROUND


rule import_ratings:
    """Import the ratings of all rounds; refuse a file that is not valid."""
    input:
        # the key of a packet is private and not an input: a clone without it has nothing to run
        exports=lambda wildcards: sorted(
            path.as_posix()
            for folder in RUN.rating_rounds
            if folder != SIMULATED_ROUND
            for path in Path("data/ratings", folder).glob("*.*")
            if path.suffix in (".json", ".csv") and path.name != "key.json"
        ),
        # made by a rule; its key is not secret
        simulated=(
            rules.simulate_ratings.output
            if SIMULATED_ROUND in RUN.rating_rounds
            else []
        ),
        form="config/rating.yaml",
        responses=lambda wildcards: (
            expand(
                "<results>/responses/{benchmark}/{model}.parquet",
                benchmark=RUN.benchmarks,
                model=RUN.models,
            )
            if RUN.rating_rounds
            else []
        ),
    output:
        ratings="<results>/ratings/ratings.parquet",
    log:
        "<logs>/import_ratings/all.log",
    conda:
        "../envs/ratings.yaml"
    resources:
        mem_mb=500,
    params:
        rounds=[RUN.round_folder(name) for name in RUN.rating_rounds],
        code=code_hash("import_ratings"),
    shell:
        "python scripts/import_ratings.py --form {input.form} --rounds {params.rounds} --responses {input.responses}"
        " --out {output.ratings} &> {log}"
