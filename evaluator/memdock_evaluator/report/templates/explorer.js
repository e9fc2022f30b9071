// The explorer: filters, the list of rows, and the page's address, which keeps both.
// `window.explorerReady` is kept once the questions, and what was opened last, can be looked at.
window.explorerReady = (async () => {
  for (const other of document.querySelectorAll("a.other")) {
    other.addEventListener("click", () => { other.hash = location.hash; });
  }
  const PAGE = 40, ANY = "", VIEW = "#questions?";
  const form = document.getElementById("filters");
  const found = document.getElementById("found");
  const list = document.getElementById("list");
  const more = document.getElementById("more");
  if (!("DecompressionStream" in window)) {
    form.before(element("p", "note", t("This browser is too old to unpack the questions; outcomes.jsonl has them.")));
    return;
  }
  const data = await unpackedIndex();
  let matching = [], pending = null;
  const TESTS = new Map();

  function addFilter(place, name, title, values, valueOf) {
    const select = element("select", "", new Option(t("all"), ANY), ...values.map(([value, shown]) => new Option(shown, value)));
    select.name = name;
    place.append(element("label", "", title, select));
    TESTS.set(select, (row) => select.value === ANY || valueOf(row) === select.value);
  }

  function addFilters() {
    const main = document.getElementById("main-filters"), others = document.getElementById("axis-filters");
    addFilter(main, "system", t("System"), data.systems, (row) => row.system);
    addFilter(main, "language", t("Language"), data.languages, (row) => row.language);
    addFilter(main, "result", t("Outcome"), data.results, (row) => row.result);
    for (const { axis, title, values } of data.axes) {
      addFilter(axis === "semantic" ? main : others, `axis:${axis}`, title, values, (row) => row.axes[axis]);
    }
    others.closest("details").hidden = !others.children.length;
    const text = form.elements.text;
    main.append(text.closest("label"));
    TESTS.set(text, (row) => {
      const wanted = text.value.trim().toLowerCase();
      const places = [row.text, ...row.references, ...(row.answer === null ? [] : [row.answer])];
      return !wanted || places.some((place) => data.texts[place].toLowerCase().includes(wanted));
    });
  }

  function search() {
    const tests = [...TESTS.values()];
    matching = data.rows.filter((row) => tests.every((test) => test(row)));
    list.replaceChildren();
    found.textContent = tn("{n} of {all} row", "{n} of {all} rows", matching.length, { all: data.rows.length });
    showMore();
  }

  function showMore() {
    const start = list.children.length;
    list.append(...matching.slice(start, start + PAGE).map((row, index) => entry(row, start + index)));
    more.hidden = list.children.length >= matching.length;
  }

  function entry(row, place) {
    const facts = [nameOf(data.systems, row.system), nameOf(data.languages, row.language), t("dialogue {name}", { name: row.dialogue }),
      row.question, repeatOf(data, row), "semantic" in row.axes ? nameOf(data.axes.find(({ axis }) => axis === "semantic").values, row.axes.semantic) : ""];
    const button = element("button", "question",
      element("span", `tag part ${row.result.replace(" ", "-")}`, nameOf(data.results, row.result)),
      ...spoken(row.language, element("span", "", data.texts[row.text])),
      element("small", "", facts.filter(Boolean).join(" · ")));
    const panel = element("div", "detail");
    panel.id = `detail-${place}`;
    panel.hidden = true;
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    button.setAttribute("aria-controls", panel.id);
    button.addEventListener("click", () => { toggle(row, button, panel); keep(); });
    const item = element("li", "", element("h3", "", button), panel);
    item.dataset.key = keyOf(row);
    return item;
  }

  function toggle(row, button, panel, open = panel.hidden) {
    panel.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    if (open && !panel.children.length) window.explorerReady = pending = fill(row, panel);
  }

  async function fill(row, panel) {
    await loadDetails(data, row);
    if (!panel.children.length) panel.append(...detail(data, row));
  }

  // The address holds what is filtered by, and the last row of the list that is open.
  function keep() {
    const view = new URLSearchParams();
    for (const field of TESTS.keys()) if (field.value !== ANY) view.set(field.name, field.value);
    const open = [...list.children].findLastIndex((item) => !item.querySelector(".detail").hidden);
    if (open >= 0) view.set("open", keyOf(matching[open]));
    if (view.size || location.hash.startsWith(VIEW)) history.replaceState(null, "", view.size ? VIEW + view : "#questions");
  }

  function restore() {
    if (!location.hash.startsWith(VIEW)) return false;
    const view = new URLSearchParams(location.hash.slice(VIEW.length));
    form.reset();
    for (const field of TESTS.keys()) if (view.has(field.name)) field.value = view.get(field.name);
    const axes = document.getElementById("axis-filters");
    if ([...axes.querySelectorAll("select")].some((select) => select.value !== ANY)) axes.closest("details").open = true;
    search();
    show(view.get("open"));
    return true;
  }

  function show(key) {
    const place = matching.findIndex((row) => keyOf(row) === key);
    if (place < 0) {
      document.getElementById("questions").scrollIntoView();
      return;
    }
    while (list.children.length <= place) showMore();
    const button = list.children[place].querySelector(".question");
    toggle(matching[place], button, list.children[place].querySelector(".detail"), true);
    button.focus();
    button.scrollIntoView();
  }

  function move(event) {
    const buttons = [...list.querySelectorAll(".question")];
    const item = event.target.closest("#list > li");
    const here = item ? buttons.indexOf(item.querySelector(".question")) : -1;
    if (event.key === "Escape" && item) {
      toggle(matching[here], buttons[here], item.querySelector(".detail"), false);
      keep();
      buttons[here].focus();
      return;
    }
    if (!event.target.matches(".question, [name=text]")) return;
    if (event.key === "ArrowDown" && here === buttons.length - 1 && !more.hidden) showMore();
    const next = { ArrowDown: here + 1, ArrowUp: here - 1, ...(item && { Home: 0, End: buttons.length - 1 }) }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    if (next < 0) form.elements.text.focus();
    else list.querySelectorAll(".question")[next]?.focus();
  }

  addFilters();
  form.addEventListener("input", () => { search(); keep(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("clear").addEventListener("click", () => { form.reset(); search(); keep(); });
  document.getElementById("questions").addEventListener("keydown", move);
  more.addEventListener("click", () => {
    const start = list.children.length;
    showMore();
    list.children[start].querySelector(".question").focus();
  });
  window.addEventListener("hashchange", restore);
  form.hidden = false;
  if (!restore()) search();
  return pending;
})();
