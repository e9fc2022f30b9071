"use strict";
// `window.explorerReady` is kept once the questions can be looked at.
window.explorerReady = (async () => {
  for (const choice of document.querySelectorAll(".choice input")) {
    choice.addEventListener("change", () => { choice.closest(".heat").dataset.shown = choice.value; });
  }

  async function unpacked() {
    const bytes = Uint8Array.from(atob(document.getElementById("explorer-data").textContent), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  }

  if (!("DecompressionStream" in window)) {
    document.getElementById("found").textContent = "This browser is too old to unpack the questions; outcomes.jsonl has them.";
    return;
  }
  const data = await unpacked();
  const PAGE = 40;
  const ANY = "";
  const filters = document.getElementById("filters");
  const list = document.getElementById("list");
  const more = document.getElementById("more");
  const fields = filters.elements;
  let matching = [];

  // Text goes into the page as text nodes alone, so that nothing in a data set can become markup.
  function element(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children.filter((child) => child !== null && child !== ""));
    return made;
  }

  function fill(select, values, any) {
    select.replaceChildren(new Option(any, ANY), ...values.map((value) => new Option(value, value)));
  }

  const used = (field) => [...new Set(data.rows.map((row) => row[field]))];

  function fillValues() {
    const axis = data.axes.find((each) => each.axis === fields.axis.value);
    fill(fields.value, axis ? axis.values : [], "all");
    fields.value.disabled = !axis;
  }

  function matches(row) {
    const { system, language, result, axis, value, text } = fields;
    if (system.value && row.system !== system.value) return false;
    if (language.value && row.language !== language.value) return false;
    if (result.value && row.result !== result.value) return false;
    if (value.value && row.axes[axis.value] !== value.value) return false;
    const wanted = text.value.trim().toLowerCase();
    const places = [row.text, ...row.references, ...(row.answer === null ? [] : [row.answer])];
    return !wanted || places.some((place) => data.texts[place].toLowerCase().includes(wanted));
  }

  function search() {
    matching = data.rows.filter(matches);
    list.replaceChildren();
    document.getElementById("found").textContent = `${matching.length} of ${data.rows.length} rows`;
    showMore();
  }

  function showMore() {
    const start = list.children.length;
    list.append(...matching.slice(start, start + PAGE).map(entry));
    more.hidden = list.children.length >= matching.length;
  }

  function entry(row, index) {
    const id = `detail-${list.children.length + index}`;
    const button = element("button", "question",
      element("span", `tag part ${row.result.replace(" ", "-")}`, row.result),
      element("span", "", data.texts[row.text]),
      element("small", "", [row.system, row.language, `dialogue ${row.dialogue}`, row.question, row.axes.semantic || ""].filter(Boolean).join(" · ")));
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    button.setAttribute("aria-controls", id);
    const panel = element("div", "detail");
    panel.id = id;
    panel.hidden = true;
    button.addEventListener("click", () => {
      if (!panel.children.length) panel.append(...detail(row));
      panel.hidden = !panel.hidden;
      button.setAttribute("aria-expanded", String(!panel.hidden));
    });
    return element("li", "", button, panel);
  }

  function part(heading, ...texts) {
    return element("div", "", element("h4", "", heading), ...texts.map((text) => element("p", "", text)));
  }

  function detail(row) {
    const answer = row.answer === null ? "no answer" : data.texts[row.answer] || "(empty)";
    const pair = element("div", "pair",
      part(row.references.length > 1 ? "Right answers" : "Right answer", ...row.references.map((place) => data.texts[place])),
      part(row.abstained ? "Answer (abstained)" : "Answer", answer),
      part("Asked on", row.date ? moment(row.date) : "no date"),
      part("Evidence", evidence(row)),
      part("Verdict", verdict(row)),
      part("Scores", scores(row)),
      part("Slices", data.axes.filter(({ axis }) => axis in row.axes).map(({ axis, title }) => `${title}: ${row.axes[axis]}`).join("\n") || "none"));
    return [pair, memories(row)];
  }

  // As written, with its own offset: never in this browser's zone.
  function moment(iso) {
    const [date, time] = iso.split("T");
    const weekday = new Date(`${date}T00:00:00Z`).toLocaleDateString("en", { weekday: "long", timeZone: "UTC" });
    const offset = time.replace(/^[\d:.]+/, "").replace(/^(Z|\+00:00)$/, "UTC");
    return `${weekday}, ${date} ${time.slice(0, 5)} ${offset}`.trim();
  }

  function evidence(row) {
    const named = [row.evidence_sessions.join(", "), row.evidence_turns.join(", ")].filter(Boolean).join(" · turns ") || "unknown";
    const known = row.failed_evidence.length ? `${named}\nthe system failed to store ${row.failed_evidence.join(", ")}` : named;
    return row.abstention ? `${known} (nearest topic: the dialogue holds no answer)` : known;
  }

  function verdict(row) {
    const label = row.verdict === null ? row.result : `${row.verdict} (${row.result})`;
    return [label, row.note, row.reason, row.detail].filter(Boolean).join("\n");
  }

  function scores(row) {
    const shown = (value) => (value === null ? "–" : (100 * value).toFixed(1));
    return `F1 ${shown(row.f1)}\nrecall by session ${shown(row.recall)}`;
  }

  function memories(row) {
    const heading = row.memories.length ? `Memories retrieved (${row.memories.length})` : "No memories kept for this row";
    return element("div", "", element("h4", "", heading), element("ol", "memories", ...row.memories.map(memory)));
  }

  function memory(found) {
    const hit = { turn: "evidence", session: "session of the evidence" }[found.hit] || "";
    const cut = found.cut ? ` … (${found.cut} more characters in outcomes.jsonl)` : "";
    return element("li", found.hit ? "hit" : "",
      element("small", "",
        element("span", "", `#${found.rank}`),
        hit && element("span", "found", `✓ ${hit}`),
        element("span", "", found.kind),
        element("span", "", found.sources.join(", ") || "no sources"),
        found.time && element("span", "", moment(found.time)),
        found.score === null ? null : element("span", "", `score ${found.score.toPrecision(3)}`)),
      element("p", "", data.texts[found.text] + cut));
  }

  fill(fields.system, used("system"), "all");
  fill(fields.language, used("language"), "all");
  fill(fields.result, data.results.filter((name) => data.rows.some((row) => row.result === name)), "all");
  fields.axis.replaceChildren(new Option("all", ANY), ...data.axes.map(({ axis, title }) => new Option(title, axis)));
  if (data.axes.some(({ axis }) => axis === "semantic")) fields.axis.value = "semantic";
  fillValues();
  fields.axis.addEventListener("change", fillValues);
  filters.addEventListener("input", search);
  filters.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", showMore);
  filters.hidden = false;
  search();
})();
