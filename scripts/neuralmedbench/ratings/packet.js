"use strict";
// A rater's form. Every text of the packet and of a file enters the page as a text node, never as HTML.
const PACKET = JSON.parse(document.getElementById("packet").textContent);
const KEPT = `neuralmedbench.rating/${PACKET.packet_id}`;
const IDLE_MS = 120000;
const ROLES = ["", "neurologist", "neuroradiologist", "radiologist", "neurosurgeon", "in training", "other"];
const byId = (id) => document.getElementById(id);
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== false) element.setAttribute(name, value === true ? "" : value);
  element.append(...children);
  return element;
};
const words = (name) => name.replaceAll("_", " ");
const now = () => new Date().toISOString().replace(/\.\d+Z$/, "Z");

const fresh = () => ({ scores: {}, cannot_judge: [], errors: {}, seconds: 0, revisions: 0, comment: "", cannot: false, reference: false, seen: false });
let state = { role: "", years: null, started: now(), at: 0, records: {} };
let unsaved = false;
let keeping = true;
let touched = Date.now();
let marked = 0;

const current = () => PACKET.items[state.at];
const recordOf = (item) => (state.records[item.item_id] ??= fresh());
const judged = (record, name) => name in record.scores || record.cannot_judge.includes(name);
const allUnjudged = (record) => record.cannot || PACKET.axes.every((axis) => record.cannot_judge.includes(axis.name));
const finished = (record) => record.cannot || PACKET.axes.every((axis) => judged(record, axis.name));
const begun = (record) => Object.keys(record.scores).length + record.cannot_judge.length + Object.keys(record.errors).length > 0;
// whether an answer to the same case has shown the reference already
const seenElsewhere = (item) => PACKET.items.some((other) => other !== item && other.group === item.group && recordOf(other).reference);
const finishedCount = () => PACKET.items.filter((item) => finished(recordOf(item))).length;

// ---- keeping ------------------------------------------------------------------------------------
function say(text) {
  byId("said").textContent = text;
}
function keep() {
  if (!keeping) return;
  try {
    localStorage.setItem(KEPT, JSON.stringify(state));
    byId("kept").textContent = "kept in this browser";
  } catch {
    byId("kept").textContent = "this browser keeps nothing: save to a file";
  }
}
function changed() {
  [unsaved, keeping] = [true, true];
  keep();
  showProgress();
}
function recall() {
  try {
    const text = localStorage.getItem(KEPT);
    if (text) state = { ...state, ...JSON.parse(text) };
  } catch {
    say("What this browser kept cannot be read: resume from your file.");
  }
  if (!PACKET.items[state.at]) state.at = 0;
}

// ---- files --------------------------------------------------------------------------------------
function statusOf(record) {
  if (allUnjudged(record)) return "cannot_judge";
  return begun(record) ? "rated" : "not_rated";
}
function exportedItem(item, place) {
  const record = recordOf(item);
  const status = statusOf(record);
  const rated = status === "rated";
  const errors = Object.entries(record.errors).map(([code, significant]) => ({ code, significant }));
  return {
    item_id: item.item_id,
    position: place + 1,
    status,
    scores: rated ? record.scores : {},
    cannot_judge: rated ? record.cannot_judge : [],
    errors: rated ? errors : [],
    seconds_active: record.seconds,
    revisions: record.revisions,
    reference_shown: record.reference,
    reference_seen: record.seen,
    comment: record.comment,
  };
}
function exported(complete) {
  return {
    schema: "neuralmedbench.rating/1",
    packet_id: PACKET.packet_id,
    packet_sha256: PACKET.packet_sha256,
    rubric: PACKET.rubric,
    // a program that drives the browser is no clinician
    rater: { id: PACKET.rater, role: state.role, years: state.years, simulated: navigator.webdriver === true },
    started: state.started,
    exported: now(),
    complete,
    items: PACKET.items.map(exportedItem),
  };
}
const CELLS = ["schema", "packet_id", "packet_sha256", "rubric", "rater_id", "role", "years", "simulated", "started", "exported", "complete"];
const ROW_CELLS = ["item_id", "position", "status", "axis", "value", "seconds_active", "revisions", "reference_shown", "reference_seen"];
// Long form, one line a value; comments are not in it. An axis that cannot be judged has an empty value.
function asCsv(whole) {
  const head = [whole.schema, whole.packet_id, whole.packet_sha256, whole.rubric, whole.rater.id, whole.rater.role, whole.rater.years ?? "",
    whole.rater.simulated, whole.started, whole.exported, whole.complete];
  const lines = [[...CELLS, ...ROW_CELLS]];
  for (const item of whole.items) {
    const values = [
      ...Object.entries(item.scores),
      ...item.cannot_judge.map((name) => [name, ""]),
      ...item.errors.map((error) => [`error.${error.code}`, error.significant ? 2 : 1]),
    ];
    for (const [axis, value] of values.length ? values : [["", ""]]) {
      lines.push([...head, item.item_id, item.position, item.status, axis, value, item.seconds_active, item.revisions,
        item.reference_shown, item.reference_seen]);
    }
  }
  return lines.map((line) => line.join(",")).join("\n") + "\n";
}
function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
function fileName(kind, whole, ending) {
  return `${kind}_${PACKET.packet_id}_${PACKET.rater}_${whole.exported.replace(/[^0-9TZ]/g, "")}.${ending}`;
}
function save() {
  const whole = exported(false);
  download(fileName("progress", whole, "json"), "application/json", JSON.stringify(whole, null, 1));
  unsaved = false;
}
function exportAs(ending) {
  const left = PACKET.items.length - finishedCount();
  if (left) return say(`${left} answers are not finished; "Save progress to a file" keeps what is there.`);
  const whole = exported(true);
  const text = ending === "csv" ? asCsv(whole) : JSON.stringify(whole, null, 1);
  download(fileName("rating", whole, ending), ending === "csv" ? "text/csv" : "application/json", text);
  if (ending === "json") unsaved = false;
  return say("");
}
function taken(entry) {
  const record = fresh();
  for (const axis of PACKET.axes) {
    const value = entry.scores?.[axis.name];
    if (Number.isInteger(value) && value >= axis.lowest && value <= axis.highest) record.scores[axis.name] = value;
    else if (entry.cannot_judge?.includes(axis.name)) record.cannot_judge.push(axis.name);
  }
  for (const error of entry.errors ?? []) if (PACKET.errors.includes(error.code)) record.errors[error.code] = error.significant === true;
  record.cannot = entry.status === "cannot_judge";
  record.reference = entry.reference_shown === true;
  record.seen = entry.reference_seen === true;
  record.seconds = Number(entry.seconds_active) || 0;
  record.revisions = Number(entry.revisions) || 0;
  record.comment = String(entry.comment ?? "");
  return record;
}
async function resume(file) {
  const known = new Set(PACKET.items.map((item) => item.item_id));
  let whole, records;
  try {
    whole = JSON.parse(await file.text());
    if (whole.packet_id !== PACKET.packet_id || whole.packet_sha256 !== PACKET.packet_sha256) return say("This file belongs to another packet.");
    records = Object.fromEntries(whole.items.filter((entry) => known.has(entry.item_id)).map((entry) => [entry.item_id, taken(entry)]));
  } catch {
    return say("This file is not one that this form saved.");
  }
  const role = ROLES.includes(whole.rater?.role) ? whole.rater.role : "";
  const years = Number.isFinite(whole.rater?.years) ? whole.rater.years : null;
  state = { role, years, started: String(whole.started), at: 0, records };
  showWho();
  say("");
  toUnfinished();
  changed();
  unsaved = false;
  return undefined;
}
function clear() {
  if (unsaved && !window.confirm("There is work that is in no file yet. Remove it from this computer?")) return;
  try {
    localStorage.removeItem(KEPT);
  } catch {
    // nothing was kept
  }
  state = { role: "", years: null, started: now(), at: 0, records: {} };
  [unsaved, keeping] = [false, false];
  byId("kept").textContent = "";
  showWho();
  show();
  say("This browser keeps nothing of this packet any more.");
}

// ---- judging ------------------------------------------------------------------------------------
const lockedAxis = (record, name) => record.reference && PACKET.first_judgement.includes(name);
function judge(axis, value) {
  const record = recordOf(current());
  if (record.cannot || lockedAxis(record, axis.name)) return;
  if (judged(record, axis.name)) record.revisions += 1;
  if (PACKET.first_judgement.includes(axis.name)) record.seen = seenElsewhere(current());
  record.cannot_judge = record.cannot_judge.filter((name) => name !== axis.name);
  delete record.scores[axis.name];
  if (value === null) record.cannot_judge.push(axis.name);
  else record.scores[axis.name] = value;
  changed();
  showReference();
}
function axisElement(axis, place, record) {
  const locked = record.cannot || lockedAxis(record, axis.name);
  const choice = (value, text) => {
    const on = value === null ? record.cannot_judge.includes(axis.name) : record.scores[axis.name] === value;
    const input = make("input", { type: "radio", name: axis.name, value: value ?? "none" });
    input.checked = on;
    input.disabled = locked;
    input.addEventListener("change", () => judge(axis, value));
    return make("label", {}, input, text);
  };
  const range = Array.from({ length: axis.highest - axis.lowest + 1 }, (_, step) => axis.lowest + step);
  const element = make("fieldset", { "data-axis": axis.name },
    make("legend", {}, axis.question),
    make("p", { class: "ends" }, `${axis.lowest}: ${axis.anchors[0]} · ${axis.highest}: ${axis.anchors[1]}`),
    ...range.map((value) => choice(value, String(value))), choice(null, "cannot judge (C)"));
  element.addEventListener("focusin", () => mark(place, false));
  return element;
}
function errorElement(code, record) {
  const [there, weighs] = [make("input", { type: "checkbox", name: `error-${code}` }), make("input", { type: "checkbox", name: `significant-${code}` })];
  there.checked = code in record.errors;
  weighs.checked = record.errors[code] === true;
  there.disabled = record.cannot;
  weighs.disabled = record.cannot || !there.checked;
  const update = () => {
    if (there.checked) record.errors[code] = weighs.checked;
    else delete record.errors[code];
    weighs.disabled = !there.checked;
    if (!there.checked) weighs.checked = false;
    changed();
  };
  there.addEventListener("change", update);
  weighs.addEventListener("change", update);
  return make("div", {}, make("label", {}, there, words(code)), make("label", {}, weighs, "significant"));
}
function mark(place, scroll = true) {
  marked = Math.max(0, Math.min(PACKET.axes.length - 1, place));
  const all = [...document.querySelectorAll("fieldset[data-axis]")];
  all.forEach((element, number) => element.classList.toggle("marked", number === marked));
  if (scroll) all[marked]?.scrollIntoView({ block: "nearest" });
}
function showReference() {
  const item = current();
  const record = recordOf(item);
  const place = byId("reference");
  if (!place) return;
  place.replaceChildren();
  if (!item.reference.length) return;
  if (record.reference) {
    place.append(make("div", { class: "reference" }, ...item.reference.map((line) => make("p", {}, line))));
    return;
  }
  const button = make("button", { type: "button", id: "reveal" }, `Lock ${PACKET.first_judgement.map(words).join(", ")} and show the reference`);
  button.disabled = !PACKET.first_judgement.every((name) => judged(record, name));
  button.addEventListener("click", () => {
    record.reference = true;
    changed();
    show(false);
  });
  place.append(button);
}
function ratingElement(item, record) {
  const cannot = make("input", { type: "checkbox", id: "cannot" });
  cannot.checked = record.cannot;
  cannot.addEventListener("change", () => {
    record.cannot = cannot.checked;
    if (record.cannot) Object.assign(record, { scores: {}, cannot_judge: [], errors: {} });
    changed();
    show(false);
  });
  const comment = make("textarea", { id: "comment", maxlength: 2000, "aria-label": "Comment" });
  comment.value = record.comment;
  comment.addEventListener("input", () => {
    record.comment = comment.value;
    changed();
  });
  const lines = PACKET.axes.map((axis, place) => axisElement(axis, place, record));
  // the reference stands behind the lines that are judged without it
  const last = PACKET.axes.findLastIndex((axis) => PACKET.first_judgement.includes(axis.name));
  lines.splice(last + 1, 0, make("div", { id: "reference" }));
  return make("section", { "aria-label": "Rating" },
    make("label", {}, cannot, "I cannot judge this answer at all"),
    ...lines,
    PACKET.errors.length ? make("fieldset", { class: "errors" }, make("legend", {}, "Errors in the answer"), ...PACKET.errors.map((code) => errorElement(code, record))) : "",
    make("p", {}, "Comment (no details of patients):"), comment);
}

// ---- showing ------------------------------------------------------------------------------------
let turnPicture = () => undefined;
function viewer(pictures) {
  if (!pictures.length) return "";
  let at = 0;
  const image = make("img", { alt: "" });
  const caption = make("figcaption", {});
  const slider = (name, lowest, highest, value, step = 1) => make("input", { type: "range", min: lowest, max: highest, value, step, "aria-label": name });
  const [place, light, contrast, zoom] = [slider("Picture", 1, pictures.length, 1), slider("Brightness", 50, 200, 100), slider("Contrast", 50, 300, 100), slider("Size", 1, 3, 1, 0.5)];
  const look = () => {
    image.style.filter = `brightness(${light.value}%) contrast(${contrast.value}%)`;
    image.style.maxWidth = zoom.value > 1 ? "none" : "100%";
    if (image.naturalWidth) image.style.width = zoom.value > 1 ? `${image.naturalWidth * zoom.value}px` : "";
  };
  const paint = () => {
    const [digest, label] = pictures[at];
    image.src = `data:image/png;base64,${PACKET.pictures[digest]}`;
    image.dataset.sha256 = digest;
    image.alt = label || `picture ${at + 1}`;
    caption.textContent = `${at + 1} of ${pictures.length}${label ? `: ${label}` : ""}`;
    place.value = at + 1;
  };
  const turn = (step) => {
    at = Math.max(0, Math.min(pictures.length - 1, at + step));
    paint();
  };
  place.addEventListener("input", () => turn(place.value - 1 - at));
  for (const one of [light, contrast, zoom]) one.addEventListener("input", look);
  const reset = make("button", { type: "button" }, "Reset");
  reset.addEventListener("click", () => {
    [light.value, contrast.value, zoom.value] = [100, 100, 1];
    look();
  });
  const frame = make("figure", {}, image);
  frame.addEventListener("wheel", (event) => {
    if (zoom.value > 1) return;
    event.preventDefault();
    turn(event.deltaY > 0 ? 1 : -1);
  }, { passive: false });
  const element = make("div", { class: "viewer" }, frame, caption,
    make("label", {}, "Picture ", place), make("label", {}, "Brightness ", light), make("label", {}, "Contrast ", contrast), make("label", {}, "Size ", zoom), reset);
  element.addEventListener("pointerdown", () => (turnPicture = turn));
  paint();
  turnPicture = turn;
  return element;
}
function turnElements(turn, place, turns) {
  const title = turns.length > 1 ? `Message ${place + 1} of ${turns.length}` : "What was asked";
  return [
    make("h2", {}, title), make("pre", { class: "asked", tabindex: 0 }, turn.text), viewer(turn.pictures),
    make("h2", {}, turns.length > 1 ? `Answer ${place + 1} of ${turns.length}` : "The answer"), make("pre", { class: "answer" }, turn.answer || "(no text)"),
  ];
}
function showProgress() {
  const done = finishedCount();
  Object.assign(byId("progress"), { max: PACKET.items.length, value: done });
  byId("count").textContent = `answer ${state.at + 1} of ${PACKET.items.length}, ${done} finished`;
}
function show(top = true) {
  const item = current();
  const record = recordOf(item);
  byId("item").replaceChildren(
    make("section", { "aria-label": "Case" }, ...item.turns.flatMap((turn, place) => turnElements(turn, place, item.turns))),
    ratingElement(item, record));
  showReference();
  showProgress();
  if (!top) return mark(marked, false);
  window.scrollTo(0, 0);
  const open = PACKET.axes.findIndex((axis) => !judged(record, axis.name));
  return mark(Math.max(0, open), false);
}
function go(step) {
  state.at = Math.max(0, Math.min(PACKET.items.length - 1, state.at + step));
  keep();
  show();
}
function toUnfinished() {
  const after = [...PACKET.items.keys()].map((step) => (state.at + step) % PACKET.items.length);
  state.at = after.find((place) => !finished(recordOf(PACKET.items[place]))) ?? state.at;
  show();
}
function showWho() {
  const role = make("select", { id: "role", "aria-label": "Your role" }, ...ROLES.map((name) => make("option", { value: name }, name || "your role")));
  role.value = state.role;
  role.addEventListener("change", () => {
    state.role = role.value;
    changed();
  });
  const years = make("input", { type: "number", id: "years", min: 0, max: 70, "aria-label": "Years in it", placeholder: "years" });
  if (state.years !== null) years.value = state.years;
  years.addEventListener("input", () => {
    state.years = years.value === "" ? null : Number(years.value);
    changed();
  });
  byId("who").replaceChildren(`${PACKET.rater}: `, role, years);
}

function onKey(event) {
  const typing = event.target.matches?.("textarea, select, input[type=number], input[type=range]");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const axis = PACKET.axes[marked];
  const key = event.key.toLowerCase();
  const digit = /^[0-9]$/.test(event.key) ? Number(event.key) : null;
  if (digit !== null && digit >= axis.lowest && digit <= axis.highest) judge(axis, digit);
  else if (key === "c") judge(axis, null);
  else if (key === "n") return go(1);
  else if (key === "p") return go(-1);
  else if (event.key === "[") return turnPicture(-1);
  else if (event.key === "]") return turnPicture(1);
  else return undefined;
  event.preventDefault();
  const checked = document.querySelector(`fieldset[data-axis="${CSS.escape(axis.name)}"] input[value="${digit ?? "none"}"]`);
  if (checked && !checked.disabled) checked.checked = true;
  return mark(marked + 1);
}

byId("save").addEventListener("click", save);
byId("export-json").addEventListener("click", () => exportAs("json"));
byId("export-csv").addEventListener("click", () => exportAs("csv"));
byId("clear").addEventListener("click", clear);
byId("resume").addEventListener("change", (event) => event.target.files[0] && resume(event.target.files[0]));
byId("next").addEventListener("click", () => go(1));
byId("previous").addEventListener("click", () => go(-1));
byId("open").addEventListener("click", toUnfinished);
document.addEventListener("keydown", onKey);
for (const name of ["keydown", "pointerdown", "pointermove", "wheel"]) document.addEventListener(name, () => (touched = Date.now()), { passive: true });
window.addEventListener("beforeunload", (event) => {
  if (unsaved) event.preventDefault();
});
// Time counts while the page is seen and somebody is there.
setInterval(() => {
  if (document.visibilityState !== "visible" || Date.now() - touched > IDLE_MS) return;
  recordOf(current()).seconds += 1;
  keep();
}, 1000);

recall();
showWho();
show();
