// Players and contests: found by the beginning of a name, and the last bans with what became of them.

import { actorOf, readNames } from "./acts.js";
import { get, part, somePage } from "./api.js";
import { actsOn } from "./ban.js";
import { link as boardLink } from "./boards.js";
import { nameOf, stateChip as contestState } from "./contests.js";
import { inline } from "./dialog.js";
import { card, chip, empty, h, head, notice, playerLink, put, set } from "./dom.js";
import { when } from "./format.js";
import { field, form, storedReason } from "./form.js";
import { memberAfter } from "./members.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";
import { t } from "./texts.js";

const FOUND_MAX = 20;
const BANS = 20;
/** Bans of one player by one actor for one reason, within so many milliseconds, are one row. */
const TOGETHER = 60000;

export const title = t("players.title");

export function render(root, { q = "", player }, signal) {
  if (player) {
    location.replace(`#/players/${part(player)}`);
    return;
  }
  const found = h("div", { "aria-live": "polite" });
  const where = may("members:read") ? t("players.search_members") : t("players.search");
  const input = field({ name: "q", label: where, type: "search", required: true, value: q, hint: t("players.search_about") });
  const send = ({ q: text }) => {
    // The address has the search, so it can be shared and gone back to.
    if (text === q) return look(found, text, signal);
    location.hash = `/players?q=${encodeURIComponent(text)}`;
    return null;
  };
  const search = h("section", { class: "card" }, h("div", { class: "body" }, form([input], t("players.find"), send, { inline: true })));
  put(root, head(t("players.title"), { about: t("players.about") }), h("div", { class: "stack" }, search, found, may("audit:read") && bans(signal)));
  if (q) look(found, q, signal).catch((error) => inline(found, error));
  else input.querySelector("input").focus();
}

async function look(place, text, signal) {
  const [players, contests] = await Promise.all([lookForPlayers(text, signal), lookForContests(text, signal)]);
  set(place, h("div", { class: "stack" }, players, contests));
}

/** A card with the contests whose id or title begins so; nothing without one. */
async function lookForContests(text, signal) {
  const { items, next_cursor: more } = await somePage((cursor) => get("/v1/contests", { prefix: text, limit: FOUND_MAX, cursor }, signal));
  if (items.length === 0) return more ? notice("warn", t("contests.none_found", { text }), ". ", t("players.not_all")) : null;
  const view = table(t("players.found_contests"), [
    { label: t("player.contest"), cell: (contest) => nameOf(contest) },
    { label: t("player.state"), kind: "fit", cell: ({ state }) => contestState(state) },
  ], { key: ({ id }) => id });
  view.update(items);
  return card(t("players.found_contests"), view.element, { foot: more ? h("span", {}, t("players.more")) : null });
}

async function lookForPlayers(text, signal) {
  const { items, complete } = await get("/v1/players", { prefix: text, limit: FOUND_MAX }, signal);
  if (items.length === 0) {
    const more = complete ? null : [" ", t("players.not_all")];
    return notice("warn", h("p", { class: "strong" }, t("players.none", { text })), h("p", { class: "small" }, t("players.none_about"), more));
  }
  const states = await bansOf(items.map(({ player }) => player), signal);
  const view = table(t("players.found_list"), [
    { label: t("board.player"), cell: ({ player, member }) => [playerLink(player), banned(states.get(player)), member && h("span", { class: "under name" }, playerLink(player, "soft", member.name)), member?.closed_at && chip(t("players.closed"), "bad")] },
    { label: t("players.member"), cell: ({ member }) => (member ? [h("span", { class: "name" }, member.login_id), member.phone_number && h("span", { class: "under" }, member.phone_number)] : h("span", { class: "soft" }, t("players.no_member"))) },
    { label: t("players.found_on"), kind: "wide", cell: ({ boards }) => boards.map((board) => h("div", {}, h("a", { class: "name", href: boardLink(board) }, board))) },
  ], { key: ({ player }) => player });
  // Members come first: they are fewer, and what is known of them says which one is meant.
  view.update(items.toSorted((one, other) => Boolean(other.member) - Boolean(one.member)));
  return card(t("players.found"), view.element, { side: complete ? null : h("span", { class: "small soft" }, t("players.more")) });
}

/** The number of leaderboards of each player, with the names of those that have banned it: `{all, banned}`. */
async function bansOf(players, signal) {
  const one = async (player) => {
    const { items } = await get(`/v1/players/${part(player)}/ranks`, { limit: 1000 }, signal);
    return [player, { all: items.length, banned: items.filter(({ banned }) => banned).map(({ board }) => board) }];
  };
  return new Map(await Promise.all([...new Set(players)].map(one)));
}

/** Of a player whose bans could not be read. */
const NO_BANS = { all: 0, banned: [] };

function banned(state) {
  const mark = banChip(state);
  return mark && h("span", { class: "under" }, mark);
}

/** Whether a player is banned, and whether on all leaderboards that it is on: it may still submit to others. `others` are those of contests that are over, if it has ranks there. */
export function banChip({ all, banned: on, others = false }) {
  const everywhere = t(others ? "player.banned_but_over" : "player.banned_everywhere");
  return on.length > 0 && chip(on.length === all ? everywhere : t("player.banned_on", { banned: on.length, all }), "bad");
}

/** The same in few words, for a row of a payment with `bans`: its own leaderboard comes first. */
export function paymentBan({ board, bans }) {
  const { all, banned: on } = bans ?? NO_BANS;
  return on.length > 0 && chip(on.includes(board) ? t("player.banned") : t("player.banned_on", { banned: on.length, all }), "bad");
}

/** The same rows with the bans of their players, each of which is read once. Without them the rows are shown all the same. */
export async function withBans(rows, signal) {
  const states = await bansOf(rows.map(({ player }) => player), signal).catch(() => new Map());
  return rows.map((row) => ({ ...row, bans: states.get(row.player) }));
}

/** The last bans of the audit log. A ban everywhere is one row, and a row says whether the player is still banned. */
function bans(signal) {
  const view = table(t("players.bans"), [
    { label: t("board.player"), cell: ({ player, reason, still, boards, at, actor }) => [playerLink(player), memberAfter(player), " ", stateChip(still, boards.length), h("span", { class: "under name narrow" }, when(at), " · ", actorOf(actor)), h("span", { class: "under name" }, reason ? `“${storedReason(reason)}”` : t("player.no_reason")), h("span", { class: "under" }, actsOn(player))] },
    { label: t("players.on"), cell: ({ boards }) => boards.map((board) => h("div", {}, h("a", { class: "name", href: boardLink(board) }, board))) },
    { label: t("players.when"), kind: "wide num", cell: ({ at }) => h("span", { class: "soft" }, when(at)) },
    { label: t("players.by"), kind: "wide who", cell: ({ actor }) => actorOf(actor) },
  ], { key: ({ id }) => id });
  const load = async (cursor) => {
    const page = await get("/v1/audit", { action: "player.banned", limit: BANS, cursor }, signal);
    const rows = together(page.items);
    const states = await bansOf(rows.map(({ player }) => player), signal);
    return { ...page, items: rows.map((row) => ({ ...row, still: row.boards.filter((board) => states.get(row.player).banned.includes(board)).length })) };
  };
  const all = list(view, load, () => empty(t("players.no_ban"), t("players.no_ban_about")));
  const said = h("div", {});
  readNames(signal).then(all.reload).catch((error) => inline(said, error));
  return card(t("players.bans"), h("div", {}, said, all.element));
}

function together(items) {
  const rows = [];
  for (const { id, subject: player, detail: board, actor, reason, at } of items) {
    const last = rows.at(-1);
    const same = last && last.player === player && last.actor === actor && last.reason === reason && Date.parse(last.at) - Date.parse(at) < TOGETHER;
    if (same) last.boards.push(board);
    else rows.push({ id, player, boards: [board], actor, reason, at });
  }
  return rows;
}

/** Whether a ban of so many leaderboards still holds. */
function stateChip(still, all) {
  if (still === 0) return chip(t("players.restored"), "ok");
  return chip(still === all ? t("player.banned") : t("player.banned_on", { banned: still, all }), "bad");
}
