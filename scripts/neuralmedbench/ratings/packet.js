// The form that rates answers.
// an answer for an adjudicator names the axes to decide
const axesOf = (item) => PACKET.axes.filter((axis) => !item.axes || item.axes.includes(axis.name));
const judged = (record, name) => name in record.scores || record.cannot_judge.includes(name);
const allUnjudged = (item, record) => record.cannot || axesOf(item).every((axis) => record.cannot_judge.includes(axis.name));
const begun = (record) => Object.keys(record.scores).length + record.cannot_judge.length + Object.keys(record.errors).length > 0;
// true if the reference was already shown at another answer to the same case
const seenElsewhere = (item) => PACKET.items.some((other) => other !== item && other.group === item.group && recordOf(other).reference);
let marked = 0;

// ---- records and files --------------------------------------------------------------------------
const fresh = () => ({ scores: {}, cannot_judge: [], errors: {}, seconds: 0, revisions: 0, comment: "", cannot: false, reference: false, seen: false });
const finished = (item, record) => record.cannot || axesOf(item).every((axis) => judged(record, axis.name));
function statusOf(item, record) {
  if (allUnjudged(item, record)) return "cannot_judge";
  return begun(record) ? "rated" : "not_rated";
}
function exportedRating(item, record) {
  const status = statusOf(item, record);
  const rated = status === "rated";
  const errors = Object.entries(record.errors).map(([code, significant]) => ({ code, significant }));
  return {
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
const tableColumns = ["item_id", "position", "status", "axis", "value", "seconds_active", "revisions", "reference_shown", "reference_seen"];
// One line per value, without comments. An axis that cannot be judged has an empty value.
function tableRows(item) {
  const values = [
    ...Object.entries(item.scores),
    ...item.cannot_judge.map((name) => [name, ""]),
    ...item.errors.map((error) => [`error.${error.code}`, error.significant ? 2 : 1]),
  ];
  return (values.length ? values : [["", ""]]).map(([axis, value]) => [item.item_id, item.position, item.status, axis, value, item.seconds_active,
    item.revisions, item.reference_shown, item.reference_seen]);
}
function taken(entry, item) {
  const record = fresh();
  for (const axis of axesOf(item)) {
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
// the values of the raters between whom an adjudicator decides, without names
function givenElement(axis, ratings) {
  const given = (one) => (axis.name in one ? one[axis.name] ?? "cannot judge" : "not rated");
  return make("p", { class: "given" }, ratings.map((one, place) => `Rater ${String.fromCharCode(65 + place)}: ${given(one)}`).join(" · "));
}
function axisElement(axis, place, item, record) {
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
    item.ratings ? givenElement(axis, item.ratings) : "",
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
  marked = Math.max(0, Math.min(axesOf(current()).length - 1, place));
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
    place.append(make("div", { class: "reference" }, ...item.reference.map((line) => make("p", { dir: "auto" }, line))));
    return;
  }
  const first = axesOf(item).map((axis) => axis.name).filter((name) => PACKET.first_judgement.includes(name));
  const button = make("button", { type: "button", id: "reveal" }, first.length ? `Lock ${first.map(words).join(", ")} and show the reference` : "Show the reference");
  button.disabled = !first.every((name) => judged(record, name));
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
  const comment = make("textarea", { id: "comment", dir: "auto", maxlength: 2000, "aria-label": "Comment" });
  comment.value = record.comment;
  comment.addEventListener("input", () => {
    record.comment = comment.value;
    changed();
  });
  const lines = axesOf(item).map((axis, place) => axisElement(axis, place, item, record));
  // the reference follows the axes that are judged without it
  const last = axesOf(item).findLastIndex((axis) => PACKET.first_judgement.includes(axis.name));
  lines.splice(last + 1, 0, make("div", { id: "reference" }));
  return make("section", { "aria-label": "Rating" },
    item.ratings ? make("p", { id: "disagree" }, "The raters of this answer disagree here. Decide each line, and say why in the comment.") : "",
    make("label", {}, cannot, "I cannot judge this answer at all"),
    ...lines,
    PACKET.errors.length ? make("fieldset", { class: "errors" }, make("legend", {}, "Errors in the answer"), ...PACKET.errors.map((code) => errorElement(code, record))) : "",
    make("p", {}, "Comment (no details of patients):"), comment);
}

// ---- showing ------------------------------------------------------------------------------------
function turnElements(turn, place, turns) {
  const title = turns.length > 1 ? `Message ${place + 1} of ${turns.length}` : "What was asked";
  return [
    make("h2", {}, title), make("pre", { class: "asked", dir: "auto", tabindex: 0 }, turn.text), viewer(turn.pictures),
    make("h2", {}, turns.length > 1 ? `Answer ${place + 1} of ${turns.length}` : "The answer"), make("pre", { class: "answer", dir: "auto" }, turn.answer || "(no text)"),
  ];
}
function sections(item, record) {
  return [
    make("section", { "aria-label": "Case" }, ...item.turns.flatMap((turn, place) => turnElements(turn, place, item.turns))),
    ratingElement(item, record),
  ];
}
function shown(top) {
  showReference();
  const open = axesOf(current()).findIndex((axis) => !judged(recordOf(current()), axis.name));
  mark(top ? Math.max(0, open) : marked, false);
}
function key(event) {
  const axis = axesOf(current())[marked];
  const digit = /^[0-9]$/.test(event.key) ? Number(event.key) : null;
  if (digit !== null && digit >= axis.lowest && digit <= axis.highest) judge(axis, digit);
  else if (event.key.toLowerCase() === "c") judge(axis, null);
  else return false;
  const checked = document.querySelector(`fieldset[data-axis="${CSS.escape(axis.name)}"] input[value="${digit ?? "none"}"]`);
  if (checked && !checked.disabled) checked.checked = true;
  mark(marked + 1);
  return true;
}

start({
  name: "rating",
  noun: "answer",
  tableColumns,
  head: () => ({ rubric: PACKET.rubric }),
  fresh,
  finished,
  exported: exportedRating,
  taken,
  tableRows,
  left: (number) => `${number} answers are not finished; "Save progress to a file" keeps what is there.`,
  tick: (record) => (record.seconds += 1),
  sections,
  shown,
  key,
});
