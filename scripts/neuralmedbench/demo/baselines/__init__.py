"""Reference models that run inside the command: no key, no GPU, no download. They are baselines, not vision-language models."""
