// The search, the switch of the theme, and what a server has beside the guide. Text goes into the page as text only.

import { find, pieces } from "./search.js";

const root = document.documentElement.dataset.root;
const input = document.getElementById("site-search");
const found = document.getElementById("site-found");
const results = document.getElementById("site-results");

/** An element with its children; strings become text. */
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Text in which what was searched is marked. */
const marked = (text, query) => pieces(text, query).map(([part, fits]) => (fits ? make("mark", {}, part) : part));

let index;

/** The index, which is loaded at the first search. */
function loaded() {
  index ??= fetch(`${root}search.json`).then((answer) => {
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return answer.json();
  });
  return index;
}

async function search() {
  const query = input.value;
  let all;
  try {
    all = await loaded();
  } catch (error) {
    index = undefined;
    found.hidden = false;
    document.getElementById("site-count").textContent = `The search cannot be loaded: ${error.message}`;
    return;
  }
  // The text has changed meanwhile, and its own search follows.
  if (input.value !== query) return;
  const { hits, count } = find(all, query);
  found.hidden = !query.trim();
  document.getElementById("site-count").textContent = count === 1 ? "One place." : `${count} places${count > hits.length ? `, the best ${hits.length}` : ""}.`;
  results.replaceChildren(...hits.map((hit) => make("li", {},
    make("a", { href: `${root}${hit.address}#${hit.anchor}` }, make("b", {}, ...marked(hit.name, query)), make("span", {}, ...marked(hit.excerpt, query))))));
}

function close() {
  input.value = "";
  found.hidden = true;
}

const THEMES = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" };

/** The switch says the present theme, and a press chooses the next one. */
function showTheme() {
  const button = document.getElementById("site-theme");
  button.textContent = THEMES[document.documentElement.dataset.theme ?? "system"];
  button.hidden = false;
}

function nextTheme() {
  const next = { system: "light", light: "dark", dark: "system" }[document.documentElement.dataset.theme ?? "system"];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    if (next === "system") localStorage.removeItem("tally.theme");
    else localStorage.setItem("tally.theme", next);
  } catch {
    // The theme holds until the page is left.
  }
  showTheme();
}

input.disabled = false;
input.addEventListener("input", search);
input.addEventListener("keydown", (event) => {
  if (event.key === "Enter") results.querySelector("a")?.click();
});
results.addEventListener("click", close);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") close();
  if (event.key !== "/" || event.target === input) return;
  event.preventDefault();
  input.focus();
});
document.getElementById("site-theme").addEventListener("click", nextTheme);
showTheme();
document.getElementById("site-api").hidden = !location.pathname.startsWith("/docs/guide/");
