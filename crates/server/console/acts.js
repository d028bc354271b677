// Rows of the audit log for people: the act, its subject and its actor. Ids are shown as names as far as the caller may read them.

import { Problem, get, kept, part, walk, withQuery } from "./api.js";
import { h, playerLink, set } from "./dom.js";
import { storedReason } from "./form.js";
import { grouped, money, periodName, sourceOf, when } from "./format.js";
import { findMember, loginLink, memberAfter } from "./members.js";
import { periodLine, periodOfLine } from "./period_zone.js";
import { isAdmin, may } from "./rights.js";
import { named, t, tt } from "./texts.js";

/** The acts of the log, as they are stored. */
export const ACTS = [
  "key.created", "key.revoked",
  "leaderboard.created", "leaderboard.changed", "leaderboard.deleted",
  "player.banned", "player.restored", "player.removed", "player.erased", "player.paid", "score.corrected",
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

/** The keys and the parts of the server: `[id, name]`. */
function actors() {
  const parts = ["local", "command_line", "background"].map((name) => [name, named(`actor.${name}`)]);
  return [...[...keys].map(([id, name]) => [`key:${id}`, name]), ...parts];
}

const same = (one, other) => one.toLowerCase() === other.toLowerCase();

/** Actors to choose from: `[what is typed, what is shown beside it]`. Keys of one name are typed by their ids. */
export function actorChoices() {
  const all = actors();
  const isOne = (name) => all.filter(([, other]) => same(other, name)).length === 1;
  return all.map(([id, name]) => (isOne(name) ? [name, id] : [id, name]));
}

/** An actor as it is typed. */
export function typedActor(actor) {
  return actorChoices().find(([, id]) => id === actor)?.[0] ?? actor;
}

/** The actor that was typed: an id, the name of a key or a part of the server, or what finds a member. */
export async function actorNamed(text) {
  if (!text || ACTOR.test(text)) return text;
  const fits = actors().filter(([, name]) => same(name, text));
  if (fits.length > 1) throw new Problem(0, { detail: t("audit.many_actors", { name: text, n: fits.length, ids: fits.slice(0, IDS_MAX).map(([id]) => id).join(", ") }) });
  if (fits.length === 1) return fits[0][0];
  const member = may("members:read") && (await findMember(text));
  if (!member) throw new Problem(0, { detail: t("audit.no_actor", { name: text }) });
  return `member:${member.id}`;
}

/** Pages of bans that are read to find those of some players. */
const BAN_PAGES = 5;

/**
  * Says when, by whom and why players were banned: a function from rows with a `board` and a `player` to the same with their `ban`
  * of the audit log, if the caller may read it and has it among the newest. It reads the log once for new rows; `anew` forgets others.
 */
export function explained(signal) {
  const known = new Map();
  const key = ({ board, player }) => JSON.stringify([board, player]);
  const find = async (missing) => {
    await walk("/v1/audit", { action: "player.banned" }, "items", (items) => {
      for (const { subject: player, detail: board, at, actor, reason } of items) {
        const one = key({ board, player });
        if (missing.delete(one)) known.set(one, { at, actor, reason });
      }
      return missing.size > 0;
    }, signal, BAN_PAGES);
    missing.forEach((one) => known.set(one, null));
  };
  return async (rows, anew) => {
    const keys = new Set(rows.map(key));
    if (anew) [...known.keys()].filter((one) => !keys.has(one)).forEach((one) => known.delete(one));
    const missing = new Set([...keys].filter((one) => !known.has(one)));
    // Without the log the rows are shown all the same.
    if (may("audit:read") && missing.size > 0) await readNames(signal).then(() => find(missing)).catch(() => null);
    return rows.map((row) => ({ ...row, ban: known.get(key(row)) ?? null }));
  };
}

/** The lines of a ban below its player. */
export function banLines(ban) {
  if (!ban) return null;
  const { at, actor, reason } = ban;
  return [h("span", { class: "under name" }, reason ? `“${storedReason(reason)}”` : t("player.no_reason")), h("span", { class: "under name" }, when(at), " · ", actorOf(actor))];
}

/** The newest reversals that are read to mark what was taken back. */
const REVERSALS = 1000;

/** The same acts, those of money with `back`, the sum that was taken back of them. */
export async function withReversals(acts, signal) {
  const moved = ({ action, detail }) => (action.startsWith("money.") && MOVED.exec(detail)) || [];
  if (acts.every((one) => moved(one).length === 0)) return acts;
  const { items } = await get("/v1/audit", { action: "money.reversed", limit: REVERSALS }, signal);
  const sums = new Map();
  for (const one of items) sums.set(one.subject, (sums.get(one.subject) ?? 0n) + BigInt(moved(one)[1] ?? 0));
  return acts.map((one) => {
    const [, , currency, , , id] = moved(one);
    return sums.has(id) ? { ...one, back: money(sums.get(id), currency) } : one;
  });
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
      return [playerLink(subject), memberAfter(subject)];
    case "member":
      return loginLink(subject);
    case "money":
      // A reversal is of a transfer, and its detail names the members.
      return action === "money.reversed" || !UUID.test(subject) ? h("code", {}, subject) : loginLink(subject);
    case "contest":
      return contestLink(subject);
    case "series":
      return UUID.test(subject) ? later(link("series"), `/v1/contest-series/${part(subject)}`, ({ template }) => template.title) : link("series");
    case "webhook":
      return link("webhooks", hooks.get(subject));
    default:
      return h("span", { class: "name" }, subject);
  }
}

/** The cell of an act: its name, its detail and its reason. On a phone it has the columns of the time and the actor, too. */
export function actCell({ at, action, actor, subject, detail, reason }) {
  return [
    h("span", { class: "strong" }, act(action)),
    h("span", { class: "under name narrow" }, when(at), " · ", actorOf(actor)),
    detail && h("span", { class: "under name" }, detailOf({ action, subject, detail })),
    reason && h("span", { class: "under name" }, `“${storedReason(reason)}”`),
  ];
}

/** The detail of an act, as people read it. One with money has the amount in the smallest unit, and members by their ids. */
function detailOf({ action, subject, detail }) {
  const own = { "score.corrected": corrected, "player.removed": removed, "player.paid": paid }[action]?.(detail);
  if (own) return own;
  const [, units, currency, from, to, id] = (action.startsWith("money.") && MOVED.exec(detail)) || [];
  if (units === undefined) return counted({ action, subject, detail });
  const sides = [from && "from", to && "to"].filter(Boolean).join("_");
  const values = { sum: money(units, currency), ...(from && { from: loginLink(from) }), ...(to && { to: loginLink(to) }) };
  return [sides ? tt(`audit.moved.${sides}`, values) : values.sum, ", ", transaction(id)];
}

/** A detail with a count, such as `2 payments`, in the reader's language. */
function counted({ action, subject, detail }) {
  const [, before = "", n, rest = ""] = COUNTED.get(action)?.exec(detail) ?? [];
  if (n === undefined) return detail;
  const of = before && [periodLine(subject, before.slice(0, -": ".length)), ": "];
  return [of, t(`audit.counted.${action.endsWith("repaid") ? "payments" : "players"}`, { n }), rest];
}

/** `arcade weekly:2026-11-23: 9 to 3`; without a period it is of all time. */
function corrected(detail) {
  const [, board, period, before, after] = CORRECTED.exec(detail) ?? [];
  if (board === undefined) return null;
  const place = period ? periodOfLine(board, period) : board;
  return tt("audit.corrected", { place, before: before === "none" ? t("audit.no_score") : scoreOf(before), after: scoreOf(after) });
}

/** A stored score; its subscore follows a slash. */
const scoreOf = (text) => text.split("/").map((number) => grouped(number)).join("/");

/** `arcade: all_time 9, weekly:2026-11-23 7, and 3 more`: the scores that went. */
export function removed(detail) {
  const [, all, more] = MORE.exec(detail);
  const end = all.lastIndexOf(": ");
  const scores = all.slice(end + 2).split(", ").map((one) => one.split(" "));
  if (end < 0 || scores.some(({ length }) => length !== 2)) return null;
  const parts = scores.map(([period, score]) => `${periodName(period)} (${scoreOf(score)})`);
  return `${all.slice(0, end)}: ${[...parts, ...(more ? [t("audit.more_scores", { n: Number(more) })] : [])].join(", ")}`;
}

/** `prize: 700 KRW to {member} of arcade/weekly:2026-11-23, transaction …`, with a link to the period or the contest. */
function paid(detail) {
  const [, kind, units, currency, reference, id] = PAID.exec(detail) ?? [];
  const of = reference && sourceOf(reference);
  if (!of) return null;
  const { board, period, contest } = of;
  const place = contest ? contestLink(contest) : h("a", { class: "name", href: withQuery(`#/boards/${part(board)}`, { period }) }, periodOfLine(board, period));
  return [tt(`audit.paid.${kind}`, { sum: money(units, currency), place }), ", ", transaction(id)];
}

/** A transfer, as a link to both sides of it. */
function transaction(id) {
  return tt("audit.transaction", { id: may("money:read") ? h("a", { href: `#${withQuery("/wallets", { transaction: id })}` }, id) : id });
}

const ACTOR = /^(key:[0-9a-f]{12}|member:[0-9a-f-]{36}|local|command_line|background|unknown)$/;
/** Keys of one name that a message has. */
const IDS_MAX = 5;
const CORRECTED = /^(.+?)(?: ([a-z0-9_-]+:\d{4}-\d\d-\d\d(?:T\d\d:\d\d)?))?: (\S+) to (\S+)$/s;
const PAID = /^(prize|refund): (\d+) (\S+) to [0-9a-f-]{36} of (.+), transaction ([0-9a-f-]{36})$/s;
const MORE = /^(.*?)(?:, and (\d+) more)?$/s;
const PLAYERS = /^()(\d+) players?(: .*)$/s;
const COUNTED = new Map([
  ["contest.accepted", PLAYERS],
  ["contest.rejected", PLAYERS],
  ["contest.repaid", /^()(\d+) payments?$/],
  ["prizes.repaid", /^(.*: )(\d+) payments?$/s],
]);
const MOVED = /^(\d+) (\S+)(?: from ([0-9a-f-]{36}))?(?: to ([0-9a-f-]{36}))?, transaction ([0-9a-f-]{36})$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A link to a contest. One that the server named has its title, once that is read. */
function contestLink(id) {
  const link = h("a", { class: "name", href: `#/contests/${part(id)}` }, id);
  return UUID.test(id) ? later(link, `/v1/contests/${part(id)}`, ({ title }) => title) : link;
}

const subjects = kept();

/** A link that gets its name once that is read. Without an answer the id stays. */
function later(link, path, name) {
  subjects.read(path).then((found) => set(link, name(found))).catch(() => {});
  return link;
}
