// Settings in force with the origin of each, and API keys.

import { change, get, key, part, useKey, withQuery } from "./api.js";
import { confirmTyped, dialog, failed, inline, toast } from "./dialog.js";
import { button, card, chip, empty, h, head, notice, put, set } from "./dom.js";
import { date } from "./format.js";
import { field, form, reason } from "./form.js";
import { isAdmin, may } from "./rights.js";
import { list, table } from "./table.js";

export const title = "Settings";

export function render(root, _parameters, signal) {
  const place = h("div", {}, h("p", { class: "body soft" }, "Reading."));
  const audit = may("audit:read") && h("a", { class: "button", href: "#/audit" }, "Audit log");
  const webhooks = isAdmin() && h("a", { class: "button", href: "#/webhooks" }, "Webhooks");
  put(root, head("Settings", { about: "What is in force on this server. Settings come from flags, TALLY_… variables or tally.toml, in that order.", actions: [webhooks, audit] }),
    h("div", { class: "two" }, h("section", { class: "card" }, place), isAdmin() && keys(signal)));
  get("/v1/status", {}, signal)
    .then(({ settings }) => show(place, settings))
    .catch((error) => inline(place, error));
}

function show(place, settings) {
  if (!settings) {
    set(place, empty("Settings are for admins", "This key may not read them. Use a key of role admin."));
    return;
  }
  const rows = Object.entries(settings).map(([name, { value, source }]) => ({ name, value, source }));
  const view = table("Settings", [
    { label: "Setting", cell: ({ name, source }) => [h("code", {}, name), source !== "default" && h("span", { class: "under name narrow" }, `from ${source}`)] },
    { label: "Value", cell: ({ value }) => (value === "" ? h("span", { class: "soft" }, "not set") : h("code", { class: "strong" }, value)) },
    { label: "From", kind: "wide fit", cell: ({ source }) => chip(source, source === "default" ? "" : "live") },
  ], { key: ({ name }) => name });
  const number = h("span", { class: "soft small", "aria-live": "polite" });
  const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter settings" });
  const own = h("input", { type: "checkbox", id: "own-settings" });
  const look = () => {
    const words = filter.value.trim().toLowerCase();
    const meant = rows.filter(({ name, value, source }) => `${name} ${value}`.toLowerCase().includes(words) && (!own.checked || source !== "default"));
    view.update(meant, { flash: false });
    set(number, `${meant.length} of ${rows.length}`);
  };
  filter.addEventListener("input", look);
  own.addEventListener("input", look);
  const tick = h("span", { class: "tick small" }, own, h("label", { for: "own-settings" }, "Only what was set"));
  set(place, h("div", { class: "top" }, h("h2", {}, "In force"), h("div", { class: "row" }, tick, number)), h("div", { class: "body" }, filter), view.element);
  look();
}

const ROLES = [
  ["admin", "admin: everything"],
  ["server", "server: scores, members, money, contests"],
  ["reader", "reader: boards and ranks only"],
  ["", "scopes: what is chosen below"],
];

const SCOPES = [
  ["scores:write", "Submit scores, remove players, profiles"],
  ["boards:admin", "Make, change and delete leaderboards; correct scores; ban and erase players"],
  ["members:read", "Read members"],
  ["members:write", "Make, change and close members"],
  ["money:read", "Read wallets, transfers and holds"],
  ["money:move", "Transfers, withdrawals, holds, reversals"],
  ["money:mint", "Deposits, and prizes"],
  ["contests:manage", "Make contests, and act for any player"],
  ["audit:read", "Read the audit log"],
];

function keys(signal) {
  const shown = h("div", { "aria-live": "polite" });
  const place = h("div", {});
  const own = () => key()?.split("_")[1] ?? null;
  const revoke = async ({ id, name }) => {
    const text = id === own() ? "This is the key of this tab: the console asks for another one then." : "Every server rejects it within a second.";
    const sure = await confirmTyped("Revoke this key?", text, name || id, "Revoke", { audited: true });
    if (!sure || !(await revoked(id, name, sure))) return;
    toast("ok", `Key ${name || id} is revoked`);
    if (id === own()) useKey(null);
    await all.reload();
  };
  const revoked = async (id, name, { reason: why }) => {
    try {
      await change("DELETE", withQuery(`/v1/keys/${part(id)}`, { reason: why }));
    } catch (error) {
      if (error.code !== "last_admin_key") throw error;
      const text = "No key of role admin is left then: only commands on the server's machine can make one.";
      if (!(await confirmTyped("Revoke the last admin key?", text, name || id, "Revoke it all the same"))) return false;
      await change("DELETE", withQuery(`/v1/keys/${part(id)}`, { force: true, reason: why }));
    }
    return true;
  };
  const view = table("API keys", [
    { label: "Key", cell: ({ id, name, role, scopes, mint_caps: caps, created_at: at }) => [h("span", { class: "strong name" }, name || "no name"), " ", chip(role ?? "scopes", role === "admin" ? "warn" : ""), id === own() && [" ", chip("this tab", "live")], (scopes || caps) && h("span", { class: "under name" }, limits(scopes, caps)), h("span", { class: "under name" }, `${id} · ${date(at)}`)] },
    { label: "Actions", kind: "actions", cell: (one) => button("Revoke", () => revoke(one), { kind: "small danger", failed }) },
  ], { key: ({ id }) => id });
  const make = () => button("New key", () => create(shown, all), { kind: "main small", icon: "plus", failed });
  const nothing = () => empty("Protected mode", "No key was made yet, so this machine alone may ask, and it may do everything. The first key ends that for good.", make());
  const all = list(view, (cursor) => get("/v1/keys", { limit: 100, cursor }, signal), nothing);
  set(place, all.element);
  all.reload().catch((error) => inline(place, error));
  return card("API keys", h("div", {}, shown, place), { side: make() });
}

/** The scopes of a key, and its caps. */
function limits(scopes = [], caps = {}) {
  return [...scopes, ...Object.entries(caps).map(([currency, cap]) => `at most ${cap} ${currency} made a day`)].join(", ");
}

function create(shown, all) {
  const first = all.items().length === 0;
  dialog("New API key", (box) => {
    const about = first && notice("warn", h("p", { class: "strong" }, "This is the first key"), h("p", { class: "small" }, "Protected mode ends at once and for good: from then on every request needs a key, this console too. Make an admin key first."));
    const ticks = SCOPES.map(([scope, what]) => field({ name: scope, label: scope, type: "checkbox", hint: what }));
    const scopes = h("fieldset", { hidden: true }, h("legend", {}, "Scopes"), h("div", { class: "fields" }, ticks));
    const role = field({ name: "role", label: "Role", options: ROLES, value: first ? "admin" : "server" });
    role.querySelector("select").addEventListener("change", ({ target }) => (scopes.hidden = target.value !== ""));
    const content = [
      about,
      field({ name: "name", label: "What it is for", placeholder: "game server 1", maxlength: 128 }),
      role,
      scopes,
      field({ name: "mint_caps", label: "Most new money on a day", placeholder: "KRW=1000000 USD=5000", hint: "A currency and an amount in its smallest unit. Empty: no cap." }),
      reason(),
    ];
    const send = async (values) => {
      const { name, role, mint_caps: caps, reason: why } = values;
      const chosen = SCOPES.map(([scope]) => scope).filter((scope) => values[scope]);
      const may = role ? { role } : { scopes: chosen };
      const made = await change("POST", "/v1/keys", { ...may, ...(name && { name }), ...(caps && { mint_caps: amounts(caps) }), ...(why && { reason: why }) });
      box.close();
      if (first && role === "admin") useKey(made.key);
      set(shown, secret(made, first && role === "admin"));
      await all.reload();
    };
    return form(content, "Create", send, { cancel: () => box.close() });
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
function secret({ name, role = "with scopes", key: text }, used) {
  return shownOnce(`Key ${name || role}`, text, used && h("p", { class: "small" }, "This tab uses it from now on."));
}

/** Shows a secret, this once. */
export function shownOnce(what, text, more) {
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    toast("ok", "Copied");
  };
  const code = h("code", { class: "secret" }, text);
  const close = button("I have kept it", () => code.closest(".notice").remove(), { kind: "small" });
  const clipboard = navigator.clipboard && button("Copy", copy, { kind: "small", failed });
  return h("div", { class: "body" }, notice("ok",
    h("p", { class: "strong" }, `${what}: it is shown this once`),
    code,
    more,
    h("div", { class: "row" }, clipboard, close)));
}
