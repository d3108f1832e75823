"use strict";
// Shared by the pages of all packets: pictures, navigation, time, progress and files. The script of a packet's form follows this one and
// ends with start(form). Every text of the packet and of a file enters the page as a text node, never as HTML.
//
// A form has: name (rating, answers), noun (of one item on the screen), tableColumns, head() (its own keys of an export), fresh(item)
// (an empty record), finished(item, record), exported(item, record), taken(entry, item) (the record of an exported entry), tableRows(entry),
// left(number) (message when so many are not finished), tick(record) (called every second), sections(item, record) (content of the screen),
// shown(top) (called after it is displayed) and key(event) (true if it handled the key).
const PACKET = JSON.parse(document.getElementById("packet").textContent);
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

let FORM = null;
let state = { role: "", years: null, started: now(), at: 0, records: {} };
let unsaved = false;
let keeping = true;
let touched = Date.now();

const current = () => PACKET.items[state.at];
const recordOf = (item) => (state.records[item.item_id] ??= FORM.fresh(item));
const isFinished = (item) => FORM.finished(item, recordOf(item));
const finishedCount = () => PACKET.items.filter(isFinished).length;
const keptAs = () => `neuralmedbench.${FORM.name}/${PACKET.packet_id}`;

// ---- keeping ------------------------------------------------------------------------------------
function say(text) {
  byId("said").textContent = text;
}
function keep() {
  if (!keeping) return;
  try {
    localStorage.setItem(keptAs(), JSON.stringify(state));
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
    const text = localStorage.getItem(keptAs());
    if (text) state = { ...state, ...JSON.parse(text) };
  } catch {
    say("What this browser kept cannot be read: resume from your file.");
  }
  if (!PACKET.items[state.at]) state.at = 0;
}

// ---- files --------------------------------------------------------------------------------------
function exported(complete) {
  return {
    schema: `neuralmedbench.${FORM.name}/1`,
    packet_id: PACKET.packet_id,
    packet_sha256: PACKET.packet_sha256,
    ...FORM.head(),
    // a browser driven by a program: its ratings are not those of a clinician
    rater: { id: PACKET.rater, role: state.role, years: state.years, simulated: navigator.webdriver === true },
    started: state.started,
    exported: now(),
    complete,
    items: PACKET.items.map((item, place) => ({ item_id: item.item_id, position: place + 1, ...FORM.exported(item, recordOf(item)) })),
  };
}
// Long format: every line repeats the columns of the whole file.
function asCsv(whole) {
  const { rater, items, ...said } = whole;
  const own = FORM.head();
  const first = ["schema", "packet_id", "packet_sha256", ...Object.keys(own)];
  const last = ["started", "exported", "complete"];
  const head = [...first.map((name) => said[name]), rater.id, rater.role, rater.years ?? "", rater.simulated, ...last.map((name) => said[name])];
  const lines = [[...first, "rater_id", "role", "years", "simulated", ...last, ...FORM.tableColumns]];
  for (const entry of items) for (const row of FORM.tableRows(entry)) lines.push([...head, ...row]);
  return lines.map((line) => line.map(cell).join(",")).join("\n") + "\n";
}
// A cell that a spreadsheet would read as a formula gets a prefix.
function cell(value) {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
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
  if (left) return say(FORM.left(left));
  const whole = exported(true);
  const text = ending === "csv" ? asCsv(whole) : JSON.stringify(whole, null, 1);
  download(fileName(FORM.name, whole, ending), ending === "csv" ? "text/csv" : "application/json", text);
  if (ending === "json") unsaved = false;
  return say("");
}
async function resume(file) {
  const known = new Map(PACKET.items.map((item) => [item.item_id, item]));
  let whole, records;
  try {
    whole = JSON.parse(await file.text());
    if (whole.packet_id !== PACKET.packet_id || whole.packet_sha256 !== PACKET.packet_sha256) return say("This file belongs to another packet.");
    const own = whole.items.filter((entry) => known.has(entry.item_id));
    records = Object.fromEntries(own.map((entry) => [entry.item_id, FORM.taken(entry, known.get(entry.item_id))]));
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
    localStorage.removeItem(keptAs());
  } catch {
    // nothing was stored
  }
  state = { role: "", years: null, started: now(), at: 0, records: {} };
  [unsaved, keeping] = [false, false];
  byId("kept").textContent = "";
  showWho();
  show();
  say("This browser keeps nothing of this packet any more.");
}

// ---- showing ------------------------------------------------------------------------------------
let turnPicture = () => undefined;
function viewer(pictures) {
  if (!pictures.length) return "";
  let at = 0;
  const image = make("img", { alt: "" });
  const caption = make("figcaption", { dir: "auto" });
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
function showProgress() {
  const done = finishedCount();
  Object.assign(byId("progress"), { max: PACKET.items.length, value: done });
  byId("count").textContent = `${FORM.noun} ${state.at + 1} of ${PACKET.items.length}, ${done} finished`;
}
function show(top = true) {
  byId("item").replaceChildren(...FORM.sections(current(), recordOf(current())));
  showProgress();
  if (top) window.scrollTo(0, 0);
  FORM.shown(top);
}
function go(step) {
  state.at = Math.max(0, Math.min(PACKET.items.length - 1, state.at + step));
  keep();
  show();
}
function toUnfinished() {
  const after = [...PACKET.items.keys()].map((step) => (state.at + step) % PACKET.items.length);
  state.at = after.find((place) => !isFinished(PACKET.items[place])) ?? state.at;
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
  const typing = event.target.matches?.("textarea, select, input[type=text], input[type=number], input[type=range]");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return undefined;
  if (FORM.key(event)) return event.preventDefault();
  const key = event.key.toLowerCase();
  if (key === "n") return go(1);
  if (key === "p") return go(-1);
  if (key === "[") return turnPicture(-1);
  if (key === "]") return turnPicture(1);
  return undefined;
}
function start(form) {
  FORM = form;
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
  // Time counts while the page is visible and the rater is active.
  setInterval(() => {
    if (document.visibilityState !== "visible" || Date.now() - touched > IDLE_MS) return;
    FORM.tick(recordOf(current()));
    keep();
  }, 1000);
  recall();
  showWho();
  show();
}
