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

const menus = [...document.querySelectorAll("nav details")];
const closeMenus = (but) => menus.forEach((one) => { if (one !== but) one.open = false; });
document.addEventListener("click", (event) => closeMenus(event.target.closest("nav a") ? null : event.target.closest("nav details")));
document.addEventListener("keydown", (event) => {
  const open = event.key === "Escape" && menus.find((one) => one.open);
  if (!open) return;
  open.open = false;
  open.firstElementChild.focus();
});

// The block that crosses the upper third of the window is where the reader is.
const sections = new IntersectionObserver((entries) => {
  const entry = entries.findLast((one) => one.isIntersecting);
  if (!entry) return;
  for (const link of document.querySelectorAll("nav a")) {
    link.removeAttribute("aria-current");
    if (link.hash !== `#${entry.target.id}`) continue;
    link.setAttribute("aria-current", "true");
    document.getElementById("here").textContent = link.textContent;
  }
  for (const one of menus) one.classList.toggle("current", Boolean(one.querySelector("[aria-current]")));
}, { rootMargin: "-30% 0px -65% 0px" });
for (const section of document.querySelectorAll("main > section")) sections.observe(section);

// A link to a case, or to something folded, opens it.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  target.hidden = false;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (target.closest("details")) target.scrollIntoView();
}
addEventListener("hashchange", openTarget);
openTarget();

// What is longer or wider than its box is scrolled with the keyboard too.
const reach = (root) => {
  // what is folded is measured when it is opened, and all sizes are read before an attribute is set: each would cost a layout of its own
  const boxes = [...root.querySelectorAll(".scroll, pre")].filter((box) => box.checkVisibility?.() ?? true);
  const cut = boxes.map((box) => box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1);
  boxes.forEach((box, place) => {
    if (cut[place]) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  });
};
document.addEventListener("toggle", ({ target }) => {
  if (!target.open) return;
  requestAnimationFrame(() => reach(target));
  if (target.matches(".case")) history.replaceState(null, "", `#${target.id}`);
}, true);
addEventListener("resize", () => reach(document));
reach(document);

let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll("details[data-print]:not([open])")];
  for (const one of unfolded) one.open = true;
});
addEventListener("afterprint", () => unfolded.forEach((one) => { one.open = false; }));
