"use strict";
// The page over the service's own calls. The key lives in sessionStorage of this tab and goes nowhere but into the header
// of a call; text from the service becomes text nodes, never markup.

const TEXTS = {
  en: {
    title: "evaluation", skip: "To the runs", signIn: "Sign in", signOut: "Sign out", key: "API key",
    keyHint: "It is kept in this tab alone, until you close it or sign out.", runs: "Runs", state: "State", all: "all",
    compare: "Compare two", none: "There are no runs yet.", more: "Older runs", comparison: "Comparison", start: "Start a run",
    data: "Data", systems: "Memory systems", baselines: "Baselines", judges: "Judges", answerer: "Answerer",
    offline: "offline rules", dataLanguage: "Languages", k: "Memories (k)", repeats: "Repeats", budget: "Budget",
    paste: "Paste a plan instead", plan: "Plan, in YAML or JSON", planHint: "While this is not empty, it is what is started, and the form above is not.",
    begin: "Start", estimate: "Estimate", report: "Report", cancel: "Cancel", resume: "Resume", remove: "Remove",
    sure: "Remove this run and its results?", selected: "Compare", started: "Started: ", nothing: "none", cost: "cost",
    attempt: "attempt", lost: "The server does not answer; this is tried again.", loading: "…",
    states: { queued: "waiting", running: "running", cancelling: "being cancelled", completed: "completed", incomplete: "incomplete", failed: "failed", cancelled: "cancelled" },
    works: {},
    columns: ["language", "systems", "measure", "n", "first", "second", "difference", "95 %", "p"],
    same: "The plans are the same.",
  },
  ru: {
    title: "оценка", skip: "К прогонам", signIn: "Войти", signOut: "Выйти", key: "Ключ API",
    keyHint: "Ключ хранится только в этой вкладке, пока вы её не закроете или не выйдете.", runs: "Прогоны", state: "Состояние", all: "все",
    compare: "Сравнить два", none: "Прогонов пока нет.", more: "Более ранние", comparison: "Сравнение", start: "Начать прогон",
    data: "Данные", systems: "Системы памяти", baselines: "Базовые варианты", judges: "Судьи", answerer: "Отвечающая модель",
    offline: "правила без модели", dataLanguage: "Языки", k: "Воспоминаний (k)", repeats: "Повторы", budget: "Бюджет",
    paste: "Вставить план вместо формы", plan: "План в YAML или JSON", planHint: "Пока здесь что-то есть, запускается это, а не форма выше.",
    begin: "Начать", estimate: "Оценить затраты", report: "Отчёт", cancel: "Отменить", resume: "Продолжить", remove: "Удалить",
    sure: "Удалить этот прогон вместе с результатами?", selected: "Сравнить", started: "Начат: ", nothing: "нет", cost: "стоимость",
    attempt: "попытка", lost: "Сервер не отвечает; попробуем ещё раз.", loading: "…",
    states: { queued: "ждёт", running: "идёт", cancelling: "отменяется", completed: "завершён", incomplete: "не завершён", failed: "не удался", cancelled: "отменён" },
    works: {
      "turns accepted": "реплик принято", "turns processed": "реплик обработано", "questions retrieved": "вопросов с поиском",
      "questions answered": "вопросов с ответом", "answers judged": "ответов оценено",
    },
    columns: ["язык", "системы", "мера", "n", "первый", "второй", "разность", "95 %", "p"],
    same: "Планы одинаковы.",
  },
};
const OPEN = ["queued", "running", "cancelling"], RESUMABLE = ["incomplete", "failed", "cancelled"];
const $ = (id) => document.getElementById(id);
let language = navigator.language.startsWith("ru") ? "ru" : "en";
try { language = sessionStorage.getItem("language") || language; } catch { /* without storage, the browser's */ }
let offer = null, next = "";
const runs = new Map(), streams = new Map(), chosen = [];
const t = (name) => TEXTS[language][name];

function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

function say(text, bad = false) {
  $("said").textContent = text;
  $("said").className = bad ? "bad" : "";
}

class Refused extends Error {
  constructor(problem) {
    super(problem.detail || String(problem.status));
    this.problem = problem;
  }
}

async function call(verb, path, { body, kind, headers, signal } = {}) {
  const key = sessionStorage.getItem("key");
  const sent = { ...headers };
  if (key) sent.Authorization = `Bearer ${key}`;
  if (kind) sent["Content-Type"] = kind;
  const answer = await fetch(path, { method: verb, headers: sent, body, signal, cache: "no-store" });
  if (!answer.ok) throw new Refused(await answer.json().catch(() => ({ status: answer.status })));
  return answer;
}

const ask = async (...words) => (await call(...words)).json();

/* ---- who is here */

async function enter() {
  try {
    offer = await ask("GET", "/v1/offer");
  } catch (fault) {
    if (fault instanceof Refused && fault.problem.status === 401) return leave(sessionStorage.getItem("key") ? fault.message : "");
    return say(fault instanceof Refused ? fault.message : t("lost"), true);
  }
  $("sign-in").hidden = true;
  $("inside").hidden = false;
  $("sign-out").hidden = !sessionStorage.getItem("key");
  $("start-section").hidden = !offer.may.includes("StartRuns");
  say("");
  showOffer();
  await list();
}

function leave(why) {
  sessionStorage.removeItem("key");
  for (const stream of streams.values()) stream.abort();
  streams.clear();
  runs.clear();
  $("runs").replaceChildren();
  $("inside").hidden = true;
  $("sign-out").hidden = true;
  $("sign-in").hidden = false;
  $("comparison").hidden = true;
  say(why, Boolean(why));
  $("key").focus();
}

/* ---- the form */

function none() {
  const node = make("span", { className: "hint", textContent: t("nothing") });
  node.dataset.t = "nothing";
  return node;
}

function showOffer() {
  const choices = (id, names, first) => $(id).replaceChildren(
    ...(names.length ? names.map((name, index) => make("label", {},
      make("input", { type: "checkbox", value: name, checked: first && index === 0 }), name)) : [none()]));
  choices("data", offer.data, true);
  choices("system", offer.systems, true);
  choices("baseline", offer.baselines, false);
  choices("judge", offer.judges, true);
  $("answerer").replaceChildren(...offer.answerers.map((name) => make("option", { value: name, textContent: name })),
    make("option", { value: "", textContent: t("offline") }));
  $("budget").placeholder = offer.budget_ceiling === null ? offer.currency : `≤ ${offer.budget_ceiling} ${offer.currency}`;
}

function planBody() {
  const pasted = $("plan").value;
  if (pasted.trim()) return { body: pasted, kind: "application/yaml" };
  const plan = { k: Number($("k").value), repeats: Number($("repeats").value) };
  for (const id of ["data", "system", "baseline", "judge"]) {
    const names = [...$(id).querySelectorAll("input:checked")].map((box) => box.value);
    if (names.length) plan[id] = names;
  }
  if ($("answerer").value) plan.answerer = $("answerer").value;
  if ($("plan-language").value.trim()) plan.language = $("plan-language").value.trim();
  if ($("budget").value) plan.budget = Number($("budget").value);
  return { body: JSON.stringify(plan), kind: "application/json" };
}

async function attempt(work) {
  try {
    await work();
  } catch (fault) {
    if (fault instanceof Refused && fault.problem.status === 401) return leave(fault.message);
    say(fault instanceof Refused ? fault.message : t("lost"), true);
  }
}

const newId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
let pending = null;

const start = () => attempt(async () => {
  const plan = planBody();
  // The same plan sent again after a lost answer starts no second run.
  if (!pending || pending.body !== plan.body) pending = { body: plan.body, id: newId() };
  const run = await ask("POST", "/v1/runs", { ...plan, headers: { "Idempotency-Key": pending.id } });
  pending = null;
  say(t("started") + run.run_id);
  $("plan").value = "";
  show(run, true);
});

const estimate = () => attempt(async () => {
  $("estimated").replaceChildren(make("li", { textContent: t("loading") }));
  try {
    const found = await ask("POST", "/v1/estimates", planBody());
    $("estimated").replaceChildren(...found.sentences.map((line) => make("li", { textContent: line })));
    say("");
  } catch (fault) {
    $("estimated").replaceChildren();
    throw fault;
  }
});

/* ---- the runs */

const list = (older = false) => attempt(async () => {
  const state = $("filter").value;
  const page = await ask("GET", `/v1/runs?page_size=20&page_token=${older ? next : ""}${state ? `&state=${state}` : ""}`);
  if (!older) {
    const listed = new Set(page.runs.map((run) => run.run_id));
    for (const id of [...runs.keys()]) if (!listed.has(id)) forget(id);
  }
  for (const run of page.runs) show(run);
  next = page.next_page_token;
  $("more").hidden = !next;
  $("none").hidden = runs.size > 0;
});

function forget(id) {
  streams.get(id)?.abort();
  runs.get(id)?.node.remove();
  runs.delete(id);
  if (chosen.includes(id)) choose(id, false);
}

function show(run, first = false) {
  let kept = runs.get(run.run_id);
  if (!kept) {
    kept = { node: make("li", { id: run.run_id }) };
    runs.set(run.run_id, kept);
    const after = [...$("runs").children].find((node) => node.id < run.run_id);
    $("runs").insertBefore(kept.node, first ? $("runs").firstChild : after || null);
    $("none").hidden = true;
  }
  kept.run = run;
  draw(kept);
  if (OPEN.includes(run.state) && !streams.has(run.run_id)) follow(run.run_id);
}

function draw({ node, run }) {
  const focused = node.contains(document.activeElement) ? document.activeElement.dataset.act : null;
  const words = (value) => [].concat(value ?? []).join(", ");
  const plan = run.plan;
  const what = [words(plan.data), words(plan.language), words([].concat(plan.system ?? [], plan.baseline ?? [])), `k ${words(plan.k) || 10}`];
  if (run.attempt > 1) what.push(`${t("attempt")} ${run.attempt}`);
  if (run.cost) what.push(`${t("cost")} ${run.cost.toFixed(4)} ${run.currency}`);
  const box = make("input", { type: "checkbox", checked: chosen.includes(run.run_id), ariaLabel: `${t("selected")} ${run.run_id}` });
  box.dataset.act = "choose";
  box.addEventListener("change", () => choose(run.run_id, box.checked));
  const head = make("div", { className: "head" }, ...(run.state === "completed" ? [box] : []),
    make("span", { className: `chip ${run.state}`, textContent: t("states")[run.state] }), make("code", { textContent: run.run_id }),
    make("time", { className: "when", dateTime: run.created, textContent: new Date(run.created).toLocaleString(language) }));
  const why = [...(OPEN.includes(run.state) ? run.messages.slice(-1).map((message) => message.text) : run.sentences)];
  const acts = make("div", { className: "acts" });
  const act = (name, work) => {
    const button = make("button", { type: "button", textContent: t(name), ariaLabel: `${t(name)} ${run.run_id}` });
    button.dataset.act = name;
    button.addEventListener("click", () => attempt(work));
    acts.append(button);
  };
  if (run.state === "completed") act("report", () => openReport(run.run_id));
  if (offer.may.includes("EndRuns") && OPEN.slice(0, 2).includes(run.state)) act("cancel", async () => show(await ask("POST", `/v1/runs/${run.run_id}/cancel`)));
  if (offer.may.includes("StartRuns") && RESUMABLE.includes(run.state)) act("resume", async () => show(await ask("POST", `/v1/runs/${run.run_id}/resume`)));
  if (offer.may.includes("EndRuns") && !OPEN.includes(run.state)) act("remove", async () => {
    if (!confirm(t("sure"))) return;
    await call("DELETE", `/v1/runs/${run.run_id}`);
    forget(run.run_id);
    $("none").hidden = runs.size > 0;
  });
  node.replaceChildren(head, make("p", { className: "what", textContent: what.filter(Boolean).join(" · ") }),
    ...why.map((line) => make("p", { className: "why", textContent: line })), ...progressOf(run), acts);
  if (focused) node.querySelector(`[data-act="${focused}"]`)?.focus();
}

function progressOf(run) {
  if (!OPEN.includes(run.state) || !run.progress.length) return [];
  return run.progress.map(({ work, done, total }) => {
    const name = t("works")[work] || work;
    return make("div", { className: "work" }, make("span", { textContent: name }), make("progress", { value: done, max: total, ariaLabel: name }),
      make("span", { textContent: `${done} / ${total}` }));
  });
}

async function openReport(id) {
  const tab = window.open("about:blank", "_blank"); // at once, or it is taken for a pop-up
  try {
    const link = await ask("POST", `/v1/runs/${id}/report/links?lang=${language}`);
    if (!tab) return void (location.href = link.path);
    tab.opener = null;
    tab.location.replace(link.path);
  } catch (fault) {
    tab?.close();
    throw fault;
  }
}

/* ---- events: by fetch, since EventSource sends no key */

async function follow(id) {
  const stream = new AbortController();
  streams.set(id, stream);
  let last = "";
  while (!stream.signal.aborted && runs.has(id)) {
    try {
      const answer = await call("GET", `/v1/runs/${id}/events`, { headers: last ? { "Last-Event-ID": last } : {}, signal: stream.signal });
      if (answer.status === 204) break;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = "", ended = false; !ended;) {
        const { value, done } = await reader.read();
        if (done) break;
        const blocks = (text + value).split("\n\n");
        text = blocks.pop();
        for (const block of blocks) {
          const lines = Object.fromEntries(block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
          if (!lines.event) continue;
          last = lines.id;
          ended ||= lines.event === "end";
          happened(id, lines.event, JSON.parse(lines.data));
        }
      }
    } catch (fault) {
      if (stream.signal.aborted) return;
      if (fault instanceof Refused && fault.problem.status < 500) break;
    }
    const kept = runs.get(id);
    if (!kept || !OPEN.includes(kept.run.state)) break;
    await new Promise((done) => setTimeout(done, 2000));
  }
  if (streams.get(id) === stream) streams.delete(id);
}

function happened(id, event, data) {
  const kept = runs.get(id);
  if (!kept) return;
  if (event === "message") kept.run.messages.push(data);
  else Object.assign(kept.run, data);
  draw(kept);
}

/* ---- two runs */

function choose(id, on) {
  const at = chosen.indexOf(id);
  if (at >= 0) chosen.splice(at, 1);
  if (on) chosen.push(id);
  while (chosen.length > 2) {
    const left = runs.get(chosen.shift());
    if (left) draw(left);
  }
  $("compare").disabled = chosen.length !== 2;
}

const compare = () => attempt(async () => {
  const [a, b] = [...chosen].sort();
  const found = await ask("GET", `/v1/compare?a=${a}&b=${b}`);
  const share = (value) => (100 * value).toFixed(1);
  const signed = (value) => `${value > 0 ? "+" : ""}${share(value)}`.replace("-", "−");
  $("comparison-of").textContent = `${b} − ${a}`;
  $("comparison-plan").replaceChildren(...(found.plan.length ? found.plan : [t("same")]).map((line) => make("li", { textContent: line })));
  const table = $("comparison").querySelector("table");
  table.tHead.rows[0].replaceChildren(...t("columns").map((name) => make("th", { scope: "col", textContent: name })));
  table.tBodies[0].replaceChildren(...found.differences.map((each) => make("tr", {}, ...[
    each.language, each.first_system === each.second_system ? each.first_system : `${each.second_system} − ${each.first_system}`, each.measure,
    each.questions, share(each.first), share(each.second), signed(each.difference),
    each.low === null ? "–" : `${signed(each.low)} … ${signed(each.high)}`, each.p === null ? "–" : each.p.toFixed(3),
  ].map((cell) => make("td", { textContent: cell })))));
  $("comparison").hidden = false;
  $("comparison").focus();
  say("");
});

/* ---- words, and what the buttons do */

function translate() {
  document.documentElement.lang = language;
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  $("language").textContent = language === "en" ? "По-русски" : "In English";
  $("language").lang = language === "en" ? "ru" : "en";
  const state = $("filter").value;
  $("filter").replaceChildren(make("option", { value: "", textContent: t("all") }),
    ...Object.entries(t("states")).map(([value, textContent]) => make("option", { value, textContent })));
  $("filter").value = state;
  for (const kept of runs.values()) draw(kept);
  const offline = $("answerer").querySelector('option[value=""]');
  if (offline) offline.textContent = t("offline");
  if (!$("comparison").hidden) compare();
}

$("language").addEventListener("click", () => {
  language = language === "en" ? "ru" : "en";
  sessionStorage.setItem("language", language);
  translate();
});
$("sign-out").addEventListener("click", () => leave(""));
$("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("key", $("key").value.trim());
  $("key").value = "";
  enter();
});
$("start").addEventListener("submit", (event) => { event.preventDefault(); start(); });
$("estimate").addEventListener("click", estimate);
$("compare").addEventListener("click", compare);
$("more").addEventListener("click", () => list(true));
$("filter").addEventListener("change", () => list());
setInterval(() => { if (!$("inside").hidden && !document.hidden && runs.size <= 20) list(); }, 10000);
translate();
enter();
