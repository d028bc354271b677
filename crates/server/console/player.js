// One player: its ranks everywhere, closed periods, money, missed prizes, contests, and the acts on it.

import { actCell, actorOf, readNames, withReversals } from "./acts.js";
import { get, part, walk } from "./api.js";
import { actsOn } from "./ban.js";
import { inline } from "./dialog.js";
import { card, chip, empty, h, head, put, renew, set } from "./dom.js";
import { when } from "./format.js";
import { every, isEdited } from "./live.js";
import { link as memberPage, memberOf } from "./members.js";
import { applied, contestOf, contests, contestsOf, isOver } from "./player_contests.js";
import { history } from "./player_history.js";
import { money } from "./player_money.js";
import { owed } from "./player_owed.js";
import { ranks } from "./player_ranks.js";
import { banChip } from "./players.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";
import { t } from "./texts.js";

/** Milliseconds between refreshes: each asks much. */
const PAUSE = 10000;
/** Pages of leaderboards that are read; more are reported and left out. */
const PAGES_MAX = 5;
/** Leaderboards that are read one by one for their periods. */
const ONE_BY_ONE_MAX = 20;

export const title = ({ player }) => player;

export function render(root, { player }, signal) {
  const top = h("div", {});
  const wrong = h("div", {});
  const left = h("div", { class: "stack" });
  const right = h("div", { class: "stack" });
  put(root, top, wrong, h("div", { class: "two" }, left, right));
  const path = `/v1/players/${part(player)}`;
  let profile = null;
  let rules = null;
  let played = { found: new Map() };
  let [past, purse, missed] = [null, null, null];
  let bannedOn = new Set();
  let [member, shown] = [null, []];
  const showHead = () => renew(top, [profile, member?.id, member?.name, shown.map(({ board, banned, final }) => [board, banned, final])], () => headOf(player, profile, member, shown));
  showHead();
  const known = sharedMember(player, signal);
  const acts = may("audit:read") ? audit(player, known.read, signal) : null;
  const places = ranks(player, () => again());
  const joined = contests(player, signal);
  let [turns, newest] = [0, 0];
  const load = async () => {
    turns += 1;
    const turn = turns;
    const { items, complete } = await everywhere(path, signal);
    const names = items.map(({ board }) => board);
    // The page changes no rule of a leaderboard.
    const read = await Promise.all([rules ?? withPeriods(names, signal), contestsOf(player, names, signal, played.found)]);
    // A refresh that began before a ban may be answered after it.
    if (turn < newest) return new Set(names);
    newest = turn;
    [rules, played] = read;
    bannedOn = new Set(items.filter(({ banned }) => banned).map(({ board }) => board));
    shown = items.map((item) => ({ ...item, final: isOver(played.found.get(contestOf(item.board))), rules: rules.get(item.board)?.periods ?? [] }));
    showHead();
    places.update(shown, complete, applied(played.found));
    joined.update(played, shown);
    set(wrong);
    return new Set(names);
  };
  const again = async () => {
    await load();
    known.forget();
    // A ban takes the ranks of closed periods too, and is said beside each prize.
    await Promise.all([past?.reload(), missed?.reload(), acts?.reload()]);
  };
  const start = async () => {
    // A player without a score, a member or a profile has no profile to show; its page is empty.
    profile = await get(path, {}, signal).catch((error) => {
      if (error.status === 404) return null;
      throw error;
    });
    // As the API answers them: the player need not be in an open period.
    const names = await load();
    const boards = [...rules.values()].filter(({ board }) => names.has(board));
    past = history(player, boards, (board) => bannedOn.has(board), signal);
    put(left, places.element, past?.element, acts?.element);
    // A new member, and a payment, show what they changed without leaving the page.
    const moved = () => {
      known.forget();
      return Promise.all([purse?.reload(), missed?.reload(), acts?.reload()]);
    };
    const told = (found) => {
      member = found;
      showHead();
    };
    purse = money(player, known.read, signal, { changed: moved, adjusted: () => acts?.reload(), told, contests: () => played.found });
    missed = owed(player, known.read, signal, moved);
    put(right, profile && about(profile), purse?.element, missed?.element, joined.element);
  };
  const refresh = async () => {
    await load();
    known.forget();
    await Promise.all([past?.reload(), purse?.reload(), missed?.reload(), acts?.refresh()]);
  };
  let started = false;
  every(PAUSE, signal, async () => {
    if (started && isEdited(root)) return;
    await (started ? refresh() : start());
    started = true;
  }, (error) => inline(wrong, error));
}

/** The member of the player, which the parts of the page that are read together share: it is read once, until it is forgotten. */
function sharedMember(player, signal) {
  let asked = null;
  const forget = () => (asked = null);
  const read = () => {
    if (!asked) {
      asked = memberOf(player, signal);
      asked.catch(forget);
    }
    return asked;
  };
  return { read, forget };
}

/**
 * The leaderboards of the player, up to a bound. Those with an open score or a ban come first: kept periods, which take more pages,
 * leave none of them out.
 */
async function everywhere(path, signal) {
  const all = new Map();
  const add = (found) => found.forEach((one) => all.has(one.board) || all.set(one.board, one));
  const open = await walk(`${path}/ranks`, {}, "items", add, signal, PAGES_MAX);
  const kept = await walk(`${path}/ranks`, { closed: true }, "items", add, signal, PAGES_MAX);
  return { items: [...all.values()], complete: open && kept };
}

/** The heading: the name of the profile or the id of the player, and beside it the id and the name of its member. */
function headOf(player, profile, member, items) {
  const open = items.filter(({ banned, final }) => banned || !final);
  const banned = open.filter((one) => one.banned).map(({ board }) => board);
  const marks = [
    banChip({ all: open.length, banned, others: items.length > open.length }),
    profile?.name && profile.name !== player && h("code", { class: "soft name" }, player),
    member && ![player, profile?.name].includes(member.name) && h("span", { class: "name" }, h("a", { href: memberPage(member.id) }, member.name)),
  ].filter(Boolean);
  return head(profile?.name ?? player, { crumb: ["#/players", t("players.title")], marks: marks.length > 0 ? marks : null });
}

/** Those of the leaderboards that have periods, by name. Those of contests, which may be many and seldom have some, come last. */
async function withPeriods(names, signal) {
  const own = names.filter((name) => !contestOf(name));
  const first = [...own, ...names.filter(contestOf)].slice(0, ONE_BY_ONE_MAX);
  const found = own.length > ONE_BY_ONE_MAX ? await listed(signal) : await Promise.all(first.map((name) => one(name, signal)));
  return new Map(found.filter((board) => board?.periods.length > 0).map((board) => [board.board, board]));
}

async function listed(signal) {
  const found = [];
  await walk("/v1/leaderboards", {}, "items", (items) => found.push(...items), signal, PAGES_MAX);
  return found;
}

/** A leaderboard; nothing for one that was deleted by now. */
async function one(name, signal) {
  return get(`/v1/leaderboards/${part(name)}`, {}, signal).catch((error) => {
    if (error.status === 404) return null;
    throw error;
  });
}

function about({ name, avatar_url: avatar, metadata }) {
  if (!name && !avatar && !metadata) return null;
  const one = ([label, value]) => value && h("div", {}, h("dt", {}, label), h("dd", {}, value));
  const pairs = [[t("player.name"), name], [t("player.picture"), avatar], [t("player.data"), metadata && h("code", {}, JSON.stringify(metadata))]];
  return card(t("player.profile"), h("div", { class: "body" }, h("dl", { class: "facts" }, pairs.map(one))));
}

/** The acts on the player and its member (`member()` reads it), with their actors and reasons. */
function audit(player, member, signal) {
  const view = table(t("player.acts"), [
    { label: t("players.when"), kind: "wide", cell: ({ at }) => h("span", { class: "soft" }, when(at)) },
    { label: t("player.act"), cell: (one) => [actCell(one), one.back && chip(t("wallet.taken_back", { sum: one.back }))] },
    { label: t("players.by"), kind: "wide who", cell: ({ actor }) => actorOf(actor) },
  ], { key: ({ id }) => id });
  const all = list(view, actsOf(player, member, signal), () => empty(t("player.no_act"), t("player.no_act_about")));
  const said = h("div", {});
  const shown = (read) => read.then(() => set(said), (error) => inline(said, error));
  const reload = () => shown(readNames(signal).then(all.reload));
  const refresh = () => shown(all.refresh());
  reload();
  return { element: card(t("player.acts"), h("div", {}, said, all.element), { side: actsOn(player) }), reload, refresh };
}

/** Acts whose subject is a player. */
const OF_PLAYER = /^(player|score)\./;

/** Reads the acts on a player and on its member, newest first. A cursor has one of each. */
function actsOf(player, member, signal) {
  let subjects = [player];
  // Acts on a leaderboard of the same name may fill a whole page.
  return async (cursor) => {
    if (!cursor) subjects = [...new Set([player, (await member())?.id ?? player])];
    const page = (subject, at) => (cursor && !cursor[at] ? { items: [] } : get("/v1/audit", { subject, limit: 20, cursor: cursor?.[at] }, signal));
    const pages = await Promise.all(subjects.map(page));
    // A leaderboard or a contest may have the name of the player.
    const acts = pages.flatMap(({ items: found }, at) => (at > 0 ? found : found.filter(({ action }) => OF_PLAYER.test(action))));
    const items = acts.sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
    const next = pages.map((one) => one.next_cursor ?? null);
    return { items: await withReversals(items, signal), next_cursor: next.some(Boolean) ? next : null };
  };
}
