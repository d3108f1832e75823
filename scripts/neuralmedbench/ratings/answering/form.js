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
const freshTurn = () => ({ cannot: false, texts: {}, candidates: [], choice: "", fields: {}, confidence: null, stated: [], asked: null, seconds: 0, locked: false });
const fresh = (item) => ({ turns: item.turns.map(freshTurn) });
// A work-up has one message more for each request: what it releases was looked up when this page was made.
function replyTo(item, record, place) {
  const { most, facts, unknown, again, left, closing } = item.work_up;
  const [released, ...earlier] = record.turns.slice(0, place + 1).map((turn) => turn.asked.released).reverse();
  const repeated = released !== null && earlier.includes(released);
  const fact = released === null || repeated ? null : facts[released];
  const rest = most - place - 1;
  const said = fact ? fact.text : repeated ? again : unknown;
  return { text: `${said}\n\n${rest > 0 ? left.replace("{left}", rest) : closing}`, pictures: fact ? fact.pictures : [], form: item.turns[0].form };
}
const messagesOf = (item, record) => (item.work_up ? record.turns.map((_, place) => (place ? replyTo(item, record, place - 1) : item.turns[0])) : item.turns);
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
const statedOf = (turn) => turn.stated.filter((one) => one.name.trim() || one.probability !== null);
function statesWell(form, turn) {
  const rows = statedOf(turn);
  const sum = rows.reduce((total, one) => total + (one.probability ?? 0), 0);
  return !form.stated || (rows.length > 0 && sum <= 1.001 && rows.every((one) => one.name.trim() && one.probability !== null));
}
function statusOf(form, turn) {
  if (turn.asked) return "asked";
  const all = labelled(form).every(([name]) => name in turn.fields);
  if (turn.cannot || (form.fields.length && all && !names(form, turn))) return "cannot_tell";
  return names(form, turn) && all && statesWell(form, turn) && (turn.confidence !== null || !hasConfidence(form)) ? "answered" : "open";
}
const isAnswered = (item, record, place) => statusOf(messagesOf(item, record)[place].form, record.turns[place]) !== "open";
const finished = (item, record) => record.turns.every((_, place) => isAnswered(item, record, place));
const before = (item) => PACKET.items.slice(0, PACKET.items.indexOf(item)).filter((other) => other.group === item.group);
// a question on a case is shown when the earlier ones are answered, and then locks them
const waitsFor = (item) => before(item).find((other) => !isFinished(other));

// ---- files --------------------------------------------------------------------------------------
function exportedTurn(form, turn) {
  const status = statusOf(form, turn);
  const told = status !== "cannot_tell";
  const locked = turn.locked;
  const seconds = turn.seconds;
  const stating = form.stated ? { stated: statesWell(form, turn) ? statedOf(turn) : [], asked: turn.asked } : {};
  if (turn.asked) return { status, locked, answer: { texts: {}, candidates: [], choice: "", fields: {}, confidence: null }, ...stating, seconds_active: seconds };
  const texts = Object.fromEntries(Object.entries(turn.texts).filter(([name, text]) => text.trim() && (told || name !== "ANSWER")));
  const answer = {
    texts,
    candidates: told ? candidatesOf(turn).map((one) => ({ name: one.name.trim(), for: one.for ?? "", against: one.against ?? "" })) : [],
    choice: told ? turn.choice : "",
    fields: told ? turn.fields : {},
    confidence: told ? turn.confidence : null,
  };
  return { status, locked, answer, ...stating, seconds_active: seconds };
}
const exportedAnswer = (item, record) => ({ turns: messagesOf(item, record).map(({ form }, place) => exportedTurn(form, record.turns[place])) });
const tableColumns = ["item_id", "position", "turn", "status", "locked", "seconds_active", "field", "value"];
// One line per value.
function tableRows(entry) {
  return entry.turns.flatMap((turn, place) => {
    const { texts, candidates, choice, fields, confidence } = turn.answer;
    const values = [
      ...(turn.stated ?? []).flatMap((one, rank) => [[`stated.${rank + 1}`, one.name], [`probability.${rank + 1}`, one.probability]]),
      ...(turn.asked ? [["request", turn.asked.request]] : []),
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
  if (form.stated) turn.stated = (entry.stated ?? []).slice(0, form.stated).map((one) => ({ name: String(one.name ?? ""), probability: Number(one.probability) }));
  turn.cannot = entry.status === "cannot_tell";
  turn.seconds = Number(entry.seconds_active) || 0;
  turn.locked = entry.locked === true;
  return turn;
}
function taken(entry, item) {
  if (!item.work_up) return { turns: item.turns.map((turn, place) => takenTurn(turn.form, entry.turns[place] ?? {})) };
  const known = entry.turns.slice(0, item.work_up.most + 1);
  const asked = known.map((one) => (PACKET.requests.includes(one.asked?.request) ? asking(item, one.asked.request) : null));
  // the requests up to the first message without one, and that message
  const end = asked.indexOf(null) < 0 ? asked.length : asked.indexOf(null);
  const turns = known.slice(0, end + 1).map((one, place) => ({ ...takenTurn(item.turns[0].form, one), asked: asked[place], locked: place < end || one.locked === true }));
  return { turns: end < turns.length ? turns : [...turns, freshTurn()] };
}
const asking = (item, request) => ({ request, released: item.work_up.released[PACKET.requests.indexOf(request)] });

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
function statedElement(form, turn, update) {
  const rows = Array.from({ length: form.stated }, (_, rank) => {
    const one = (turn.stated[rank] ??= { name: "", probability: null });
    const name = input({ type: "text", maxlength: 300, name: `stated-${rank + 1}`, placeholder: "diagnosis", "aria-label": `${rank + 1}, diagnosis now` }, one.name, (text) => update(() => (one.name = text)));
    const share = { type: "number", min: 0, max: 1, step: 0.01, name: `probability-${rank + 1}`, "aria-label": `${rank + 1}, probability` };
    const number = input(share, one.probability, (text) => update(() => {
      const value = text === "" ? NaN : Number(text);
      one.probability = value >= 0 && value <= 1 ? value : null;
    }));
    return make("div", { class: "candidate" }, make("span", {}, `${rank + 1}.`), name, number);
  });
  return make("fieldset", { "data-section": "CANDIDATES" }, make("legend", {}, "What you think now: up to four diagnoses, each with its probability (0 to 1, together at most 1)"), ...rows);
}
function askElement(item, record, place, update) {
  const { most } = item.work_up;
  const [{ form }, turn] = [item.turns[0], record.turns[place]];
  const wish = input({ type: "text", name: "request", id: "request", list: "requests", autocomplete: "off", "aria-label": "Examination" }, turn.wish, (text) => update(() => (turn.wish = text)));
  const button = make("button", { type: "button", id: "ask" }, "Ask for it");
  const ask = () => {
    const request = PACKET.requests.find((one) => one.toLowerCase() === wish.value.trim().toLowerCase());
    if (!request) return say("Choose an examination of the list: the arrow keys show it, and words in the field shorten it. Nothing was used up.");
    if (!statesWell(form, turn)) return say("First say what you think now: a diagnosis in each line that has a probability, together at most 1.");
    say("");
    [turn.asked, turn.locked, turn.cannot, turn.wish] = [asking(item, request), true, false, ""];
    // the next message begins with what was thought last
    record.turns.push({ ...freshTurn(), stated: statedOf(turn).map((one) => ({ ...one })) });
    changed();
    show(false);
    [...document.querySelectorAll("pre.asked")].at(-1).focus();
    return undefined;
  };
  button.addEventListener("click", ask);
  wish.addEventListener("keydown", (event) => event.key === "Enter" && ask());
  const list = make("datalist", { id: "requests" }, ...PACKET.requests.map((one) => make("option", { value: one })));
  return make("fieldset", { "data-section": "REQUEST" }, make("legend", {}, `Ask for an examination (${most - place} left)`), wish, list, button);
}
function formElement(item, record) {
  const place = turnAt(record);
  const messages = messagesOf(item, record);
  const [{ form }, turn] = [messages[place], record.turns[place]];
  const next = make("button", { type: "button", id: "lock" }, "Lock this answer and show the next round");
  const isLast = place === messages.length - 1;
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
  const answer = [make("label", {}, cannot, "I cannot tell"), ...parts, ...(isLast ? [] : [next])];
  const title = messages.length > 1 && !item.work_up ? `Your answer ${place + 1} of ${messages.length}` : "Your answer";
  const asks = item.work_up && place < item.work_up.most ? [askElement(item, record, place, update)] : [];
  const whole = item.work_up ? [statedElement(form, turn, update), ...asks, make("fieldset", { "data-section": "FINAL" }, make("legend", {}, asks.length ? "Or end with your final answer" : "Your final answer"), ...answer)] : answer;
  const body = make("fieldset", { class: "form", disabled: turn.locked }, make("legend", {}, title), ...whole);
  return make("section", { "aria-label": "Your answer" }, ...(turn.locked ? [make("p", { class: "warn" }, "This answer is locked: you have seen more of the case since.")] : []), body);
}

// ---- showing ------------------------------------------------------------------------------------
function summary(form, turn) {
  const { status, answer, stated = [], asked } = exportedTurn(form, turn);
  if (asked) return [...stated.map((one, rank) => `${rank + 1}. ${one.name}: ${one.probability}`), `asked for: ${asked.request}`].join("\n");
  if (status === "cannot_tell") return "I cannot tell";
  return [...answer.candidates.map((one, rank) => `${rank + 1}. ${one.name}`), ...Object.entries(answer.texts).map(([name, text]) => `${name.toLowerCase()}: ${text}`)].join("\n");
}
function turnElements(item, record, place) {
  const messages = messagesOf(item, record);
  const turn = messages[place];
  const title = item.work_up ? `Message ${place + 1}` : messages.length > 1 ? `Message ${place + 1} of ${messages.length}` : "The question";
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
  const seen = messagesOf(item, record).slice(0, turnAt(record) + 1);
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
