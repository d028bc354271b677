// The contests of a player: those it has applied to, takes part in or runs, and those whose leaderboards have its scores.

import { get, part, walk } from "./api.js";
import { nameOf, stateChip } from "./contests.js";
import { card, chip, h } from "./dom.js";
import { may } from "./rights.js";
import { table } from "./table.js";
import { t } from "./texts.js";

/** Pages of contests that are read. The server looks through many contests for each. */
const PAGES_MAX = 5;
/** Contests whose titles are read one by one. */
const ONE_BY_ONE_MAX = 20;

/** The contest whose leaderboard it is. */
export const contestOf = (board) => /^contest:([^:]+)/.exec(board)?.[1];

/** The contests of a player by id: `{found, complete}`. `boards` are its leaderboards: some callers may read no more. */
export async function contestsOf(player, boards, signal) {
  const { found, complete } = await entered(player, signal);
  const others = [...new Set(boards.map(contestOf))].filter((id) => id && !found.has(id));
  const one = async (id, at) => [id, { id, ...(at < ONE_BY_ONE_MAX && await get(`/v1/contests/${part(id)}`, {}, signal).catch(() => null)) }];
  for (const [id, contest] of await Promise.all(others.map(one))) found.set(id, contest);
  // One that was read alone has all of its staff, and a row of the list says whether the player is among them.
  for (const contest of found.values()) if (Array.isArray(contest.staff)) contest.staff = contest.staff.includes(player);
  return { found, complete };
}

async function entered(player, signal) {
  const found = new Map();
  if (!may("contests:manage")) return { found, complete: true };
  const note = (items) => items.forEach((one) => found.set(one.contest, { ...one, id: one.contest }));
  // Without the list, the leaderboards still have contests.
  const complete = await walk(`/v1/players/${part(player)}/contests`, {}, "items", note, signal, PAGES_MAX).catch(() => false);
  return { found, complete };
}

/** A card; nothing without a contest. A contest has its id if its title and state cannot be read. */
export function contests({ found, complete }) {
  if (found.size === 0) return null;
  const view = table(t("player.contests"), [
    { label: t("player.contest"), cell: name },
    { label: t("player.state"), kind: "fit", cell: ({ state }) => state && stateChip(state) },
  ], { key: ({ id }) => id });
  view.update([...found.values()], { flash: false });
  return card(t("player.contests"), view.element, { foot: complete ? null : h("span", {}, t("player.more_contests")) });
}

function name(contest) {
  const { staff, application, entry } = contest;
  const part = entry ? "entry" : application?.state ?? (staff && "staff");
  return [
    nameOf(contest),
    part && h("span", { class: "under" }, t(`player.part.${part}`), entry?.banned && [" ", chip(t("player.banned"), "bad")]),
  ];
}
