"""Find texts that give the answer away in the requests to models, before anything is sent."""

from pathlib import Path

from neuralmedbench.benchmarks.answer_leaks import find_leaks
from neuralmedbench.benchmarks.leak_review import leak_page, read_accepted
from neuralmedbench.files.json_files import write_json_record
from neuralmedbench.files.tables import read_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.requests import Request
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


def find(
    *,
    benchmark: str,
    items: Path,
    gold: Path,
    prompts: Path,
    vocabulary: Path,
    out_page: Path,
    out: Path,
    accepted: Path | None = None,
) -> None:
    asked, references = read_records(items, Item), read_records(gold, Gold)
    words, requests = read_vocabulary(vocabulary), read_records(prompts, Request)
    excepted = read_accepted(accepted, benchmark) if accepted else None
    leaks = find_leaks(benchmark, asked, references, requests, words, accepted=excepted)
    write_text(out_page, leak_page(leaks, asked, references, requests, words))
    write_json_record(out, leaks)
    summary = f"{leaks.leaking} of {leaks.items} items name their answer in a prompt ({leaks.accepted} accepted)"
    print(f"{benchmark}: {summary}; see {out_page.as_posix()}")


main = Command(find)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
