// Rows of the audit log for people: the act, its subject and its actor. Ids are shown as names as far as the caller may read them.

import { get, kept, part } from "./api.js";
import { h, playerLink, set } from "./dom.js";
import { storedReason } from "./form.js";
import { money, when } from "./format.js";
import { loginLink } from "./members.js";
import { isAdmin } from "./rights.js";
import { named, t, tt } from "./texts.js";

/** The acts of the log, as they are stored. */
export const ACTS = [
  "key.created", "key.revoked",
  "leaderboard.created", "leaderboard.changed", "leaderboard.deleted",
  "player.banned", "player.restored", "player.erased", "score.corrected",
  "member.created", "member.changed", "member.closed", "member.erased", "member.exported",
  "money.deposited", "money.withdrawn", "money.transferred", "money.reversed",
  "contest.created", "contest.changed", "contest.opened", "contest.accepted", "contest.rejected",
  "contest.started", "contest.finished", "contest.settled", "contest.repaid", "contest.cancelled",
  "series.created", "series.changed", "series.deleted", "prizes.repaid",
  "webhook.created", "webhook.changed", "webhook.deleted",
  "store.migrated", "store.repaired", "store.restored",
  "secret.rotated", "secret.dropped", "secret.reset", "ledger.archived",
];

/** Names of keys and addresses of webhooks, by id. */
let keys = new Map();
let hooks = new Map();

/** What one key may read, another may not. */
window.addEventListener("tally:key", () => {
  keys = new Map();
  hooks = new Map();
});

/** Reads the names that one request has for all; before the first rows. */
export async function readNames(signal) {
  if (!isAdmin()) return;
  const [one, other] = await Promise.all([get("/v1/keys", { limit: 1000 }, signal), get("/v1/webhooks", {}, signal)]);
  keys = new Map(one.items.filter(({ name }) => name).map(({ id, name }) => [id, name]));
  hooks = new Map(other.items.map(({ id, url }) => [id, url]));
}

/** Actors to choose from: the keys, and the parts of the server. */
export function actors() {
  const parts = ["local", "command_line", "background"].map((name) => [name, named(`actor.${name}`)]);
  return [...[...keys].map(([id, name]) => [`key:${id}`, name]), ...parts];
}

/** The words of an act. */
export function act(action) {
  return named(`act.${action.replace(".", "_")}`);
}

/** By whom: a key or a member by its name, or a part of the server. */
export function actorOf(actor) {
  const [kind, id] = actor.split(":");
  if (kind === "key") return keys.has(id) ? h("span", { class: "name", title: actor }, keys.get(id)) : h("code", {}, actor);
  if (kind === "member") return loginLink(id);
  return named(`actor.${kind}`);
}

/** What an act was done to, as a link to its page. */
export function subjectOf({ action, subject }) {
  const link = (page, text) => h("a", { class: "name", href: `#/${page}/${part(subject)}` }, text ?? subject);
  switch (action.split(".")[0]) {
    case "key":
      return h("a", { class: "name", href: "#/settings" }, keys.get(subject) ?? h("code", {}, subject));
    case "leaderboard":
    case "prizes":
      return link("boards");
    case "player":
    case "score":
      return playerLink(subject);
    case "member":
      return loginLink(subject);
    case "money":
      // A reversal is of a transfer, and its detail names the members.
      return action === "money.reversed" || !UUID.test(subject) ? h("code", {}, subject) : loginLink(subject);
    case "contest":
      return UUID.test(subject) ? later(link("contests"), `/v1/contests/${part(subject)}`, ({ title }) => title) : link("contests");
    case "series":
      return UUID.test(subject) ? later(link("series"), `/v1/contest-series/${part(subject)}`, ({ template }) => template.title) : link("series");
    case "webhook":
      return link("webhooks", hooks.get(subject));
    default:
      return h("span", { class: "name" }, subject);
  }
}

/** The cell of an act: its name, its detail and its reason. On a phone it has the columns of the time and the actor, too. */
export function actCell({ at, action, actor, detail, reason }) {
  return [
    h("span", { class: "strong" }, act(action)),
    h("span", { class: "under name narrow" }, when(at), " · ", actorOf(actor)),
    detail && h("span", { class: "under name" }, detailOf({ action, detail })),
    reason && h("span", { class: "under name" }, `“${storedReason(reason)}”`),
  ];
}

/** The detail of an act. One with money has the amount in the smallest unit, and members by their ids. */
function detailOf({ action, detail }) {
  const [, units, currency, from, to, id] = (action.startsWith("money.") && MOVED.exec(detail)) || [];
  if (units === undefined) return counted(action, detail);
  const sides = [from && "from", to && "to"].filter(Boolean).join("_");
  const values = { sum: money(units, currency), ...(from && { from: loginLink(from) }), ...(to && { to: loginLink(to) }) };
  return [sides ? tt(`audit.moved.${sides}`, values) : values.sum, ", ", t("audit.transaction", { id })];
}

/** A detail with a count, such as `2 payments`, in the reader's language. */
function counted(action, detail) {
  const [, before = "", n, rest = ""] = COUNTED.get(action)?.exec(detail) ?? [];
  if (n === undefined) return detail;
  return `${before}${t(`audit.counted.${action.endsWith("repaid") ? "payments" : "players"}`, { n })}${rest}`;
}

const PLAYERS = /^()(\d+) players?(: .*)$/s;
const COUNTED = new Map([
  ["contest.accepted", PLAYERS],
  ["contest.rejected", PLAYERS],
  ["contest.repaid", /^()(\d+) payments?$/],
  ["prizes.repaid", /^(.*: )(\d+) payments?$/s],
]);
const MOVED = /^(\d+) (\S+)(?: from ([0-9a-f-]{36}))?(?: to ([0-9a-f-]{36}))?, transaction ([0-9a-f-]{36})$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const subjects = kept();

/** A link that gets its name once that is read. Without an answer the id stays. */
function later(link, path, name) {
  subjects.read(path).then((found) => set(link, name(found))).catch(() => {});
  return link;
}
