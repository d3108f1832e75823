// One choice of models for the whole page: rows of tables, marks of figures and columns of cases carry the names of their models.
const MOST_MARKED = 4;
const models = {
  names: [...document.querySelectorAll("#models li")].map((line) => line.dataset.pick),
  shown: new Set(),
  marked: new Set(),
  title: (name) => document.querySelector(`#models li[data-pick="${CSS.escape(name)}"] .title`)?.textContent ?? name,
  mark: (name) => document.querySelector(`#models li[data-pick="${CSS.escape(name)}"] svg`)?.cloneNode(true) ?? "",
  // at most four side by side: the highlighted ones, else the first of those that are shown
  beside(some) {
    // a model of the cases that the picker does not list cannot be hidden
    const listed = [...this.names.filter((name) => some.includes(name) && this.shown.has(name)), ...some.filter((name) => !this.names.includes(name))];
    const first = listed.filter((name) => this.marked.has(name));
    const columns = (first.length ? first : listed).slice(0, MOST_MARKED);
    return [columns, listed.filter((name) => !columns.includes(name))];
  },
};
// looked for at each choice: a packed table may have been opened since
function carriers() {
  for (const cell of document.querySelectorAll("th[data-model]")) cell.closest("tr").dataset.model ??= cell.dataset.model;
  return [...document.querySelectorAll("main tr[data-model], main svg [data-model], main .of-model[data-model]")].map((element) => [element, element.dataset.model.split(" ")]);
}

function showModels() {
  const named = (name) => address.get(name).split(",").filter((one) => models.names.includes(one));
  models.shown = new Set(named("show").length ? named("show") : models.names);
  models.marked = new Set(named("mark").filter((name) => models.shown.has(name)).slice(0, MOST_MARKED));
  // the best constant answer can be hidden too, and is no model
  const some = models.names.filter((name) => !document.querySelector(`#models li[data-pick="${CSS.escape(name)}"]`).matches("[data-reference]"));
  const [all, left] = [some.length, some.filter((name) => models.shown.has(name)).length];
  for (const [element, names] of carriers()) {
    const known = models.marked.size > 0 && names.some((name) => models.names.includes(name));
    element.classList.toggle("off", names.some((name) => models.names.includes(name) && !models.shown.has(name)));
    element.classList.toggle("marked", known && names.some((name) => models.marked.has(name)));
    element.classList.toggle("dimmed", known && !names.some((name) => models.marked.has(name)));
  }
  for (const line of document.querySelectorAll("#models li")) {
    const [show, mark] = line.querySelectorAll("input");
    show.checked = models.shown.has(line.dataset.pick);
    mark.checked = models.marked.has(line.dataset.pick);
    mark.disabled = !mark.checked && (models.marked.size >= MOST_MARKED || !show.checked);
  }
  document.getElementById("pick").textContent = `Models: ${left === all ? "all" : `${left} of ${all}`}${models.marked.size ? `, ${models.marked.size} highlighted` : ""}`;
  const note = document.getElementById("hidden-models");
  note.hidden = models.shown.size === models.names.length;
  note.firstElementChild.textContent = `${left === all ? "The best constant answer is" : `${all - left} of ${all} models are`} hidden on this page. Numbers, ranks and sentences are still those of the whole run.`;
}

function chooseModels(shown, marked) {
  const list = (some, but) => (some.length === but ? "" : some.join(","));
  address.set({ show: list(shown, models.names.length), mark: list(marked, 0) });
  showModels();
  document.dispatchEvent(new Event("models"));
}

const picker = document.getElementById("models");
if (models.names.length > 1) {
  document.getElementById("pick").hidden = false;
  picker.addEventListener("change", () => {
    const ticked = (name) => [...picker.querySelectorAll(`input[name=${name}]:checked`)].map((box) => box.closest("li").dataset.pick);
    const shown = ticked("show");
    chooseModels(shown.length ? shown : models.names, ticked("mark").filter((name) => shown.includes(name)));
  });
  for (const button of document.querySelectorAll("[data-all-models]")) button.addEventListener("click", () => chooseModels(models.names, []));
  document.getElementById("marked-only").addEventListener("click", () => chooseModels(models.marked.size ? [...models.marked] : models.names, [...models.marked]));
  document.addEventListener("unpacked", showModels);
  showModels();
}
