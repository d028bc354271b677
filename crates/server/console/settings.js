// Settings in force with the origin of each, and API keys.

import { change, get, key, part, useKey, withQuery } from "./api.js";
import { confirmTyped, dialog, failed, inline, toast } from "./dialog.js";
import { button, card, chip, empty, h, head, notice, put, set } from "./dom.js";
import { date, money } from "./format.js";
import { field, form, reason } from "./form.js";
import { isAdmin, may } from "./rights.js";
import { list, table } from "./table.js";
import { named, t } from "./texts.js";

export const title = t("nav.settings");

export function render(root, _parameters, signal) {
  const place = h("div", {}, h("p", { class: "body soft" }, t("settings.reading")));
  const audit = may("audit:read") && h("a", { class: "button", href: "#/audit" }, t("audit.title"));
  const webhooks = isAdmin() && h("a", { class: "button", href: "#/webhooks" }, t("webhooks.title"));
  put(root, head(t("nav.settings"), { about: t("settings.about"), actions: [webhooks, audit] }),
    h("div", { class: "two" }, h("section", { class: "card" }, place), isAdmin() && h("div", { class: "sooner" }, keys(signal))));
  get("/v1/status", {}, signal)
    .then(({ settings }) => show(place, settings))
    .catch((error) => inline(place, error));
}

function show(place, settings) {
  if (!settings) {
    set(place, empty(t("settings.for_admins"), t("settings.for_admins_text")));
    return;
  }
  const rows = Object.entries(settings).map(([name, { value, source }]) => ({ name, value, source }));
  const view = table(t("nav.settings"), [
    { label: t("settings.setting"), cell: ({ name, source }) => [h("code", {}, name), source !== "default" && h("span", { class: "under name narrow" }, t("settings.from_source", { source: named(`source.${source}`) }))] },
    { label: t("settings.value"), cell: ({ value }) => (value === "" ? h("span", { class: "soft" }, t("settings.not_set")) : h("code", { class: "strong" }, value)) },
    { label: t("settings.from"), kind: "wide fit", cell: ({ source }) => chip(named(`source.${source}`), source === "default" ? "" : "live") },
  ], { key: ({ name }) => name });
  const number = h("span", { class: "soft small", "aria-live": "polite" });
  const filter = h("input", { type: "search", placeholder: t("settings.filter"), "aria-label": t("settings.filter_settings") });
  const own = h("input", { type: "checkbox", id: "own-settings" });
  const look = () => {
    const words = filter.value.trim().toLowerCase();
    const meant = rows.filter(({ name, value, source }) => `${name} ${value}`.toLowerCase().includes(words) && (!own.checked || source !== "default"));
    view.update(meant, { flash: false });
    set(number, t("settings.number", { n: meant.length, of: rows.length }));
  };
  filter.addEventListener("input", look);
  own.addEventListener("input", look);
  const tick = h("span", { class: "tick small" }, own, h("label", { for: "own-settings" }, t("settings.only_set")));
  set(place, h("div", { class: "top" }, h("h2", {}, t("settings.in_force")), h("div", { class: "row" }, tick, number)), h("div", { class: "body" }, filter), view.element);
  look();
}

/** The roles of a key; without one it has scopes. */
const ROLES = ["admin", "server", "reader", ""];

const SCOPES = ["scores:write", "boards:admin", "members:read", "members:write", "money:read", "money:move", "money:mint", "contests:manage", "audit:read"];

function keys(signal) {
  const shown = h("div", { "aria-live": "polite" });
  const place = h("div", {});
  const own = () => key()?.split("_")[1] ?? null;
  const revoke = async ({ id, name }) => {
    const text = id === own() ? t("keys.revoke_own") : t("keys.revoke_text");
    const sure = await confirmTyped(t("keys.revoke_sure"), text, name || id, t("keys.revoke"), { audited: true });
    if (!sure || !(await revoked(id, name, sure))) return;
    toast("ok", t("keys.revoked", { key: name || id }));
    if (id === own()) useKey(null);
    await all.reload();
  };
  const revoked = async (id, name, { reason: why }) => {
    try {
      await change("DELETE", withQuery(`/v1/keys/${part(id)}`, { reason: why }));
    } catch (error) {
      if (error.code !== "last_admin_key") throw error;
      if (!(await confirmTyped(t("keys.revoke_last"), t("keys.revoke_last_text"), name || id, t("keys.revoke_all_the_same")))) return false;
      await change("DELETE", withQuery(`/v1/keys/${part(id)}`, { force: true, reason: why }));
    }
    return true;
  };
  const view = table(t("keys.title"), [
    { label: t("keys.key"), cell: ({ id, name, role, scopes, mint_caps: caps, created_at: at }) => [h("span", { class: "strong name" }, name || t("keys.no_name")), " ", chip(role ?? t("keys.scopes_short"), role === "admin" ? "warn" : ""), id === own() && [" ", chip(t("keys.this_tab"), "live")], (scopes || caps) && h("span", { class: "under name" }, limits(scopes, caps)), h("span", { class: "under name" }, `${id} · ${date(at)}`)] },
    { label: t("keys.actions"), kind: "actions", cell: (one) => button(t("keys.revoke"), () => revoke(one), { kind: "small danger", failed }) },
  ], { key: ({ id }) => id });
  const make = () => button(t("keys.new"), () => create(shown, all), { kind: "main small", icon: "plus", failed });
  const nothing = () => empty(t("keys.none"), t("keys.none_text"), make());
  const all = list(view, (cursor) => get("/v1/keys", { limit: 100, cursor }, signal), nothing);
  set(place, all.element);
  all.reload().catch((error) => inline(place, error));
  return card(t("keys.title"), h("div", {}, shown, place), { side: make() });
}

/** The scopes of a key, and its caps. */
function limits(scopes = [], caps = {}) {
  return [...scopes, ...Object.entries(caps).map(([currency, cap]) => t("keys.cap", { cap: money(cap, currency) }))].join(", ");
}

function create(shown, all) {
  const first = all.items().length === 0;
  dialog(t("keys.new_title"), (box) => {
    const about = first && notice("warn", h("p", { class: "strong" }, t("keys.first")), h("p", { class: "small" }, t("keys.first_text")));
    const ticks = SCOPES.map((scope) => field({ name: scope, label: scope, type: "checkbox", hint: t(`scope.${scope.replace(":", "_")}`) }));
    const scopes = h("fieldset", { hidden: true }, h("legend", {}, t("keys.scopes")), h("div", { class: "fields" }, ticks));
    const role = field({ name: "role", label: t("keys.role"), options: ROLES.map((one) => [one, t(`role.${one || "scopes"}`)]), value: first ? "admin" : "server" });
    role.querySelector("select").addEventListener("change", ({ target }) => (scopes.hidden = target.value !== ""));
    const content = [
      about,
      field({ name: "name", label: t("keys.name"), placeholder: t("keys.name_example"), maxlength: 128 }),
      role,
      scopes,
      field({ name: "mint_caps", label: t("keys.caps"), placeholder: "KRW=1000000 USD=5000", hint: t("keys.caps_hint") }),
      reason(),
    ];
    const send = async (values) => {
      const { name, role, mint_caps: caps, reason: why } = values;
      const chosen = SCOPES.filter((scope) => values[scope]);
      const may = role ? { role } : { scopes: chosen };
      const made = await change("POST", "/v1/keys", { ...may, ...(name && { name }), ...(caps && { mint_caps: amounts(caps) }), ...(why && { reason: why }) });
      box.close();
      if (first && role === "admin") useKey(made.key);
      set(shown, secret(made, first && role === "admin"));
      await all.reload();
    };
    return form(content, t("keys.create"), send, { cancel: () => box.close() });
  });
}

/** Reads `KRW=1000000 USD=5000`; the server checks currencies and amounts. */
function amounts(text) {
  return Object.fromEntries(text.split(/[\s,]+/).filter(Boolean).map((one) => {
    const [currency, ...amount] = one.split("=");
    return [currency, amount.join("=")];
  }));
}

/** Shows the new key, this once. */
function secret({ name, role, key: text }, used) {
  return shownOnce(t("keys.made", { key: name || role || t("keys.scopes_short") }), text, used && h("p", { class: "small" }, t("keys.used_here")));
}

/** Shows a secret, this once. */
export function shownOnce(what, text, more) {
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    toast("ok", t("keys.copied"));
  };
  const code = h("code", { class: "secret" }, text);
  const close = button(t("keys.kept"), () => code.closest(".notice").remove(), { kind: "small" });
  const clipboard = navigator.clipboard && button(t("keys.copy"), copy, { kind: "small", failed });
  return h("div", { class: "body" }, notice("ok",
    h("p", { class: "strong" }, t("keys.shown_once", { what })),
    code,
    more,
    h("div", { class: "row" }, clipboard, close)));
}
