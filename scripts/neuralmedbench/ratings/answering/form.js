// The form that answers questions.
const PARAGRAPHS = ["FINDINGS", "RATIONALE", "ANSWER"];
const SIDES = ["left", "right", "bilateral", "midline", "none"];
const MOST = { DIFFERENTIAL: 5, LESION: 1 };
const HINTS = {
  SEEN: "what you were shown: modality, sequences, planes", LESION: "type of lesion, or \"no lesion\"", LOCATION: "region of the main abnormality, or \"none\"",
  SIDE: "", FINDINGS: "what you see and read", DIFFERENTIAL: "most likely first", MISSING: "what you would need to be surer, or \"nothing\"",
  PICTURE: "number of the picture that shows it best, or \"none\"",
  BOX: "[x1, y1, x2, y2] around it there, in thousandths (0 to 1000) of width and height, or \"none\"",
  RATIONALE: "why the first diagnosis is the most likely one", ANSWER: "your whole answer",
};
const CONFIDENCE = "how sure you are of the first answer that you name, 0 to 1";

// ---- records ------------------------------------------------------------------------------------
const freshTurn = () => ({ cannot: false, texts: {}, candidates: [], choice: "", fields: {}, confidence: null, seconds: 0, locked: false });
const fresh = (item) => ({ turns: item.turns.map(freshTurn) });
// the turn to answer now, or the last one if all are locked
const turnAt = (record) => {
  const open = record.turns.findIndex((turn) => !turn.locked);
  return open < 0 ? record.turns.length - 1 : open;
};
const labelled = (form) => form.fields.filter(([, labels]) => labels.length);
const hasConfidence = (form) => form.sections.includes("CONFIDENCE") || form.fields.length > labelled(form).length;
const candidatesOf = (turn) => turn.candidates.filter((one) => one?.name?.trim());
function names(form, turn) {
  if (form.options.length) return turn.choice !== "";
  if (form.fields.length) return labelled(form).some(([name]) => turn.fields[name]);
  return form.sections.includes("ANSWER") ? Boolean(turn.texts.ANSWER?.trim()) : candidatesOf(turn).length > 0;
}
function statusOf(form, turn) {
  const all = labelled(form).every(([name]) => name in turn.fields);
  if (turn.cannot || (form.fields.length && all && !names(form, turn))) return "cannot_tell";
  return names(form, turn) && all && (turn.confidence !== null || !hasConfidence(form)) ? "answered" : "open";
}
const isAnswered = (item, record, place) => statusOf(item.turns[place].form, record.turns[place]) !== "open";
const finished = (item, record) => record.turns.every((_, place) => isAnswered(item, record, place));
const before = (item) => PACKET.items.slice(0, PACKET.items.indexOf(item)).filter((other) => other.group === item.group);
// a question on a case is shown when the earlier ones are answered, and then locks them
const waitsFor = (item) => before(item).find((other) => !isFinished(other));

// ---- files --------------------------------------------------------------------------------------
function exportedTurn(form, turn) {
  const status = statusOf(form, turn);
  const told = status !== "cannot_tell";
  const texts = Object.fromEntries(Object.entries(turn.texts).filter(([name, text]) => text.trim() && (told || name !== "ANSWER")));
  const answer = {
    texts,
    candidates: told ? candidatesOf(turn).map((one) => ({ name: one.name.trim(), for: one.for ?? "", against: one.against ?? "" })) : [],
    choice: told ? turn.choice : "",
    fields: told ? turn.fields : {},
    confidence: told ? turn.confidence : null,
  };
  return { status, locked: turn.locked, answer, seconds_active: turn.seconds };
}
const exportedAnswer = (item, record) => ({ turns: record.turns.map((turn, place) => exportedTurn(item.turns[place].form, turn)) });
const tableColumns = ["item_id", "position", "turn", "status", "locked", "seconds_active", "field", "value"];
// One line per value.
function tableRows(entry) {
  return entry.turns.flatMap((turn, place) => {
    const { texts, candidates, choice, fields, confidence } = turn.answer;
    const values = [
      ...Object.entries(texts),
      ...candidates.flatMap((one, rank) => ["name", "for", "against"].map((part) => [`${part}.${rank + 1}`, one[part]])),
      ...(choice ? [["option", choice]] : []),
      ...Object.entries(fields).map(([name, label]) => [name, label ?? ""]),
      ...(confidence === null ? [] : [["confidence", confidence]]),
    ];
    const head = [entry.item_id, entry.position, place + 1, turn.status, turn.locked, turn.seconds_active];
    return (values.length ? values : [["", ""]]).map((pair) => [...head, ...pair]);
  });
}
function takenTurn(form, entry) {
  const turn = freshTurn();
  const { texts = {}, candidates = [], choice = "", fields = {}, confidence = null } = entry.answer ?? {};
  for (const name of form.sections) if (typeof texts[name] === "string") turn.texts[name] = texts[name];
  const most = Math.max(0, ...form.sections.map((name) => MOST[name] ?? 0));
  turn.candidates = candidates.slice(0, most).map((one) => ({ name: String(one.name ?? ""), for: String(one.for ?? ""), against: String(one.against ?? "") }));
  if (form.options.some(([letter]) => letter === choice)) turn.choice = choice;
  for (const [name, labels] of labelled(form)) if (name in fields && labels.includes(fields[name])) turn.fields[name] = fields[name];
  if (Number.isFinite(confidence) && confidence >= 0 && confidence <= 1) turn.confidence = confidence;
  turn.cannot = entry.status === "cannot_tell";
  turn.seconds = Number(entry.seconds_active) || 0;
  turn.locked = entry.locked === true;
  return turn;
}
const taken = (entry, item) => ({ turns: item.turns.map((turn, place) => takenTurn(turn.form, entry.turns[place] ?? {})) });

// ---- the form -----------------------------------------------------------------------------------
function input(attributes, value, onInput) {
  const element = make(attributes.type ? "input" : "textarea", { dir: "auto", ...attributes });
  element.value = value ?? "";
  element.addEventListener("input", () => onInput(element.value));
  return element;
}
function choose(attributes, choices, value, onChange) {
  const element = make("select", attributes, ...choices.map(([name, text]) => make("option", { value: name }, text)));
  element.value = value;
  element.addEventListener("change", () => onChange(element.value));
  return element;
}
function candidateElement(section, form, turn, rank, update) {
  const one = (turn.candidates[rank] ??= { name: "", for: "", against: "" });
  const field = (part, hint, more = {}) =>
    input({ type: "text", maxlength: part === "name" ? 300 : 2000, name: `${section}-${rank + 1}-${part}`, placeholder: hint, "aria-label": `${rank + 1}, ${hint}`, ...more },
      one[part], (text) => update(() => (one[part] = text)));
  const up = make("button", { type: "button", title: "one rank up", "aria-label": `${rank + 1}, one rank up` }, "↑");
  up.addEventListener("click", () => {
    [turn.candidates[rank - 1], turn.candidates[rank]] = [one, turn.candidates[rank - 1]];
    changed();
    show(false);
  });
  const evidence = form.evidence ? [field("for", "what speaks for it", { class: "evidence" }), field("against", "what speaks against it", { class: "evidence" })] : [];
  return make("div", { class: "candidate" }, make("span", {}, section === "LESION" ? "" : `${rank + 1}.`), field("name", section === "LESION" ? "type of lesion" : "diagnosis"),
    rank ? up : make("span", {}), ...evidence);
}
function sectionElement(name, form, turn, update) {
  const title = `${name[0]}${name.slice(1).toLowerCase()}`;
  const legend = make("legend", {}, HINTS[name] ? `${title}: ${HINTS[name]}` : title);
  if (name === "CONFIDENCE") return confidenceElement(turn, update);
  if (name in MOST) {
    const rows = Array.from({ length: MOST[name] }, (_, rank) => candidateElement(name, form, turn, rank, update));
    return make("fieldset", { "data-section": name }, legend, ...rows);
  }
  if (name === "SIDE") {
    const sides = [["", "not stated"], ...SIDES.map((side) => [side, side])];
    return make("label", {}, title, choose({ name }, sides, turn.texts[name] ?? "", (side) => update(() => (turn.texts[name] = side))));
  }
  const kind = PARAGRAPHS.includes(name) ? {} : { type: "text" };
  const text = input({ ...kind, name, maxlength: 5000, "aria-label": title }, turn.texts[name], (words) => update(() => (turn.texts[name] = words)));
  return make("fieldset", { "data-section": name }, legend, text);
}
function optionElements(form, turn, update) {
  const rows = form.options.map(([letter, text]) => {
    const radio = make("input", { type: "radio", name: "option", value: letter });
    radio.checked = turn.choice === letter;
    radio.addEventListener("change", () => update(() => (turn.choice = letter)));
    return make("label", {}, radio, `${letter}. `, make("span", { dir: "auto" }, text));
  });
  return make("fieldset", { "data-section": "ANSWER" }, make("legend", {}, "One option"), ...rows);
}
function fieldElement(name, labels, turn, update) {
  const choices = [["", "choose"], ...labels.map((label, place) => [String(place), label ?? "cannot tell"])];
  const value = name in turn.fields ? String(labels.indexOf(turn.fields[name])) : "";
  return make("label", {}, words(name), choose({ name: `field-${name}` }, choices, value, (place) => update(() => {
    if (place === "") delete turn.fields[name];
    else turn.fields[name] = labels[Number(place)];
  })));
}
function confidenceElement(turn, update) {
  const number = input({ type: "number", name: "CONFIDENCE", min: 0, max: 1, step: 0.05, "aria-label": "Confidence" }, turn.confidence, (text) => update(() => {
    const value = text === "" ? NaN : Number(text);
    turn.confidence = value >= 0 && value <= 1 ? value : null;
  }));
  return make("fieldset", { "data-section": "CONFIDENCE" }, make("legend", {}, `Confidence: ${CONFIDENCE}`), number);
}
function formElement(item, record) {
  const place = turnAt(record);
  const [{ form }, turn] = [item.turns[place], record.turns[place]];
  const next = make("button", { type: "button", id: "lock" }, "Lock this answer and show the next round");
  const isLast = place === item.turns.length - 1;
  const update = (set) => {
    set();
    next.disabled = !isAnswered(item, record, place);
    changed();
  };
  const cannot = make("input", { type: "checkbox", id: "cannot" });
  cannot.checked = turn.cannot;
  cannot.addEventListener("change", () => update(() => (turn.cannot = cannot.checked)));
  next.disabled = !isAnswered(item, record, place);
  next.addEventListener("click", () => {
    turn.locked = true;
    changed();
    show();
  });
  const parts = form.options.length ? [optionElements(form, turn, update), confidenceElement(turn, update)]
    : form.fields.length ? [...labelled(form).map(([name, labels]) => fieldElement(name, labels, turn, update)), ...(hasConfidence(form) ? [confidenceElement(turn, update)] : [])]
    : form.sections.map((name) => sectionElement(name, form, turn, update));
  const body = make("fieldset", { class: "form", disabled: turn.locked }, make("legend", {}, item.turns.length > 1 ? `Your answer ${place + 1} of ${item.turns.length}` : "Your answer"),
    make("label", {}, cannot, "I cannot tell"), ...parts, ...(isLast ? [] : [next]));
  return make("section", { "aria-label": "Your answer" }, ...(turn.locked ? [make("p", { class: "warn" }, "This answer is locked: you have seen more of the case since.")] : []), body);
}

// ---- showing ------------------------------------------------------------------------------------
function summary(form, turn) {
  const { status, answer } = exportedTurn(form, turn);
  if (status === "cannot_tell") return "I cannot tell";
  return [...answer.candidates.map((one, rank) => `${rank + 1}. ${one.name}`), ...Object.entries(answer.texts).map(([name, text]) => `${name.toLowerCase()}: ${text}`)].join("\n");
}
function turnElements(item, record, place) {
  const turn = item.turns[place];
  const title = item.turns.length > 1 ? `Message ${place + 1} of ${item.turns.length}` : "The question";
  const told = place < turnAt(record) ? [make("h2", {}, `Your answer ${place + 1}, locked`), make("pre", { class: "answer", dir: "auto" }, summary(turn.form, record.turns[place]))] : [];
  return [make("h2", {}, title), make("pre", { class: "asked", dir: "auto", tabindex: 0 }, turn.text), viewer(turn.pictures), ...told];
}
function sections(item, record) {
  const first = waitsFor(item);
  if (first) {
    const button = make("button", { type: "button", id: "first" }, `Answer question ${PACKET.items.indexOf(first) + 1} first`);
    button.addEventListener("click", () => go(PACKET.items.indexOf(first) - state.at));
    return [make("section", {}, make("p", {}, "This question is on a case of which an earlier question is not answered yet."), button)];
  }
  for (const other of before(item)) for (const turn of recordOf(other).turns) turn.locked = true;
  const seen = item.turns.slice(0, turnAt(record) + 1);
  return [
    make("section", { "aria-label": "Question" }, make("p", { class: "told" }, item.told), ...seen.flatMap((_, place) => turnElements(item, record, place))),
    formElement(item, record),
  ];
}
function key(event) {
  const letter = event.key.toUpperCase();
  const radio = letter.length === 1 && document.querySelector(`input[name=option][value="${CSS.escape(letter)}"]`);
  if (!radio || radio.matches(":disabled")) return false;
  radio.click();
  return true;
}
function tick(record) {
  const turn = record.turns[turnAt(record)];
  if (!turn.locked && !waitsFor(current())) turn.seconds += 1;
}

start({
  name: "answers",
  noun: "question",
  tableColumns,
  head: () => ({}),
  fresh,
  finished,
  exported: exportedAnswer,
  taken,
  tableRows,
  left: (number) => `${number} questions are not answered; "Save progress to a file" keeps what is there.`,
  tick,
  sections,
  shown: () => undefined,
  key,
});
