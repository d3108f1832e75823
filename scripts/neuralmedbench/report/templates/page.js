"use strict";
// Sorting, copying and the case browser. Text from models enters the page as text nodes only.
// Control characters, and marks that change the direction of a line, are shown by their names (`report/visible.py` does the same).
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\p{Surrogate}\u{e0000}-\u{e007f}]/gu;
const visible = (text) => text.replace(UNSEEN, (sign) => `⟨U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.map((child) => (typeof child === "string" ? visible(child) : child)));
  return element;
};
const words = (name) => name.replaceAll("_", " ");
// Text that a model, a patient or a clinician may have written in any language: its first letter with a direction gives the base direction.
const free = (tag, attributes, ...children) => make(tag, { dir: "auto", ...attributes }, ...children);

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

for (const button of document.querySelectorAll("button[data-copies]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent);
    button.textContent = "Copied";
  });
}

const form = document.getElementById("filters");
const index = form ? JSON.parse(document.getElementById("case-index").textContent) : { models: [], cases: {} };
const cases = [...document.querySelectorAll("details.case")].map((element) => ({ element, ...index.cases[element.id] }));
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

// The dialogue before the last answer, which stands below it.
function dialogueElements(response) {
  const turn = ([answer, told]) => [free("pre", {}, answer || "(no text)"), ...(told ? [free("pre", { class: "told" }, told)] : [])];
  return response.turns.flatMap(turn);
}

function answerElement(response) {
  const missing = ["failed", "over_budget", "skipped"].includes(response.state);
  const outcome = missing ? "none" : response.passed ? "pass" : response.passed === false ? "fail" : "none";
  const ungraded = response.strategy === "self_consistency" && !response.counted ? "voted" : "no grade";
  const label = { pass: "passes", fail: "fails", none: missing ? words(response.state) : ungraded }[outcome];
  const name = response.differential[0] ?? (response.state === "ok" ? "no diagnosis read" : words(response.state));
  const first = response.place ? `${response.place} (${name})` : name;
  const turns = response.turns.length + !missing;
  const sample = `sample ${response.repeat + 1}${response.turns.length ? `, ${turns} turn${turns === 1 ? "" : "s"}` : ""}`;
  const element = make("details", { class: "answer" },
    make("summary", {},
      make("span", { class: `outcome ${outcome}` }, label),
      free("span", { class: "first" }, first),
      make("span", { class: "quiet" }, sample)),
    ...checklistElements(response),
    ...dialogueElements(response),
    free("pre", {}, response.text || "(no text)"));
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
      filter();
    });
    return element;
  };
  return [make("p", { class: "strategies" }, "Strategies, answers that pass: ", ...names.map(button))];
}

// A picture stands on the page once, whichever cases show it.
function pictureElement([digest, label]) {
  const held = document.getElementById(`picture-${digest}`);
  const shown = held ? make("img", { src: `data:image/webp;base64,${held.textContent}`, alt: label }) : "not on the machine that made this page";
  return make("figure", {}, shown, free("figcaption", {}, label));
}

function itemElement(item) {
  const element = make("article", { class: "item" }, make("h3", {}, `${words(item.family)}, ${words(item.level)}`.replace(", none", "")));
  if (item.images.length) {
    element.append(make("h4", {}, `Pictures (${item.images.length}, previews)`));
    element.append(make("div", { class: "pictures" }, ...item.images.map(pictureElement)));
  }
  const asked = make("div", {}, make("h4", {}, "Question"), free("p", {}, item.question));
  if (item.options.length) asked.append(make("ol", { class: "options" }, ...item.options.map((option) => free("li", {}, option))));
  if (item.facts.length) asked.append(make("p", { class: "quiet" }, item.facts.join(" · ")));
  if (item.context) asked.append(make("details", {}, make("summary", { class: "quiet" }, "Context"), free("pre", {}, item.context)));
  const right = make("div", {}, make("h4", {}, "Reference"), free("p", {}, make("b", {}, item.answer || "none")));
  if (item.place) right.append(make("p", {}, "Place: ", free("span", {}, item.place)));
  if (item.findings.length) right.append(make("ul", {}, ...item.findings.map((finding) => free("li", {}, finding))));
  if (item.established) right.append(make("p", { class: "quiet" }, "Established by: ", free("span", {}, item.established)));
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

// What a case holds is packed until it is opened. Its responses come as columns, one list a name.
async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { items } = JSON.parse(await new Response(stream).text());
  const row = (columns, place) => Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[place]]));
  return items.map((item) => ({ ...item, responses: item.responses.model.map((_, place) => row(item.responses, place)) }));
}

async function fill(entry) {
  const [body, packed] = [".case-body", ".case-data"].map((part) => entry.element.querySelector(part));
  const say = (text) => body.replaceChildren(make("p", { class: "empty" }, text));
  if (!packed.textContent) return say("The answers of this case are left out of this page, which would be too large with them.");
  try {
    entry.opened ??= unpack(packed.textContent);
    const items = (await entry.opened).filter((_, place) => fits(entry.items[place]));
    body.replaceChildren(...items.map(itemElement));
  } catch (error) {
    say("This browser could not unpack the case. One of 2023 or later can.");
    throw error;
  }
}

// How often each model passes, filled in when a case comes near the screen: 20 models and 1,000 cases are 20,000 of them.
function tally(entry) {
  const mark = (model) => document.getElementById("case-marks").content.querySelector(`[data-model="${CSS.escape(model)}"] svg`);
  const sum = (results) => results.reduce(([a, b], [passes, answers]) => [a + passes, b + answers], [0, 0]);
  const results = index.models.flatMap((model, place) => {
    const found = entry.items.map((item) => item.results[place]).filter(Boolean);
    const [passes, answers] = sum(found);
    const said = answers ? `${passes}/${answers}` : "not scored";
    return found.length ? [make("span", { class: "result" }, ...(mark(model) ? [mark(model).cloneNode(true)] : []), said)] : [];
  });
  entry.element.querySelector(".case-results").replaceChildren(...results);
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
    model: index.models,
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
  filter();
}
