// All numbers: the rows of a file inside this page, by topic and by words. Nothing is computed; at most MOST_ROWS rows are drawn.
const MOST_ROWS = 200;
const HIDDEN_COLUMNS = new Set(["in_reference_pool", "other_in_reference_pool", "few_patients", "cluster"]);
const numbers = document.getElementById("numbers-form");

// CSV as `files/tables.py` writes it: quotes double, and a cell may hold a line break.
function cellsOf(text) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\r?\n|$)/g)) {
    rows.at(-1).push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === "") break;
    if (end !== ",") rows.push([]);
  }
  return rows.filter((row) => row.length > 1);
}

if (numbers) {
  const files = new Map();
  const rowsOf = async (name) => {
    if (!files.has(name)) files.set(name, cellsOf(await unzipped(document.getElementById(`csv-${name}`).textContent).text()));
    return files.get(name);
  };
  const { table, topic, words: search } = numbers.elements;
  const listTopics = async () => {
    const [head, ...rows] = await rowsOf(table.value);
    const place = head.indexOf("topic");
    topic.replaceChildren(make("option", { value: "" }, "all"), ...[...new Set(rows.map((row) => row[place]))].map((name) => make("option", { value: name }, words(name))));
  };
  const draw = async () => {
    const [head, ...rows] = await rowsOf(table.value);
    const place = head.indexOf("topic");
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fitting = rows.filter((row) => (!topic.value || row[place] === topic.value) && wanted.every((word) => row.join(" ").toLowerCase().includes(word)));
    const shown = fitting.slice(0, MOST_ROWS);
    // a column that is empty in all of these rows is left out
    const columns = head.map((_, column) => column).filter((column) => !HIDDEN_COLUMNS.has(head[column]) && shown.some((row) => row[column]));
    const line = (row) => make("tr", {}, ...columns.map((column) => free("td", {}, row[column])));
    const heads = make("tr", {}, ...columns.map((column) => make("th", { scope: "col" }, words(head[column]))));
    const caption = make("caption", { class: "hidden" }, `Rows of ${table.value}.csv`);
    document.getElementById("numbers-table").replaceChildren(make("table", {}, caption, make("thead", {}, heads), make("tbody", {}, ...shown.map(line))));
    document.getElementById("numbers-count").textContent = `${fitting.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows${fitting.length > MOST_ROWS ? `, the first ${MOST_ROWS} shown` : ""}`;
    reach(numbers.parentElement);
  };
  table.addEventListener("change", async () => { await listTopics(); await draw(); });
  topic.addEventListener("change", draw);
  search.addEventListener("input", draw);
  numbers.addEventListener("submit", (event) => event.preventDefault());
  // the files are unpacked once the block is near the window
  new IntersectionObserver(async ([entry], observer) => {
    if (!entry.isIntersecting) return;
    observer.disconnect();
    numbers.hidden = false;
    await listTopics();
    await draw();
  }, { rootMargin: "400px" }).observe(document.getElementById("numbers"));
}
