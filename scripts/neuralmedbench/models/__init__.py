"""Models: one engine, one ledger and a few backends; requests, their cost, and the answers.

Doors
-----
api.model_list: listed_last_days
batch.log: batch_lines, release_chunk
budget: NANO, SpendTotals, account_of, check_paid
causes: can_be_asked, next_step
console: log_served_models
context_length: ContextLength, LengthCount
conversation: PromptMessage, WorkUpStep, facts_told, next_messages, questions_asked, released, shown_answer
destinations: LOCAL, check_destination, destination_of, is_allowed, resources_of
engine: answer_requests
explain: explain, explain_stored
forecast: Forecast, GraderSwitch, forecast_calls, forecast_informant, grader_switches, switch_lines
imported_answers: ImportCounts, check_import, import_answers, import_given
informant: INFORMANT, MOST_REPLIES, informed_questions
ledger: LedgerEntry, add_missing, open_ledger, read_ledger
life: last_day, life_lines, life_words
model_run: ModelRun, RunControl, RunLimits, UNLIMITED, spent_here
prices: asked_tier, cost_usd, highest_usd, longest_answer, price_list
registry: cannot_ask, code_of, unavailable_reason
replay: previous_responses, rebuild
requests_of_model: fits_layout, limited_requests, requests_for, too_many_pictures, within_budget
samples: SampleWalk, has_informant, response_row
"""
