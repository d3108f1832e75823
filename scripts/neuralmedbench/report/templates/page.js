"use strict";
// What all parts share: text as nodes, the address, sorting, copying and files. Text from models enters the page as text nodes only.
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
// An answer or a context: each of its paragraphs has a direction of its own. One paragraph of a million characters (a model that repeats a
// word) takes Chromium 20 s to lay out so, and half a second with one direction for all.
const passage = (attributes, text) => {
  const element = free("pre", attributes, text);
  if (/[^\n]{20000}/.test(text)) element.style.unicodeBidi = "isolate";
  return element;
};

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
document.addEventListener("click", ({ target }) => target.closest("table.sortable thead button") && sortBy(target.closest("th")));

// On a phone, where a row of such a table is a list, each cell has its head.
for (const table of document.querySelectorAll("table.free")) {
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, place) => { cell.dataset.head = heads[place]; });
}

// The address: a block or a case, and what the reader chose, as in #cases?show=alpha,beta&sort=hardest. What stands behind # is sent to nobody.
const address = {
  anchor: "",
  chosen: new URLSearchParams(),
  read() {
    const [anchor, chosen] = location.hash.slice(1).split(/\?(.*)/s);
    this.anchor = anchor;
    if (chosen !== undefined) this.chosen = new URLSearchParams(chosen);
    else this.write();
  },
  get(name) { return this.chosen.get(name) ?? ""; },
  set(choices) {
    for (const [name, value] of Object.entries(choices)) {
      if (value) this.chosen.set(name, value);
      else this.chosen.delete(name);
    }
    this.write();
  },
  go(anchor) { this.anchor = anchor; this.write(); },
  hash(anchor = this.anchor) {
    const chosen = this.chosen.toString().replaceAll("%2C", ",");
    return `#${anchor}${chosen && `?${chosen}`}`;
  },
  write() { if (location.hash !== this.hash() && (location.hash || this.hash() !== "#")) history.replaceState(null, "", this.hash()); },
};
address.read();

function copyOn(button, text) {
  if (!navigator.clipboard) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text());
    const name = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = name; }, 2000);
  });
}
for (const button of document.querySelectorAll("button[data-copies]")) copyOn(button, () => document.getElementById(button.dataset.copies).textContent);
for (const button of document.querySelectorAll("button[data-block]")) copyOn(button, () => location.href.split("#")[0] + address.hash(button.dataset.block));

// gzip in base64, as `report/cases.py` packs it
const unzipped = (packed) => {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
};

// A folded table of very many rows is packed until it is opened; its HTML was escaped when the page was made.
async function unpackTable(fold) {
  const packed = fold?.querySelector(":scope > .packed");
  if (!packed) return;
  packed.remove();
  fold.insertAdjacentHTML("beforeend", await unzipped(packed.textContent).text());
  document.dispatchEvent(new Event("unpacked"));
}

// Tables and figures are files inside this one: their names become buttons that save them.
const drawing = (name) => `${new XMLSerializer().serializeToString(document.querySelector(`figure.${CSS.escape(name)} svg`))}\n`;
for (const name of document.querySelectorAll("code[data-csv], code[data-svg]")) {
  const { csv, svg } = name.dataset;
  const button = make("button", { type: "button", class: "save", title: "Save this file", ...name.dataset.csv ? { "data-csv": csv } : { "data-svg": svg } }, name.textContent);
  button.addEventListener("click", async () => {
    const blob = csv ? await unzipped(document.getElementById(`csv-${csv}`).textContent).blob() : new Blob([drawing(svg)], { type: "image/svg+xml" });
    const link = make("a", { href: URL.createObjectURL(blob), download: name.textContent });
    link.click();
    URL.revokeObjectURL(link.href);
  });
  name.replaceWith(button);
}
