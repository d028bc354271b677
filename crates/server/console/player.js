// One player: its ranks everywhere, closed periods, money, contests, and the acts on it.

import { ask, get, part, withQuery } from "./api.js";
import { link as boardLink } from "./boards.js";
import { link as contestLink } from "./contests.js";
import { inline } from "./dialog.js";
import { card, chip, empty, h, head, put, set } from "./dom.js";
import { grouped, when } from "./format.js";
import { money } from "./player_money.js";
import { ranks } from "./player_ranks.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";

/** Pages of leaderboards that are read; more are reported and left out. */
const PAGES_MAX = 5;
/** Closed periods that are shown of a leaderboard. */
const PERIODS_MAX = 50;

export const title = ({ player }) => player;

export function render(root, { player }, signal) {
  const top = h("div", {}, headOf(player, null, []));
  const wrong = h("div", {});
  const left = h("div", { class: "stack" });
  const right = h("div", { class: "stack" });
  put(root, top, wrong, h("div", { class: "two" }, left, right));
  const path = `/v1/players/${part(player)}`;
  let profile = null;
  const acts = may("audit:read") && audit(player, signal);
  const place = h("div", { class: "stack" });
  const load = async () => {
    const { items, complete } = await everywhere(path, signal);
    set(wrong);
    set(top, headOf(player, profile, items));
    set(place, ranks(player, items, complete, again));
    return items;
  };
  const again = async () => {
    await Promise.all([load(), acts?.reload()]);
  };
  const start = async () => {
    // A player without a score, a member or a profile has no profile to show; its page is empty.
    profile = await get(path, {}, signal).catch((error) => {
      if (error.status === 404) return null;
      throw error;
    });
    const items = await load();
    put(left, place, history(player, items, signal), acts?.element);
    put(right, profile && about(profile), money(player, signal), contests(items));
  };
  start().catch((error) => inline(wrong, error));
}

/** Every leaderboard of the player, up to a bound. */
async function everywhere(path, signal) {
  const items = [];
  let cursor = null;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await get(`${path}/ranks`, { limit: 1000, cursor }, signal);
    items.push(...page.items);
    cursor = page.next_cursor ?? null;
    if (!cursor) return { items, complete: true };
  }
  return { items, complete: false };
}

function headOf(player, profile, items) {
  const banned = items.filter((one) => one.banned).length;
  const marks = [
    banned > 0 && chip(`banned on ${grouped(banned)} of ${grouped(items.length)}`, "bad"),
    profile?.name && profile.name !== player && h("code", { class: "soft name" }, player),
  ].filter(Boolean);
  return head(profile?.name ?? player, { crumb: ["#/players", "Players"], marks: marks.length > 0 ? marks : null });
}

function about({ name, avatar_url: avatar, metadata }) {
  if (!name && !avatar && !metadata) return null;
  const one = ([label, value]) => value && h("div", {}, h("dt", {}, label), h("dd", {}, value));
  const pairs = [["Name", name], ["Picture", avatar], ["Data", metadata && h("code", {}, JSON.stringify(metadata))]];
  return card("Profile", h("div", { class: "body" }, h("dl", { class: "facts" }, pairs.map(one))));
}

/** The contests that are played on a leaderboard of the player. */
function contests(items) {
  const ids = [...new Set(items.map(({ board }) => /^contest:([^:]+)/.exec(board)?.[1]).filter(Boolean))];
  if (ids.length === 0) return null;
  const view = table("Contests with a score", [{ label: "Contest", cell: ({ id }) => h("a", { class: "name", href: contestLink(id) }, id) }], { key: ({ id }) => id });
  view.update(ids.map((id) => ({ id })));
  return card("Contests with a score", view.element);
}

/** Ranks in the closed periods of one leaderboard, newest first. */
function history(player, items, signal) {
  const boards = items.filter(({ ranks: of }) => of.some(({ period }) => period !== "all_time")).map(({ board }) => board);
  if (boards.length === 0) return null;
  const view = table("Closed periods", [
    { label: "Period", cell: ({ board, period }) => h("a", { class: "name", href: withQuery(boardLink(board), { period }) }, period) },
    { label: "Rank", kind: "num", cell: ({ rank, total }) => `${grouped(rank)} of ${grouped(total)}` },
    { label: "Score", kind: "num", cell: ({ score }) => h("span", { class: "strong" }, grouped(score)) },
    { label: "Since", kind: "wide num", cell: ({ at }) => h("span", { class: "soft" }, when(at)) },
  ], { key: ({ period }) => period });
  const place = h("div", { "aria-live": "polite" });
  const load = async (board) => {
    const { items: all } = await get(`/v1/leaderboards/${part(board)}/periods`, { limit: PERIODS_MAX }, signal);
    const closed = all.filter(({ state }) => state === "closed");
    const found = closed.length === 0 ? [] : await rankedIn(board, player, closed, signal);
    view.update(found, { flash: false });
    set(place, found.length > 0 ? view.element : empty("No closed period", "Periods in which the player had a rank appear here once they are over."));
  };
  const show = (board) => load(board).catch((error) => inline(place, error));
  const choose = boards.length > 1 && h("select", { "aria-label": "Leaderboard", change: ({ target }) => show(target.value) }, boards.map((board) => h("option", { value: board }, board)));
  show(boards[0]);
  return card(boards.length > 1 ? "Closed periods" : `Closed periods of ${boards[0]}`, place, { side: choose });
}

async function rankedIn(board, player, periods, signal) {
  const rows = periods.map(({ period }) => ({ board, player, period }));
  const { results } = await ask("POST", "/v1/ranks", { body: JSON.stringify({ ranks: rows }), signal });
  return results.filter(({ error }) => !error);
}

/** What was done to the player, by whom and why. */
function audit(player, signal) {
  const view = table("Acts on this player", [
    { label: "When", kind: "wide", cell: ({ at }) => h("span", { class: "soft" }, when(at)) },
    { label: "Act", cell: ({ action, detail, reason, at }) => [h("span", { class: "strong" }, action), h("span", { class: "under narrow" }, when(at)), detail && h("span", { class: "under name" }, detail), reason && h("span", { class: "under name" }, `“${reason}”`)] },
    { label: "By", cell: ({ actor }) => h("code", {}, actor) },
  ], { key: ({ id }) => id });
  const all = list(view, (cursor) => get("/v1/audit", { subject: player, limit: 20, cursor }, signal), () => empty("No act", "Bans, corrected scores and erasure leave a row each."));
  const said = h("div", {});
  const reload = () => all.reload().catch((error) => inline(said, error));
  reload();
  return { element: card("Acts on this player", h("div", {}, said, all.element)), reload };
}
