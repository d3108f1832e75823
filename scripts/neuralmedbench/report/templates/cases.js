// The case browser: filters, search, order, two models compared, keys. Counts are of the pass marks of the cases; nothing is estimated here.
const form = document.getElementById("filters");
const index = form ? JSON.parse(document.getElementById("case-index").textContent) : { models: [], cases: {} };
const cases = [...document.querySelectorAll("details.case")].map((element, place) => ({ element, place, ...index.cases[element.id] }));
const NOUN = document.getElementById("case-list")?.dataset.noun ?? "case"; // what one entry is
const entryOf = new Map(cases.map((entry) => [entry.element, entry]));
const OUTCOMES = { always: "always passes", sometimes: "sometimes passes", never: "never passes" };
const outcomeOf = ([passes, answers]) => (!answers ? "unscored" : passes === answers ? "always" : passes ? "sometimes" : "never");

const wants = (name) => form.elements[name].value;
function fits(item) {
  if (!item.strategies.includes(wants("strategy"))) return false;
  if (wants("level") && item.level !== wants("level")) return false;
  if (wants("family") && item.family !== wants("family")) return false;
  const results = (wants("model") ? [item.results[index.models.indexOf(wants("model"))]] : item.results).filter(Boolean);
  if (wants("model") && !results.length) return false;
  return !wants("outcome") || results.some((result) => outcomeOf(result) === wants("outcome"));
}

// How many answers of a model to these items pass, of how many with a grade.
function passesIn(items, model) {
  const results = items.map((item) => item.results[index.models.indexOf(model)]).filter(Boolean);
  return results.reduce(([passes, answers], [more, of]) => [passes + more, answers + of], [0, 0]);
}
// Right: more than half of its graded answers pass. Undefined without a graded answer.
const rightOf = ([passes, answers]) => (answers ? 2 * passes > answers : undefined);
const isRight = (entry, model) => rightOf(passesIn(entry.items.filter(fits), model));

// What was read in a checklist; the answer as it came stands below.
function checklistElements(response) {
  if (!response.evidence.length) return [];
  const said = (name, text) => make("div", { class: "quiet" }, `${name}: `, text ? free("span", {}, text) : "nothing stated");
  const candidate = (name, place) => {
    const [speaksFor, against] = response.evidence[place] ?? ["", ""];
    return make("li", {}, free("span", {}, name), said("for", speaksFor), said("against", against));
  };
  return [make("ol", { class: "read" }, ...response.differential.map(candidate)), said("Seen", response.seen), said("Missing", response.missing)];
}

// The diagnoses of one message of a work-up, each with the probability that the model stated.
function candidateElements(candidates) {
  if (!candidates.length) return [make("p", { class: "quiet" }, "No probabilities could be read.")];
  const shape = (name, attributes, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const bar = (width, kind) => shape("rect", { class: kind, width, height: 10 });
  const candidate = ([name, probability, right]) => {
    const drawn = shape("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, bar(100, "whole"), bar(100 * probability, "part"));
    const mark = right ? [make("b", { class: "right", role: "img", "aria-label": "the reference", title: "the reference" }, "✓"), " "] : [];
    return make("li", right ? { class: "reference" } : {}, make("span", {}, ...mark, free("span", {}, name)), drawn, make("span", {}, `${Number((100 * probability).toFixed(1))} %`));
  };
  return [make("ol", { class: "candidates", "aria-label": "Diagnoses with the stated probabilities" }, ...candidates.map(candidate))];
}

const CAME = { given: "was given", absent: "the case does not have it", unclear: "names no examination", again: "was given before" };
// One message of the model, and the next one to it.
function turnElement([answer, told, step], images) {
  const said = passage({}, answer || "(no text)");
  const next = told ? [passage({ class: "told" }, told)] : [];
  if (!step) return make("div", {}, said, ...next);
  const came = step.outcome === "given" ? `${step.given} was given` : CAME[step.outcome];
  const asked = step.outcome ? [make("p", { class: "request" }, "Asked for: ", step.request ? free("b", {}, step.request) : "nothing", free("span", {}, ` → ${came}`))] : [];
  const shown = step.images.map((digest) => images.find(([own]) => own === digest) ?? [digest, ""]);
  const pictures = shown.length ? [make("div", { class: "pictures" }, ...shown.map(pictureElement))] : [];
  const raw = make("details", {}, make("summary", { class: "quiet" }, "The message as it came"), said);
  return make("div", {}, ...candidateElements(step.candidates), ...asked, ...next, ...pictures, raw);
}

// The messages of a work-up, one at a time; all of them on paper.
function playElements(messages) {
  const say = make("span", { "aria-live": "polite" });
  const button = (label, title, by) => {
    const element = make("button", { type: "button", title, "aria-label": title }, label);
    element.addEventListener("click", () => group.step(by));
    return element;
  };
  const buttons = [button("←", "Previous message (arrow left)", -1), button("→", "Next message (arrow right)", 1)];
  const group = make("div", { class: "turns" }, make("p", { class: "steps quiet" }, ...buttons, say), ...messages);
  let place = 0;
  group.step = (by) => {
    place = Math.min(Math.max(place + by, 0), messages.length - 1);
    messages.forEach((message, at) => message.classList.toggle("later", at !== place));
    buttons.forEach((one, at) => one.setAttribute("aria-disabled", place === (at ? messages.length - 1 : 0)));
    say.textContent = `message ${place + 1} of ${messages.length}`;
    reach(group);
    return true;
  };
  group.step(0);
  return [group];
}

// What was said, from the first message to the last answer; a work-up is played.
function messageElements(response, images) {
  const turns = response.turns.map((turn) => turnElement(turn, images));
  const answer = passage({}, response.text || "(no text)");
  const last = make("div", {}, ...(response.candidates.length ? candidateElements(response.candidates) : []), ...checklistElements(response), answer);
  const played = turns.length && (response.candidates.length || response.turns.some(([, , step]) => step));
  return played ? playElements([...turns, last]) : [...turns, last];
}

function answerName(response, item) {
  const none = item.options.length ? "no choice read" : "no diagnosis read";
  return response.differential[0] ?? (response.state === "ok" ? none : words(response.state));
}
function answerElement(response, item) {
  const missing = ["failed", "over_budget", "skipped"].includes(response.state);
  const outcome = missing ? "none" : response.passed ? "pass" : response.passed === false ? "fail" : "none";
  const ungraded = response.strategy === "self_consistency" && !response.counted ? "voted" : "no grade";
  const label = { pass: "passes", fail: "fails", none: missing ? words(response.state) : ungraded }[outcome];
  const name = answerName(response, item);
  const first = response.place ? `${response.place} (${name})` : name;
  const turns = response.turns.length + !missing;
  const sample = `sample ${response.repeat + 1}${response.turns.length ? `, ${turns} turn${turns === 1 ? "" : "s"}` : ""}`;
  const element = make("details", { class: "answer" },
    make("summary", {},
      make("span", { class: `outcome ${outcome}` }, label),
      free("span", { class: "first" }, first),
      make("span", { class: "quiet" }, sample)),
    ...messageElements(response, item.images));
  for (const [grader, criterion, value, explanation] of response.grades) {
    const given = `${grader}, ${words(criterion)}: ${value === null ? "no grade" : Number(value.toFixed(2))}. `;
    element.append(make("p", { class: "quiet" }, given, free("span", {}, explanation)));
  }
  return element;
}

// The strategies that ran, each with how many of its graded answers pass; a press shows its answers.
function strategyElements(shown) {
  const names = [...new Set(shown.map((row) => row.strategy))].sort((a, b) => (a !== "direct") - (b !== "direct") || a.localeCompare(b));
  if (names.length < 2) return [];
  const button = (name) => {
    const graded = shown.filter((row) => row.strategy === name && row.passed !== null);
    const said = graded.length ? `${graded.filter((row) => row.passed).length}/${graded.length}` : "no grade";
    const element = make("button", { type: "button", "aria-pressed": name === wants("strategy") }, `${words(name)} ${said}`);
    element.addEventListener("click", () => {
      form.elements.strategy.value = name;
      choose();
    });
    return element;
  };
  return [make("p", { class: "strategies" }, "Strategies, answers that pass: ", ...names.map(button))];
}

function itemElement(item) {
  const element = make("article", { class: "item" }, make("h3", {}, `${words(item.family)}, ${words(item.level)}`.replace(", none", "")));
  if (item.images.length) {
    element.append(make("h4", {}, `Pictures (${item.images.length}, a press enlarges)`));
    element.append(make("div", { class: "pictures" }, ...item.images.map(pictureElement)));
  }
  const asked = make("div", {}, make("h4", {}, "Question"), free("p", {}, item.question));
  if (item.options.length) asked.append(make("ol", { class: "options" }, ...item.options.map((option) => free("li", {}, option))));
  if (item.facts.length) asked.append(make("p", { class: "quiet" }, item.facts.join(" · ")));
  if (item.context) asked.append(make("details", {}, make("summary", { class: "quiet" }, "Context"), passage({}, item.context)));
  const right = make("div", {}, make("h4", {}, "Reference"), free("p", {}, make("b", {}, item.answer || "none")));
  if (item.place) right.append(make("p", {}, "Place: ", free("span", {}, item.place)));
  if (item.findings.length) right.append(make("ul", {}, ...item.findings.map((finding) => free("li", {}, finding))));
  if (item.established) right.append(make("p", { class: "quiet" }, "Established by: ", free("span", {}, item.established)));
  element.append(make("div", { class: "two" }, asked, right));
  const ran = item.responses.filter((row) => row.arm === wants("arm") && (!wants("model") || row.model === wants("model")));
  const shown = ran.filter((row) => row.strategy === wants("strategy"));
  const column = (model) => make("div", {}, make("h5", {}, models.mark(model), make("span", {}, models.title(model))), ...shown.filter((row) => row.model === model).map((row) => answerElement(row, item)));
  const [columns, others] = models.beside([...new Set(shown.map((row) => row.model))]);
  const choice = strategyElements(ran);
  const title = `Answers, arm ${words(wants("arm"))}${choice.length ? `, strategy ${words(wants("strategy"))}` : ""}`;
  element.append(make("h4", {}, title), ...choice, make("div", { class: "answers" }, ...columns.map(column)));
  if (others.length) {
    const more = make("details", { class: "table" }, make("summary", {}, `${others.length} more model${others.length === 1 ? "" : "s"}`));
    more.addEventListener("toggle", () => more.append(make("div", { class: "answers" }, ...others.map(column))), { once: true });
    element.append(more);
  }
  return element;
}

// What a case holds is packed until it is opened. Its responses come as columns, one list a name.
async function unpack(packed) {
  const { items } = await unzipped(packed).json();
  const row = (columns, place) => Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[place]]));
  return items.map((item) => ({ ...item, responses: item.responses.model.map((_, place) => row(item.responses, place)) }));
}

async function fill(entry) {
  const [body, packed] = [".case-body", ".case-data"].map((part) => entry.element.querySelector(part));
  const say = (text) => body.replaceChildren(make("p", { class: "empty" }, text));
  if (!packed.textContent) return say(`The answers of this ${NOUN} are left out of this page, which would be too large with them.`);
  try {
    entry.opened ??= unpack(packed.textContent);
    const items = (await entry.opened).filter((_, place) => fits(entry.items[place]));
    const step = (label, key, by) => {
      const button = make("button", { type: "button", title: `${label} ${NOUN} (key ${key})` }, label);
      button.addEventListener("click", () => stepCase(by, entry));
      return button;
    };
    const steps = make("p", { class: "steps quiet" }, step("Previous", "k", -1), step("Next", "j", 1), `${NOUN} ${entry.element.dataset.case}`);
    body.replaceChildren(steps, ...items.map(itemElement));
    reach(body);
  } catch (error) {
    say(`This browser could not unpack the ${NOUN}. One of 2023 or later can.`);
    throw error;
  }
}

// How often models pass, filled in when a case comes near the screen: 20 models and 1,000 cases are 20,000 of them.
function tally(entry) {
  const [columns, others] = models.beside(index.models.filter((_, place) => entry.items.some((item) => item.results[place])));
  const marks = { true: ["right", "✓"], false: ["wrong", "✗"] };
  const results = columns.map((model) => {
    const [passes, answers] = passesIn(entry.items, model);
    const [word, mark] = marks[rightOf([passes, answers])] ?? [];
    const right = word ? [make("b", { class: word, role: "img", "aria-label": word }, mark)] : [];
    return make("span", { class: "result", title: models.title(model) }, models.mark(model), ...right, answers ? `${passes}/${answers}` : "not scored");
  });
  const scored = [...columns, ...others].map((model) => rightOf(passesIn(entry.items, model))).filter((one) => one !== undefined);
  const all = others.length ? [make("span", { class: "all" }, `${scored.filter(Boolean).length} of ${scored.length} right`)] : [];
  entry.element.querySelector(".case-results").replaceChildren(...results, ...all);
  entry.tallied = true;
}

// Search reads what the page holds: titles and references always, questions and answers of the cases that were not left out.
const textOf = async (entry) => {
  const packed = entry.element.querySelector(".case-data").textContent;
  const held = packed ? await (entry.opened ?? unpack(packed)) : [];
  const of = (item) => [item.question, item.context, item.answer, item.place, ...item.findings, ...item.options, ...item.responses.flatMap((row) => [row.text, ...row.differential])];
  return [entry.element.querySelector("summary").textContent, entry.element.dataset.case, ...held.flatMap(of)].join("\n").toLowerCase();
};
let searching = 0;
async function search() {
  const [mine, wanted] = [++searching, wants("q").trim().toLowerCase()];
  for (const entry of cases) {
    if (wanted) entry.text ??= await textOf(entry);
    if (mine !== searching) return false;
    entry.found = !wanted || entry.text.includes(wanted);
  }
  return true;
}

const ORDERS = {
  "": ["order of the run", () => 0],
  hardest: ["hardest first", (rights) => rights.filter(Boolean).length / rights.length],
  divided: ["most divided first", (rights) => Math.abs(rights.filter(Boolean).length / rights.length - 0.5)],
};
// The share of the models shown that are right orders the cases; cases without a graded answer come last.
function arrange() {
  const [, key] = ORDERS[wants("sort")];
  const keyOf = (entry) => {
    const rights = index.models.filter((model) => models.shown.has(model)).map((model) => isRight(entry, model)).filter((one) => one !== undefined);
    return rights.length ? key(rights) : Infinity;
  };
  const keys = new Map(cases.map((entry) => [entry, wants("sort") ? keyOf(entry) : 0]));
  cases.sort((a, b) => (keys.get(a) === keys.get(b) ? a.place - b.place : keys.get(a) - keys.get(b)));
  const list = document.getElementById("case-list");
  // elements that are put where they are would be styled and laid out again
  if (cases.some((entry, place) => list.children[place] !== entry.element)) list.append(...cases.map((entry) => entry.element));
}

const PAIRS = { a: "only A right", b: "only B right", both: "both right", neither: "neither right" };
// One pass with a function: a title may hold an A, a B or a `$&` itself.
function pairTitle(label, a, b) {
  return label.replace(/\b[AB]\b/g, (letter) => (letter === "A" ? a : b));
}
function pairOf(entry) {
  const [first, second] = [isRight(entry, wants("a")), isRight(entry, wants("b"))];
  if (first === undefined || second === undefined) return "";
  return first ? (second ? "both" : "a") : second ? "b" : "neither";
}
const PAIRS_TABLE = "#pairs [data-part=pairs]";
// Counts of the cases of which both models have a graded answer; the difference and its interval are the cells of the table of pairs.
function compare(entries) {
  const box = document.getElementById("comparison");
  const [a, b] = [wants("a"), wants("b")];
  box.hidden = !a || !b || a === b;
  if (box.hidden) return entries;
  const groups = new Map(entries.map((entry) => [entry, pairOf(entry)]));
  const buttons = Object.entries(PAIRS).map(([name, label]) => {
    const title = pairTitle(label, models.title(a), models.title(b));
    const button = make("button", { type: "button", "aria-pressed": address.get("pair") === name }, `${title}: ${[...groups.values()].filter((one) => one === name).length}`);
    button.addEventListener("click", () => {
      address.set({ pair: address.get("pair") === name ? "" : name });
      filter();
      box.querySelectorAll("button")[Object.keys(PAIRS).indexOf(name)].focus();
    });
    return button;
  });
  const rows = [...document.querySelectorAll(`${PAIRS_TABLE} tr[data-model]`)].filter((row) => [`${a} ${b}`, `${b} ${a}`].includes(row.dataset.model) && (!wants("benchmark") || row.dataset.benchmark === wants("benchmark")));
  const lines = rows.map((row) => {
    const [first, second] = row.dataset.model.split(" ").map(models.title);
    const cell = row.querySelector("[data-element=pass1-patients]");
    const [value, ends] = [...cell.children].map((part) => part.textContent);
    const said = cell.dataset.value ? `${first} minus ${second} ${value} points of pass@1 (${ends || "no interval"})` : "no difference is known, as no item has graded answers of both";
    return make("li", {}, `${row.dataset.benchmark}: ${said}`);
  });
  const left = [...groups.values()].filter((one) => !one).length;
  box.replaceChildren(make("p", {}, ...buttons), ...(lines.length ? [make("ul", { class: "quiet" }, ...lines)] : []),
    make("p", { class: "quiet" }, `Right: more than half of a model’s graded answers to one ${NOUN} pass, full request, asked directly.${left ? ` ${left} ${NOUN}s without a graded answer of both are not counted.` : ""}`));
  return PAIRS[address.get("pair")] ? entries.filter((entry) => groups.get(entry) === address.get("pair")) : entries;
}

async function filter() {
  const count = document.getElementById("case-count");
  if (wants("q")) count.textContent = "searching …";
  if (wants("a") && wants("b")) await unpackTable(document.querySelector(`${PAIRS_TABLE} .table`));
  if (!(await search())) return;
  const fitting = cases.filter((entry) => (!wants("benchmark") || entry.benchmark === wants("benchmark")) && entry.items.some(fits) && entry.found);
  const shown = new Set(compare(fitting));
  for (const entry of cases) {
    entry.element.hidden = !shown.has(entry);
    if (shown.has(entry) && entry.element.open) fill(entry);
  }
  arrange();
  const left = wants("q") ? cases.filter((entry) => !entry.element.querySelector(".case-data").textContent).length : 0;
  count.textContent = `${shown.size} of ${cases.length} ${NOUN}s${left ? `; the answers of ${left} are not on this page and were not searched` : ""}`;
}

// What is chosen stands in the address, where it differs from the start.
const CHOICES = ["q", "benchmark", "level", "family", "model", "outcome", "arm", "strategy", "sort", "a", "b"];
function choose() {
  address.set(Object.fromEntries(CHOICES.map((name) => [name, wants(name) === form.elements[name].dataset.start ? "" : wants(name)])));
  return filter();
}
function restoreChoices() {
  for (const name of CHOICES) {
    const field = form.elements[name];
    field.value = address.get(name) || field.dataset.start;
    if (field.selectedIndex === -1) field.value = field.dataset.start;
  }
  return filter();
}

function stepCase(by, from = entryOf.get(document.activeElement?.closest("details.case")) ?? cases.find((entry) => entry.element.open && !entry.element.hidden)) {
  const listed = cases.filter((entry) => !entry.element.hidden);
  const to = listed[from && listed.includes(from) ? listed.indexOf(from) + by : 0];
  if (!to) return;
  if (from) from.element.open = false;
  to.element.open = true;
  address.go(to.element.id);
  to.element.querySelector("summary").focus({ preventScroll: true });
  to.element.scrollIntoView();
}
// A work-up is stepped through from the line of its answer and from its buttons; elsewhere the arrow keys scroll.
const stepTurn = (by) => document.activeElement?.closest("summary, .turns .steps")?.closest(".answer[open]")?.querySelector(".turns")?.step(by) ?? false;
const KEYS = {
  j: () => stepCase(1),
  k: () => stepCase(-1),
  ArrowLeft: () => stepTurn(-1),
  ArrowRight: () => stepTurn(1),
  "/": () => form.elements.q.focus(),
  Escape() {
    const open = document.activeElement?.closest("details.case[open]");
    if (document.activeElement === form.elements.q) form.elements.q.blur();
    if (!open) return false;
    open.open = false;
    open.querySelector("summary").focus();
    return true;
  },
};

if (form) {
  const items = cases.flatMap((entry) => entry.items);
  const named = (names) => Object.fromEntries([...new Set(names)].map((name) => [name, words(name)]));
  const ofModels = Object.fromEntries(models.names.filter((name) => index.models.includes(name)).map((name) => [name, models.title(name)]));
  const choices = {
    benchmark: { "": "all", ...Object.fromEntries(cases.map((entry) => [entry.benchmark, entry.element.querySelector(".tag").textContent])) },
    level: { "": "all", ...named(items.map((item) => item.level)) },
    family: { "": "all", ...named(items.map((item) => item.family)) },
    model: { "": "all", ...ofModels },
    outcome: { "": "all", ...OUTCOMES },
    arm: named(["full", ...items.flatMap((item) => item.arms)]),
    strategy: named(["direct", ...items.flatMap((item) => item.strategies)]),
    sort: Object.fromEntries(Object.entries(ORDERS).map(([name, [label]]) => [name, label])),
    a: { "": "none", ...ofModels },
    b: { "": "none", ...ofModels },
  };
  for (const [name, options] of Object.entries(choices)) {
    form.elements[name].append(...Object.entries(options).map(([value, label]) => make("option", { value }, label)));
  }
  for (const name of CHOICES) form.elements[name].dataset.start = wants(name);
  form.elements.strategy.closest("label").hidden = form.elements.strategy.length < 2;
  form.elements.a.closest("fieldset").hidden = Object.keys(ofModels).length < 2;
  form.hidden = false;
  form.addEventListener("change", (event) => event.target.name !== "shortcuts" && choose());
  form.elements.q.addEventListener("input", choose);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("all-cases").addEventListener("click", () => {
    address.set({ pair: "", ...Object.fromEntries(CHOICES.map((name) => [name, ""])) });
    restoreChoices();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=checkbox]), select, textarea") && event.key !== "Escape";
    if (typing || event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || document.querySelector("dialog[open], [popover]:popover-open:not(#tip)") || !KEYS[event.key]) return;
    if (event.key.length === 1 && !form.elements.shortcuts.checked) return;
    if (KEYS[event.key]() !== false) event.preventDefault();
  });
  const near = new IntersectionObserver((seen) => {
    for (const { target } of seen.filter((one) => one.isIntersecting)) {
      near.unobserve(target);
      tally(entryOf.get(target));
    }
  }, { rootMargin: "600px" });
  for (const entry of cases) {
    entry.element.addEventListener("toggle", () => entry.element.open && fill(entry));
    near.observe(entry.element);
  }
  document.addEventListener("models", () => {
    for (const entry of cases.filter((one) => one.tallied)) tally(entry);
    filter();
  });
  restoreChoices();
}
