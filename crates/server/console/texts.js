// The texts of the console in the reader's language: the one chosen by hand, else the first one of the browser that there is.
//
// `t(key, {name})` is the text of a key. A text is a string with `{name}`, or one string for each plural category of `n`
// (`{one, other}`). A language is chosen for as long as the page is loaded; another choice loads it again.

import en from "./texts_en.js";
import ko from "./texts_ko.js";
import { digits } from "./digits.js";

const LANGUAGES = { en, ko };
const KEPT = "tally.language";

/** `[code, name]` of each language, named in itself. */
export const languages = Object.entries(LANGUAGES).map(([code, texts]) => [code, texts["language.name"]]);

/** The language of this page. */
export const language = chosen();

const plural = new Intl.PluralRules(language);

function chosen() {
  const wanted = [kept(), ...navigator.languages].map((tag) => tag?.split("-")[0]);
  return wanted.find((tag) => tag in LANGUAGES) ?? "en";
}

function kept() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    // A browser without storage has the language of its system.
    return null;
  }
}

/** Changes the language, and loads the page in it. */
export function useLanguage(code) {
  try {
    localStorage.setItem(KEPT, code);
    location.reload();
  } catch {
    // Nothing keeps the choice, so the page stays as it is.
  }
}

/** The text of a key. Numbers among its values, and `n`, are grouped. An unknown key is shown as it is. */
export function t(key, values = {}) {
  const text = LANGUAGES[language][key] ?? key;
  const form = typeof text === "string" ? text : text[plural.select(Number(values.n))] ?? text.other;
  return form.replace(/\{(\w+)\}/g, (_, name) => (name === "n" || typeof values[name] === "number" ? digits(values[name]) : String(values[name] ?? "")));
}

/** The same with elements in place of some values: a list of texts and elements. */
export function tt(key, values) {
  const marked = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value instanceof Node ? `\u0000${name}\u0000` : value]));
  return t(key, marked).split("\u0000").map((part, at) => (at % 2 === 1 ? values[part] : part));
}

/** Whether a key has a text. */
export const has = (key) => key in LANGUAGES[language];

/** The text of a value that may be newer than the console, such as a state: without a text, its own words. */
export function named(key) {
  return has(key) ? t(key) : key.slice(key.lastIndexOf(".") + 1).replaceAll("_", " ");
}
