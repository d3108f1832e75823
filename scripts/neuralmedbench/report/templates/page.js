"use strict";
// Sorting, copying and the case browser. Text from models enters the page as text nodes only.
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
const words = (name) => name.replaceAll("_", " ");

function sortBy(header) {
  const body = header.closest("table").tBodies[0];
  const column = header.cellIndex;
  const down = header.getAttribute("aria-sort") !== "descending";
  for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  const compare = (a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === "" || y === "") return (x === "") - (y === "");
    const order = x - y;
    return (Number.isNaN(order) ? x.localeCompare(y) : order) * (down ? -1 : 1);
  };
  body.append(...[...body.rows].sort(compare));
}
for (const button of document.querySelectorAll("table.sortable thead button")) {
  button.addEventListener("click", () => sortBy(button.closest("th")));
}

// What is wider than the page is scrolled with the keyboard too.
for (const region of document.querySelectorAll(".scroll")) region.tabIndex = region.scrollWidth > region.clientWidth ? 0 : -1;

for (const button of document.querySelectorAll("button[data-copies]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent);
    button.textContent = "Copied";
  });
}

const form = document.getElementById("filters");
const cases = [...document.querySelectorAll("details.case")].map((element) => ({
  element,
  ...JSON.parse(element.querySelector(".case-index").textContent),
}));
const OUTCOMES = { always: "always passes", sometimes: "sometimes passes", never: "never passes" };
const outcomeOf = ([passes, answers]) => (!answers ? "unscored" : passes === answers ? "always" : passes ? "sometimes" : "never");

const wants = (name) => form.elements[name].value;
function fits(item) {
  if (!item.strategies.includes(wants("strategy"))) return false;
  if (wants("level") && item.level !== wants("level")) return false;
  if (wants("family") && item.family !== wants("family")) return false;
  const results = wants("model") ? [item.results[wants("model")]].filter(Boolean) : Object.values(item.results);
  if (wants("model") && !results.length) return false;
  return !wants("outcome") || results.some((result) => outcomeOf(result) === wants("outcome"));
}

// What was read in a checklist; the answer as it came stands below.
function checklistElements(response) {
  if (!response.evidence.length) return [];
  const said = (name, text) => make("div", { class: "quiet" }, `${name}: ${text || "nothing stated"}`);
  const candidate = (name, place) => {
    const [speaksFor, against] = response.evidence[place] ?? ["", ""];
    return make("li", {}, name, said("for", speaksFor), said("against", against));
  };
  return [make("ol", { class: "read" }, ...response.differential.map(candidate)), said("Seen", response.seen), said("Missing", response.missing)];
}

// The dialogue before the last answer, which stands below it.
function dialogueElements(response) {
  const turn = ([answer, told]) => [make("pre", {}, answer || "(no text)"), ...(told ? [make("pre", { class: "told" }, told)] : [])];
  return response.turns.flatMap(turn);
}

function answerElement(response) {
  const missing = ["failed", "over_budget", "skipped"].includes(response.state);
  const outcome = missing ? "none" : response.passed ? "pass" : response.passed === false ? "fail" : "none";
  const ungraded = response.strategy === "self_consistency" && !response.counted ? "voted" : "no grade";
  const label = { pass: "passes", fail: "fails", none: missing ? words(response.state) : ungraded }[outcome];
  const first = response.differential[0] ?? (response.state === "ok" ? "no diagnosis read" : words(response.state));
  const turns = response.turns.length + !missing;
  const sample = `sample ${response.repeat + 1}${response.turns.length ? `, ${turns} turn${turns === 1 ? "" : "s"}` : ""}`;
  const element = make("details", { class: "answer" },
    make("summary", {},
      make("span", { class: `outcome ${outcome}` }, label),
      make("span", { class: "first" }, first),
      make("span", { class: "quiet" }, sample)),
    ...checklistElements(response),
    ...dialogueElements(response),
    make("pre", {}, response.text || "(no text)"));
  for (const [grader, criterion, value, explanation] of response.grades) {
    element.append(make("p", { class: "quiet" }, `${grader}, ${words(criterion)}: ${value === null ? "no grade" : Number(value.toFixed(2))}. ${explanation}`));
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
      filter();
    });
    return element;
  };
  return [make("p", { class: "strategies" }, "Strategies, answers that pass: ", ...names.map(button))];
}

function itemElement(item, pictures) {
  const element = make("article", { class: "item" }, make("h3", {}, `${words(item.family)}, ${words(item.level)}`.replace(", none", "")));
  if (item.images.length) {
    element.append(make("h4", {}, `Pictures (${item.images.length}, previews)`));
    element.append(make("div", { class: "pictures" }, ...item.images.map(([digest, label]) => make("figure", {},
      pictures[digest] ? make("img", { src: pictures[digest], alt: label }) : "not on the machine that made this page",
      make("figcaption", {}, label)))));
  }
  const asked = make("div", {}, make("h4", {}, "Question"), make("p", {}, item.question));
  if (item.options.length) asked.append(make("ol", { class: "options" }, ...item.options.map((option) => make("li", {}, option))));
  if (item.facts.length) asked.append(make("p", { class: "quiet" }, item.facts.join(" · ")));
  if (item.context) asked.append(make("details", {}, make("summary", { class: "quiet" }, "Context"), make("pre", {}, item.context)));
  const right = make("div", {}, make("h4", {}, "Reference"), make("p", {}, make("b", {}, item.answer || "none")));
  if (item.findings.length) right.append(make("ul", {}, ...item.findings.map((finding) => make("li", {}, finding))));
  if (item.established) right.append(make("p", { class: "quiet" }, `Established by: ${item.established}`));
  element.append(make("div", { class: "two" }, asked, right));
  const ran = item.responses.filter((row) => row.arm === wants("arm") && (!wants("model") || row.model === wants("model")));
  const shown = ran.filter((row) => row.strategy === wants("strategy"));
  const models = [...new Set(shown.map((row) => row.model))];
  const column = (model) => make("div", {}, make("h5", {}, model), ...shown.filter((row) => row.model === model).map(answerElement));
  const choice = strategyElements(ran);
  const title = `Answers, arm ${words(wants("arm"))}${choice.length ? `, strategy ${words(wants("strategy"))}` : ""}`;
  element.append(make("h4", {}, title), ...choice, make("div", { class: "answers" }, ...models.map(column)));
  return element;
}

// Responses come as lists of places: what is equal stands in the page once.
function read(data) {
  const spell = (place) => (Array.isArray(place) ? place.map(spell) : data.leaves[place]);
  const named = (row) => Object.fromEntries(data.columns.map((name, column) => [name, spell(row[column])]));
  for (const item of data.items) item.responses = item.responses.map(named);
  return data;
}

function fill(entry) {
  entry.data ??= read(JSON.parse(entry.element.querySelector(".case-data").textContent));
  const items = entry.data.items.filter((_, place) => fits(entry.items[place]));
  entry.element.querySelector(".case-body").replaceChildren(...items.map((item) => itemElement(item, entry.data.pictures)));
}

function filter() {
  let shown = 0;
  for (const entry of cases) {
    const visible = (!wants("benchmark") || entry.benchmark === wants("benchmark")) && entry.items.some(fits);
    entry.element.hidden = !visible;
    shown += visible;
    if (visible && entry.element.open) fill(entry);
  }
  document.getElementById("case-count").textContent = `${shown} of ${cases.length} cases`;
}

if (form) {
  const items = cases.flatMap((entry) => entry.items);
  const choices = {
    benchmark: cases.map((entry) => entry.benchmark),
    level: items.map((item) => item.level),
    family: items.map((item) => item.family),
    model: items.flatMap((item) => Object.keys(item.results)),
    arm: ["full", ...items.flatMap((item) => item.arms)],
    strategy: ["direct", ...items.flatMap((item) => item.strategies)],
  };
  for (const [name, values] of Object.entries(choices)) {
    const options = [...new Set(values)].map((value) => make("option", { value }, words(value)));
    form.elements[name].append(...(["arm", "strategy"].includes(name) ? [] : [make("option", { value: "" }, "all")]), ...options);
  }
  form.elements.strategy.closest("label").hidden = form.elements.strategy.length < 2;
  form.elements.outcome.append(make("option", { value: "" }, "all"),
    ...Object.entries(OUTCOMES).map(([value, label]) => make("option", { value }, label)));
  form.hidden = false;
  form.addEventListener("change", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const entry of cases) entry.element.addEventListener("toggle", () => entry.element.open && fill(entry));
  filter();
}
