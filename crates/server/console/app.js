// The frame: which page is shown, which key is used, light or dark, and whether the server is ready.

import { Problem, ask, get, key, useKey } from "./api.js";
import { dialog, failed, inline, sentence, toast } from "./dialog.js";
import { button, coded, h, icon, put, set } from "./dom.js";
import { useCurrencies } from "./format.js";
import { field, form } from "./form.js";
import { every } from "./live.js";
import { readRights } from "./rights.js";
import * as audit from "./audit.js";
import * as board from "./board.js";
import * as boards from "./boards.js";
import * as contest from "./contest.js";
import * as contests from "./contests.js";
import * as overview from "./overview.js";
import * as owed from "./owed.js";
import * as player from "./player.js";
import * as players from "./players.js";
import * as settings from "./settings.js";
import * as wallet from "./wallet.js";
import * as wallets from "./wallets.js";
import * as webhook from "./webhook.js";
import * as webhooks from "./webhooks.js";

/** Pages by their path; `{x}` is a parameter. */
const PAGES = [
  ["/", overview, "overview"],
  ["/boards", boards, "boards"],
  ["/boards/{board}", board, "boards"],
  ["/contests", contests, "contests"],
  ["/contests/{contest}", contest, "contests"],
  ["/players", players, "players"],
  ["/players/{player}", player, "players"],
  ["/wallets", wallets, "wallets"],
  ["/wallets/{member}", wallet, "wallets"],
  ["/owed", owed, "wallets"],
  ["/settings", settings, "settings"],
  ["/audit", audit, "settings"],
  ["/webhooks", webhooks, "settings"],
  ["/webhooks/{webhook}", webhook, "settings"],
];

const LINKS = [
  ["overview", "#/", "Overview"],
  ["boards", "#/boards", "Boards"],
  ["contests", "#/contests", "Contests"],
  ["players", "#/players", "Players"],
  ["wallets", "#/wallets", "Wallets"],
  ["settings", "#/settings", "Settings"],
];

const THEMES = { system: "Theme of the system", light: "Light theme", dark: "Dark theme" };

const AWAY = "The server cannot be reached. It is asked again.";

const main = document.getElementById("main");
let leave = new AbortController();

function start() {
  const nav = document.getElementById("nav");
  put(nav, LINKS.map(([name, href, label]) => h("a", { href, "data-page": name }, icon(name), label)));
  showTools();
  window.addEventListener("hashchange", () => {
    // A page change closes the dialogs of the previous page.
    document.querySelectorAll("dialog[open]").forEach((open) => open.close());
    show(true);
  });
  window.addEventListener("tally:key", showTools);
  window.addEventListener("tally:unauthorized", ({ detail }) => askForKey(detail.present, detail.text));
  window.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    failed(event.reason);
  });
  watch();
  show(false);
}

/** The page of a path, with its parameters and its query (behind `?`). */
function find(hash) {
  const [path, query] = hash.replace(/^#/, "").split("?");
  const parts = (path || "/").split("/");
  for (const [pattern, page, name] of PAGES) {
    const wanted = pattern.split("/");
    if (wanted.length !== parts.length) continue;
    const parameters = Object.fromEntries(new URLSearchParams(query ?? ""));
    const fits = wanted.every((one, at) => {
      if (!one.startsWith("{")) return one === parts[at];
      parameters[one.slice(1, -1)] = decode(parts[at]);
      return parts[at] !== "";
    });
    if (fits) return { page, name, parameters };
  }
  return null;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function show(moved) {
  leave.abort();
  leave = new AbortController();
  const found = find(location.hash);
  main.replaceChildren();
  document.querySelectorAll("[data-page]").forEach((link) => {
    if (link.dataset.page === found?.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  if (!found) {
    document.title = "Not found · tally";
    put(main, h("h1", { tabindex: "-1" }, "There is no such page"), h("p", {}, h("a", { href: "#/" }, "Go to the overview")));
    return;
  }
  const { page, parameters } = found;
  document.title = `${typeof page.title === "function" ? page.title(parameters) : page.title} · tally`;
    // Late responses of a previous page go into an element that is no longer shown.
  const place = h("div", {});
  put(main, place);
  const { signal } = leave;
  Promise.all([readCurrencies(), readRights()]).then(() => {
    if (signal.aborted) return;
    page.render(place, parameters, signal);
    if (!moved) return;
    window.scrollTo(0, 0);
    main.querySelector("h1")?.focus({ preventScroll: true });
  });
}

let currenciesKnown = false;

/** Reads the decimals of the currencies once, before the first page that the server answers. Without them amounts are in the smallest unit. */
async function readCurrencies() {
  if (currenciesKnown) return;
  try {
    useCurrencies((await get("/v1/currencies")).items);
    currenciesKnown = true;
  } catch {
    // The page shows why the server does not answer.
  }
}

/** The theme switch, and the button of the key. */
function showTools() {
  const present = key();
  const who = h("span", {}, present ? `key ${present.split("_")[1] ?? ""}` : "no key");
  const chosen = document.documentElement.dataset.theme ?? "system";
  const next = { system: "light", light: "dark", dark: "system" }[chosen];
  const theme = button("", () => setTheme(next), { kind: "plain", icon: chosen, title: `${THEMES[chosen]}. Change to: ${THEMES[next]}` });
  theme.setAttribute("aria-label", theme.title);
  theme.dataset.theme = chosen;
  const keys = button("", () => (present ? forgetKey() : askForKey(null)), { kind: "plain", icon: "key", title: present ? "Forget the key" : "Enter a key" });
  keys.setAttribute("aria-label", keys.title);
  const docs = h("a", { class: "small", href: "/docs" }, "API");
  set(document.getElementById("tools"), h("div", { class: "who" }, who), h("div", { class: "row" }, theme, keys, docs));
}

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem("tally.theme");
    else localStorage.setItem("tally.theme", theme);
  } catch {
    // The key holds until the page is loaded again.
  }
  showTools();
  document.querySelector("#tools [data-theme]").focus();
}

function forgetKey() {
  useKey(null);
  toast("ok", "The key is forgotten");
  show(true);
}

let asking = null;

/** Shows the dialog for a key; once, however many requests were refused. */
function askForKey(refused, text) {
  if (asking || refused !== null && refused !== undefined && refused !== key()) return;
  const mode = text?.startsWith("protected mode") ? sentence(text) : "Paste an API key: the console sends it with everything that it asks.";
  const about = refused ? "The key of this tab is unknown or was revoked." : mode;
  asking = dialog("A key is needed", (box) => {
    const input = field({ name: "key", label: "API key", type: "password", required: true, placeholder: "tally_…", hint: "It is kept for this tab only, and gone when the tab is closed." });
    const send = async (values) => {
      if (!values.key.startsWith("tally_")) throw new Problem(0, { detail: "This is no API key: one begins with `tally_`. Copy the whole line that was shown when it was made." });
      const before = key();
      useKey(values.key);
      try {
        await ask("GET", "/v1/status");
      } catch (error) {
        if (error.status === 401 || error.status === 403) useKey(before);
        throw error;
      }
      box.close();
      show(true);
    };
    return [h("p", { class: "soft" }, coded(about)), form([input], "Use this key", send, { cancel: () => box.close() })];
  });
  asking.addEventListener("close", () => (asking = null));
  asking.querySelector("input").focus();
}

/** Shows a banner while the server is not ready, and reloads the page when it is ready again. */
function watch() {
  const banner = document.getElementById("banner");
  let away = false;
  let ticks = 0;
  const ready = async () => {
    // An unavailable server is polled at every tick, a ready one at every fifth.
    ticks += 1;
    if (!away && ticks % 5 !== 1) return;
    const answer = await get("/readyz").catch((error) => error);
    const { phase, done, total } = answer.body ?? answer;
    if (phase === "ready") {
      set(banner);
      if (away) show(false);
      away = false;
      return;
    }
    away = true;
    const share = total > 0 ? ` ${Math.floor((done / total) * 100)} %` : "";
    set(banner, phase ? `Not ready: ${phase}${share}. Ranks are not shown before they are exact.` : AWAY);
  };
  window.addEventListener("tally:unreachable", () => {
    if (!away) set(banner, AWAY);
    away = true;
  });
  every(1000, new AbortController().signal, ready, (error) => inline(banner, error));
}

start();
