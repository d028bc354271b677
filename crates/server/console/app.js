// The frame: which page is shown, which key is used, light or dark, the language, the zone of times, and whether the server is ready.

import { Problem, ask, get, key, useKey } from "./api.js";
import { confirmActs, dialog, failed, inline, toast } from "./dialog.js";
import { button, coded, h, head, icon, put, set } from "./dom.js";
import { useCurrencies, zoneName } from "./format.js";
import { field, form } from "./form.js";
import { every } from "./live.js";
import { isAdmin, may, readRights } from "./rights.js";
import { language, languages, named, t, useLanguage } from "./texts.js";
import * as audit from "./audit.js";
import * as board from "./board.js";
import * as boards from "./boards.js";
import * as contest from "./contest.js";
import * as contests from "./contests.js";
import * as overview from "./overview.js";
import * as owed from "./owed.js";
import * as player from "./player.js";
import * as players from "./players.js";
import * as series from "./series.js";
import * as seriesOne from "./series_one.js";
import * as server from "./server.js";
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
  ["/series", series, "contests"],
  ["/series/{series}", seriesOne, "contests"],
  ["/players", players, "players"],
  ["/players/{player}", player, "players"],
  ["/wallets", wallets, "wallets"],
  ["/wallets/{member}", wallet, "wallets"],
  ["/owed", owed, "wallets"],
  ["/server", server, "server"],
  ["/settings", settings, "settings"],
  ["/audit", audit, "settings"],
  ["/webhooks", webhooks, "settings"],
  ["/webhooks/{webhook}", webhook, "settings"],
];

/** The pages in the navigation. */
const LINKS = ["overview", "boards", "contests", "players", "wallets", "server", "settings"];

/** Pages that have nothing for a caller without a right. */
const NEEDED = {
  wallets: () => may("members:read") || may("money:read"),
  settings: () => isAdmin() || may("audit:read"),
};

const main = document.getElementById("main");
let leave = new AbortController();

function start() {
  document.documentElement.lang = language;
  set(document.querySelector(".skip"), t("app.skip"));
  const nav = document.getElementById("nav");
  nav.setAttribute("aria-label", t("app.navigation"));
  const address = (name) => (name === "overview" ? "#/" : `#/${name}`);
  put(nav, LINKS.map((name) => h("a", { href: address(name), "data-page": name }, icon(name), t(`nav.${name}`))));
  set(document.getElementById("zone"), t("app.zone", { zone: zoneName() }));
  showTools();
  window.addEventListener("hashchange", () => {
    // A page change closes the dialogs of the previous page.
    document.querySelectorAll("dialog[open]").forEach((open) => open.close());
    show(true);
  });
  window.addEventListener("tally:key", showTools);
  window.addEventListener("tally:unauthorized", ({ detail }) => closePage(detail.present, detail.text));
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
  endedWith = undefined;
  const found = find(location.hash);
  main.replaceChildren();
  document.querySelectorAll("[data-page]").forEach((link) => {
    if (link.dataset.page === found?.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  if (!found) {
    document.title = `${t("app.not_found")} · tally`;
    put(main, h("h1", { tabindex: "-1" }, t("app.not_found")), h("p", {}, h("a", { href: "#/" }, t("app.to_overview"))));
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
    document.querySelectorAll("[data-page]").forEach((link) => (link.hidden = NEEDED[link.dataset.page]?.() === false));
    page.render(place, parameters, signal);
    if (!moved) return;
    window.scrollTo(0, 0);
    // A page of a search begins with its field.
    if (!place.contains(document.activeElement)) main.querySelector("h1")?.focus({ preventScroll: true });
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

/** The theme switch, the other languages, and the button of the key. */
function showTools() {
  const present = key();
  const who = h("span", {}, present ? t("app.key", { key: present.split("_")[1] ?? "" }) : t("app.no_key"));
  const chosen = document.documentElement.dataset.theme ?? "system";
  const next = { system: "light", light: "dark", dark: "system" }[chosen];
  const theme = button("", () => setTheme(next), { kind: "plain", icon: chosen, title: t("app.change_theme", { now: t(`theme.${chosen}`), next: t(`theme.${next}`) }) });
  theme.setAttribute("aria-label", theme.title);
  theme.dataset.theme = chosen;
  const keys = button("", () => (present ? forgetKey() : askForKey(t("app.paste_key"))), { kind: "plain", icon: "key", title: present ? t("app.forget_key") : t("app.enter_key") });
  keys.setAttribute("aria-label", keys.title);
  const docs = h("a", { class: "small", href: "/docs" }, "API");
  const others = languages.filter(([code]) => code !== language).map(([code, name]) => {
    const other = button(name, () => useLanguage(code), { kind: "plain small" });
    other.lang = code;
    return other;
  });
  set(document.getElementById("tools"), h("div", { class: "who" }, who), h("div", { class: "row" }, theme, keys, others), h("div", { class: "row" }, docs, h("a", { class: "small", href: "/docs/guide/" }, t("app.guide"))));
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

/** Asks first: the button is an icon, and the key is typed again afterwards. */
async function forgetKey() {
  if (!(await confirmActs(t("app.forget_ask"), [t("app.forget_text")], t("app.forget_key")))) return;
  useKey(null);
  toast("ok", t("app.key_forgotten"));
  show(true);
}

let asking = null;
/** Whether a key is tried that was entered: its refusal is said in the dialog. */
let trying = false;
/** The key with which the page was ended, `null` without one; undefined while a page is shown. */
let endedWith;

/**
  * Ends the page, whose requests the server refuses without another key, and asks for one: once, however many were refused. Some
  * requests outlive their page, so a late refusal may come after the dialog was closed.
 */
function closePage(refused, text) {
  if (trying || refused !== key() || refused === endedWith) return;
  endedWith = refused;
  leave.abort();
  const mode = text?.startsWith("protected mode") ? t("app.protected_mode") : t("app.paste_key");
  const about = refused ? t("app.key_unknown") : mode;
  const again = button(t("app.enter_key"), () => askForKey(about), { icon: "key" });
  set(main, head(t("app.key_needed"), { actions: again }));
  askForKey(about);
}

/** Shows the dialog for a key. */
function askForKey(about) {
  if (asking) return;
  asking = dialog(t("app.enter_key"), (box) => {
    const input = field({ name: "key", label: t("app.api_key"), type: "password", required: true, placeholder: "tally_…", hint: t("app.key_kept") });
    const send = async (values) => {
      if (!values.key.startsWith("tally_")) throw new Problem(0, { detail: t("app.no_api_key") });
      const before = key();
      useKey(values.key);
      trying = true;
      try {
        await ask("GET", "/v1/status");
      } catch (error) {
        if (error.status === 401 || error.status === 403) useKey(before);
        throw error.status === 401 ? new Problem(401, { detail: t("app.key_refused") }) : error;
      } finally {
        trying = false;
      }
      box.close();
      show(true);
    };
    return [h("p", { class: "soft" }, coded(about)), form([input], t("app.use_key"), send, { cancel: () => box.close() })];
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
    set(banner, phase ? t("app.not_ready", { phase: `${named(`phase.${phase}`)}${share}` }) : t("common.unreachable"));
  };
  window.addEventListener("tally:unreachable", () => {
    if (!away) set(banner, t("common.unreachable"));
    away = true;
  });
  const poll = every(1000, new AbortController().signal, ready, (error) => inline(banner, error));
  window.addEventListener("tally:unready", () => {
    ticks = 0;
    poll();
  });
}

start();
