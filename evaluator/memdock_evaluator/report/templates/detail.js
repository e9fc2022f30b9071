// One row of the explorer, opened. Text goes into the page as text nodes alone, so that nothing in a data set can become
// markup; what the data says is in the language of its dialogue.
function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

function spoken(language, ...made) {
  for (const each of made) each.lang = language;
  return made;
}

function block(heading, ...children) {
  return element("div", "", element("h4", "", heading), ...children);
}

function paragraphs(...texts) {
  return texts.filter(Boolean).map((text) => element("p", "", text));
}

function detail(data, row) {
  const said = (place) => data.texts[place];
  const quoted = (...texts) => spoken(row.language, ...paragraphs(...texts));
  const answer = row.answer === null ? paragraphs(t("no answer"))
    : said(row.answer) ? quoted(said(row.answer)) : paragraphs(t("(empty)"));
  return [
    element("div", "pair",
      block(row.references.length > 1 ? t("Right answers") : t("Right answer"), ...quoted(...row.references.map(said))),
      block(row.abstained ? t("Answer (abstained)") : t("Answer"), ...answer),
      block(t("Asked on"), ...paragraphs(row.date ? moment(row.date) : t("no date"))),
      ...(repeatOf(data, row) ? [block(t("Repeat"), ...paragraphs(repeatOf(data, row)))] : []),
      block(row.verdicts.length > 1 ? t("Verdicts") : t("Verdict"), ...verdicts(data, row)),
      block(t("Scores"), scores(row)),
      block(t("Slices"), pairs(data.axes.filter(({ axis }) => axis in row.axes).map((axis) => [axis.title, nameOf(axis.values, row.axes[axis.axis])])))),
    block(t("Evidence"), ...evidence(data, row)),
    memories(data, row),
    element("p", "", link(row)),
  ];
}

// Which of its repeats a row is, of those that the run has several of.
function repeatOf({ repeats }, { repeat, ingest, judging }) {
  return [
    repeats.repeat ? t("repeat {n}", { n: repeat + 1 }) : "",
    repeats.ingest ? t("ingest {n}", { n: ingest + 1 }) : "",
    repeats.judging ? t("judging {n}", { n: judging + 1 }) : "",
  ].filter(Boolean).join(", ");
}

function nameOf(values, value) {
  return values.find(([each]) => each === value)?.[1] ?? value;
}

function pairs(found) {
  return element("dl", "pairs", ...found.flatMap(([name, value]) => [element("dt", "", name), element("dd", "", value)]));
}

function verdicts(data, row) {
  const result = nameOf(data.results, row.result);
  const lines = row.verdicts.flatMap(({ judge, label, note }, place) => {
    const means = place === 0 ? result : label === null ? t("unreadable") : label >= 2 ? t("right") : t("wrong");
    const shown = label === null ? means : t("{label} of 3: {meaning}", { label, meaning: means });
    return [element("p", "", judge ? element("strong", "", `${judge}: `) : "", shown), ...paragraphs(data.texts[note])];
  });
  // The words of an error are those of the program that had it.
  return [...lines, ...spoken("en", ...paragraphs(row.reason, row.detail))];
}

function scores(row) {
  const share = (value) => (value === null ? "–" : number(100 * value, { minimumFractionDigits: 1, maximumFractionDigits: 1 }));
  const names = ["F1", t("Recall by session"), t("Recall by turn"), "MRR", "nDCG"];
  return pairs([...names.map((name, place) => [name, share(row.scores[place])]), [t("Tokens of context"), `≈ ${number(row.tokens)}`]]);
}

function evidence(data, row) {
  const told = [];
  if (row.abstention) told.push(t("The dialogue holds no answer; this is the nearest topic."));
  if (row.failed_evidence.length) told.push(t("The system failed to store {turns}.", { turns: row.failed_evidence.join(", ") }));
  const names = row.places.join(", ");
  if (!row.evidence.length) return paragraphs(...told, names ? t("{places}; the row does not hold its words", { places: names }) : t("not known"));
  const items = row.evidence.map(({ place, time, text, cut }) => card("hit", row, data.texts[text], cut,
    element("span", "found", place), time ? element("span", "", moment(time)) : null));
  return [...paragraphs(...told), element("ol", "memories evidence", ...items)];
}

function memories(data, row) {
  if (!row.memories.length) return block(t("No memories kept for this row"));
  const items = row.memories.map((found) => card(found.hit ? "hit" : "", row, data.texts[found.text], found.cut,
    element("span", "", `#${found.rank}`),
    found.hit ? element("span", "found", found.hit === "turn" ? t("✓ evidence") : t("✓ session of the evidence")) : null,
    found.kind ? element("span", "", found.kind) : null,
    element("span", "", found.sources.join(", ") || t("no sources")),
    found.time ? element("span", "", moment(found.time)) : null,
    found.score === null ? null : element("span", "", t("score {score}", { score: number(found.score, { maximumSignificantDigits: 3 }) }))));
  return block(tn("{n} memory retrieved", "{n} memories retrieved", row.memories.length), element("ol", "memories", ...items));
}

function card(className, row, text, cut, ...facts) {
  const rest = cut ? element("small", "", tn("… and {n} more character", "… and {n} more characters", cut)) : null;
  return element("li", className, element("small", "", ...facts), ...spoken(row.language, element("p", "", text)), rest);
}

function link(row) {
  const made = element("a", "", t("Link to this question"));
  made.href = `#questions?${new URLSearchParams({ open: keyOf(row) })}`;
  return made;
}

function keyOf(row) {
  return [row.system, row.language, row.dialogue, row.question, row.repeat].join("/");
}
