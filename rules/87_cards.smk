"""Cards: the documentation of a benchmark, for the report and for people who share the benchmark."""

CARDS = sorted(map(str, Path("config/cards").rglob("*.yaml")))
DESCRIPTIONS = [
    f"<results>/croissant/{name}.json"
    for name, benchmark in RUN.benchmarks.items()
    if not benchmark.private
]


rule describe_benchmark:
    """Describe a benchmark that may be shared as Croissant: its files, its columns and its origin."""
    input:
        questions="data/items/{benchmark}.parquet",
        benchmark_config="config/benchmarks/{benchmark}.yaml",
        cards=CARDS,
    output:
        description="<results>/croissant/{benchmark}.json",
    log:
        "<logs>/describe_benchmark/{benchmark}.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=800,
    params:
        code=code_hash("describe_benchmark"),
    shell:
        "python scripts/describe_benchmark.py --benchmark {wildcards.benchmark} --items {input.questions}"
        " --out {output.description} &> {log}"
