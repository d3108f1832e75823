// Reading aids: theme, menu, place on the page, deep links and paper. Nothing is kept and nothing is sent.
const darkRule = [...document.styleSheets[0].cssRules].find((rule) => rule.media?.mediaText.includes("prefers-color-scheme"));
const themeButton = document.getElementById("theme");
if (darkRule) {
  let dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const name = () => { themeButton.textContent = dark ? "Light" : "Dark"; };
  name();
  themeButton.hidden = false;
  themeButton.addEventListener("click", () => {
    dark = !dark;
    darkRule.media.mediaText = dark ? "screen" : "not all";
    name();
  });
}

// On a narrow page the contents open over it, and close when a block is chosen.
const contents = document.getElementById("contents");
contents.addEventListener("click", (event) => event.target.closest("a") && contents.matches(":popover-open") && contents.hidePopover());

// The block that crosses the upper third of the window is where the reader is.
const sections = new IntersectionObserver((entries) => {
  const entry = entries.findLast((one) => one.isIntersecting);
  if (!entry) return;
  for (const link of document.querySelectorAll("#contents a")) {
    link.removeAttribute("aria-current");
    if (link.hash !== `#${entry.target.id}`) continue;
    link.setAttribute("aria-current", "true");
    document.getElementById("here").textContent = link.firstChild.textContent;
    if (contents.scrollHeight > contents.clientHeight) link.scrollIntoView({ block: "nearest" });
  }
}, { rootMargin: "-30% 0px -65% 0px" });
for (const section of document.querySelectorAll("main section")) sections.observe(section);

// A link to a case, or to something folded, opens it; a link with choices applies them.
function openTarget() {
  const target = document.getElementById(address.anchor);
  if (!target) return;
  target.hidden = false;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (target.closest("details") || location.hash.includes("?")) target.scrollIntoView();
}
addEventListener("hashchange", () => {
  const before = address.chosen.toString();
  address.read();
  if (before !== address.chosen.toString()) {
    if (models.names.length > 1) showModels();
    document.dispatchEvent(new Event("models"));
    if (form) restoreChoices();
  }
  openTarget();
});
openTarget();

// Words of the glossary are marked where they first stand in a block; hover, focus or touch shows what they mean.
const tip = document.getElementById("tip");
const entries = [...document.querySelectorAll("#page-glossary + dl dt")].map((dt) => ({ id: dt.id, forms: dt.dataset.forms.split("|"), means: dt.nextElementSibling.textContent }));
const wordOf = new Map(entries.flatMap((entry) => entry.forms.map((one) => [one.toLowerCase(), entry])));
const escaped = [...wordOf.keys()].sort((a, b) => b.length - a.length).map((one) => one.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
const pattern = new RegExp(`(?<![\\p{L}\\p{N}_@-])(${escaped.join("|")})(?![\\p{L}\\p{N}_@-])`, "giu");
const MARKED = ".takeaway, .how p, .note, caption, figcaption, .verdict li, .card-note, .card-sub, p.empty, .lede";
function markTerms(block) {
  const seen = new Set();
  const texts = [...block.querySelectorAll(MARKED)].flatMap((element) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) if (!walker.currentNode.parentElement.closest("a, button, code, summary, .case-body, .term")) found.push(walker.currentNode);
    return found;
  });
  for (const text of texts) {
    const parts = [];
    let end = 0;
    for (const match of text.data.matchAll(pattern)) {
      const entry = wordOf.get(match[0].toLowerCase());
      if (seen.has(entry)) continue;
      seen.add(entry);
      const link = document.createElement("a");
      link.href = `#${entry.id}`;
      link.className = "term";
      link.textContent = match[0];
      parts.push(text.data.slice(end, match.index), link);
      end = match.index + match[0].length;
    }
    if (parts.length) text.replaceWith(...parts, text.data.slice(end));
  }
  for (const button of block.querySelectorAll("thead button")) if (wordOf.has(button.textContent.trim().toLowerCase())) button.classList.add("term");
}
for (const block of document.querySelectorAll("main section, header.top")) markTerms(block);

let [closing, tipOf] = [0, null];
function placeTip() {
  if (!tipOf) return;
  const at = tipOf.getBoundingClientRect();
  if (at.bottom < 0 || at.top > innerHeight) return hideTip();
  tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${at.bottom + tip.offsetHeight + 8 < innerHeight ? at.bottom + 4 : at.top - tip.offsetHeight - 4}px`;
}
function showTip(term) {
  clearTimeout(closing);
  hideTip();
  tipOf = term;
  tip.textContent = wordOf.get(term.textContent.trim().toLowerCase()).means;
  tip.showPopover();
  term.setAttribute("aria-describedby", "tip");
  requestAnimationFrame(placeTip);
}
const hideTip = () => {
  if (!tipOf) return;
  tip.hidePopover();
  tipOf.removeAttribute("aria-describedby");
  tipOf = null;
};
if (tip.showPopover) {
  for (const [event, on] of [["pointerover", true], ["focusin", true], ["pointerout", false], ["focusout", false]]) {
    document.addEventListener(event, ({ target, pointerType }) => {
      const term = target.closest?.(".term");
      if (term && on && pointerType !== "touch") showTip(term);
      else if (on && target.closest?.("#tip")) clearTimeout(closing);
      else if (!on && target.closest?.(".term, #tip")) closing = setTimeout(hideTip, 200);
    });
  }
  document.addEventListener("click", (event) => {
    const term = event.target.closest(".term");
    if (!term) return hideTip();
    if (event.pointerType !== "touch") return;
    if (term.matches("a")) event.preventDefault();
    showTip(term);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !tipOf) return;
    hideTip();
    event.preventDefault();
  }, true);
  addEventListener("scroll", placeTip, { passive: true });
}

// What is longer or wider than its box is scrolled with the keyboard too.
let regions = 0;
const nameOf = (box) => {
  regions += 1;
  const title = box.querySelector("caption")?.textContent ?? box.closest("figure")?.querySelector("figcaption")?.textContent ?? "text";
  return `scrolls, ${regions}: ${title.trim().slice(0, 80)}`;
};
const reach = (root) => {
  // what is folded, or far from the window, is measured when it is shown, and all sizes are read before an attribute is set: each would cost a layout of its own
  const boxes = [...root.querySelectorAll(".scroll, pre")].filter((box) => box.checkVisibility?.({ contentVisibilityAuto: true }) ?? true);
  const cut = boxes.map((box) => box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1);
  boxes.forEach((box, place) => {
    if (!cut[place]) for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
    else if (box.tabIndex < 0) {
      box.tabIndex = 0;
      if (box.matches("pre")) return;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", nameOf(box));
    }
  });
};
document.addEventListener("toggle", ({ target }) => {
  if (!target.open) return;
  if (target.matches(".table")) unpackTable(target).then(() => { markTerms(target); reach(target); });
  requestAnimationFrame(() => reach(target));
  if (target.matches(".case")) address.go(target.id);
}, true);
document.addEventListener("contentvisibilityautostatechange", ({ target, skipped }) => skipped || reach(target), true);
addEventListener("resize", () => reach(document));
// a browser without that event lays out everything at once
if (!("ContentVisibilityAutoStateChangeEvent" in window)) reach(document);

let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll("details[data-print]:not([open])")];
  for (const one of unfolded) one.open = true;
});
addEventListener("afterprint", () => unfolded.forEach((one) => { one.open = false; }));
