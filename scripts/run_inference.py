"""Send one model the requests of a benchmark that the ledger has no answer to."""

from pathlib import Path

from neuralmedbench.config.load import load_benchmark, load_informant, load_model_for
from neuralmedbench.config.section import Section
from neuralmedbench.files.cases import read_audit
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.imaging.views import ViewService
from neuralmedbench.models.console import log_served_models
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.model_run import ModelRun, RunControl, RunLimits
from neuralmedbench.models.replay import previous_responses
from neuralmedbench.models.requests_of_model import limited_requests, requests_for
from neuralmedbench.prompts.coverage import check_asked, check_view
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import response_key
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command
from neuralmedbench.scoring.explain_reading import early_check


class Settings(Section):
    """The share of failed calls above which the job fails, and the most answers of a limited run (0: all)."""

    max_failed_fraction: float
    limit: int = 0


def infer(
    *, benchmark: str, model: str, prompts: Path, items: Path, audit: Path, vocabulary: Path,
    ledger: Path, settings: Settings, control: RunControl, out: Path, config: Path = Path("config"),
) -> None:  # fmt: skip
    asked = load_model_for(config, benchmark, model)
    requests = limited_requests(asked, requests_for(asked, read_records(prompts, Request)), settings.limit, items)
    passed = read_audit(audit)
    check_asked(requests, passed)
    views, informant = ViewService(lambda view: check_view(passed, view)), load_informant(config, benchmark)
    allowed, bounds = load_benchmark(config, benchmark).allowed_destinations, RunLimits.of(control)
    asking = {"max_failed_fraction": settings.max_failed_fraction, "replay": control.replay, "vocabulary": read_vocabulary(vocabulary)}
    seen = {"views": views, "why_unread": early_check(items), "informant": informant}
    run = ModelRun(asked, ledger=ledger, destinations=allowed, control=bounds, **asking, **seen)
    responses = answer_requests(requests, run)
    log_served_models(model, responses)
    responses += previous_responses(requests, asked, ledger, views, informant)  # the current revision comes first (current_rows)
    write_records(out, Response, responses, key=lambda row: (row.revision != asked.revision, response_key(row)))


main = Command(infer)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
