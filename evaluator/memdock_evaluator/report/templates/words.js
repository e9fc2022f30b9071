"use strict";
// The words, numbers and dates of the page's language; `t` and `tn` are those of the templates.
const LANGUAGE = document.documentElement.lang;
const LOCALE = LANGUAGE === "en" ? "en-GB" : LANGUAGE;
const WORDS = JSON.parse(document.getElementById("script-words").textContent);
const PLURALS = new Intl.PluralRules(LOCALE);

function number(value, options = {}) {
  return new Intl.NumberFormat(LOCALE, options).format(value).replace("-", "−");
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => (typeof values[name] === "number" ? number(values[name]) : values[name]));
}

function t(text, values = {}) {
  return filled(WORDS[text], values);
}

function tn(one, many, n, values = {}) {
  const forms = WORDS[one];
  const last = forms.length - 1;
  const place = { one: 0, few: 1, many: last, other: last }[PLURALS.select(n)];
  return filled(forms[place], { n, ...values });
}

// As written, with its own offset: never in this browser's zone.
function moment(iso) {
  const [date, time] = iso.split("T");
  const format = { weekday: "long", day: "numeric", month: "long", year: "numeric", timeZone: "UTC" };
  const day = new Date(`${date}T00:00:00Z`).toLocaleDateString(LOCALE, format);
  const offset = time.replace(/^[\d:.]+/, "").replace(/^(Z|\+00:00)$/, "UTC");
  return `${day}, ${time.slice(0, 5)} ${offset}`.trim();
}
