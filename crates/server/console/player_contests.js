// The contests of a player: those it has applied to, takes part in or runs, and those whose leaderboards have its scores.

import { get, part, walk } from "./api.js";
import { outcome } from "./contest_payments.js";
import { link, nameOf, stateChip } from "./contests.js";
import { inline } from "./dialog.js";
import { card, chip, h, set } from "./dom.js";
import { grouped, money } from "./format.js";
import { may } from "./rights.js";
import { table } from "./table.js";
import { t, tt } from "./texts.js";

/** Pages of contests that are read. The server looks through many contests for each. */
const PAGES_MAX = 5;
/** Contests whose titles, or prizes, are read one by one. */
const ONE_BY_ONE_MAX = 20;
/** Pages of the prizes of a contest that are read to find those of the player. */
const PRIZE_PAGES_MAX = 3;

/** The contest whose leaderboard it is. */
export const contestOf = (board) => /^contest:([^:]+)/.exec(board)?.[1];

/** A contest that is over keeps its result. */
export const isOver = (contest) => ["settled", "cancelled"].includes(contest?.state);

/** Those that are open and have an application of the player that is not rejected. */
export function applied(found) {
  return [...found.values()].filter(({ state, application }) => state === "open" && application && application.state !== "rejected");
}

/**
 * The contests of a player by id: `{found, complete}`. `boards` are its leaderboards: some callers may read no more. `before` is what
 * was found before: what is over there is not read one by one again.
 */
export async function contestsOf(player, boards, signal, before = new Map()) {
  const { found, complete } = await entered(player, signal);
  const others = [...new Set(boards.map(contestOf))].filter((id) => id && !found.has(id));
  const read = (id) => get(`/v1/contests/${part(id)}`, {}, signal).catch(() => null);
  const one = async (id, at) => [id, isOver(before.get(id)) ? before.get(id) : { id, ...(at < ONE_BY_ONE_MAX && await read(id)) }];
  for (const [id, contest] of await Promise.all(others.map(one))) found.set(id, contest);
  // One that was read alone has all of its staff, and a row of the list says whether the player is among them.
  for (const contest of found.values()) if (Array.isArray(contest.staff)) contest.staff = contest.staff.includes(player);
  return { found, complete };
}

/** The contests that a player has applied to, takes part in or runs, by id: `{found, complete}`. Other callers are told of none. */
export async function entered(player, signal) {
  const found = new Map();
  if (!may("contests:manage")) return { found, complete: true };
  const note = (items) => items.forEach((one) => found.set(one.contest, { ...one, id: one.contest }));
  // Without the list, the leaderboards still have contests.
  const complete = await walk(`/v1/players/${part(player)}/contests`, {}, "items", note, signal, PAGES_MAX).catch(() => false);
  return { found, complete };
}

/** The same holds, those of entry fees with their `contest`, out of contests with applications. */
export function withContests(holds, contests) {
  const of = new Map([...contests].map((contest) => [contest.application?.hold_id, contest]));
  return holds.map((hold) => ({ ...hold, contest: of.get(hold.id) ?? null }));
}

/** Whose fee a hold is: its contest, as a link. */
export function feeOf({ id, title: text }) {
  return tt("wallet.fee_of", { contest: h("a", { href: link(id) }, text ?? id) });
}

/**
 * A card, which `update` shows as soon as there is a contest; `boards` are the leaderboards of the player, with its standing in each
 * contest. A contest has its id if its title and state cannot be read.
 */
export function contests(player, signal) {
  const view = table(t("player.contests"), [
    { label: t("player.contest"), cell: name },
    { label: t("player.standing"), kind: "num", cell: standing },
  ], { key: ({ id }) => id });
  const said = h("div", {});
  const more = h("div", { class: "foot", hidden: true }, h("span", {}, t("player.more_contests")));
  const element = card(t("player.contests"), h("div", {}, said, view.element, more));
  element.hidden = true;
  const prizesOf = prizes(player, signal);
  let won = new Map();
  let asked = 0;
  const update = async ({ found, complete }, boards) => {
    const ranked = new Map(boards.filter(({ board }) => contestOf(board)).map(({ board, ranks }) => [contestOf(board), ranks[0]]));
    const rows = [...found.values()].map((contest) => ({ ...contest, ranked: ranked.get(contest.id) }));
    const show = () => view.update(rows.map((row) => ({ ...row, won: won.get(row.id) })), { flash: false });
    element.hidden = rows.length === 0;
    more.hidden = complete;
    show();
    asked += 1;
    const turn = asked;
    try {
      const read = await prizesOf(rows.filter(({ state }) => state === "settled"));
      if (turn !== asked) return;
      won = read;
      show();
      set(said);
    } catch (error) {
      inline(said, error);
    }
  };
  return { element, update };
}

/**
 * Reads the prizes of the player in contests that are settled, up to a number of contests: by id those of a contest, or `null` if it
 * has more than were looked through. What is paid does not change, and is read once.
 */
function prizes(player, signal) {
  const known = new Map();
  const read = async (id) => {
    const won = [];
    const complete = await walk(`/v1/contests/${part(id)}/prizes`, {}, "items", (items) => won.push(...items.filter((one) => one.player === player)), signal, PRIZE_PAGES_MAX);
    const all = complete || won.length > 0 ? won : null;
    if (won.every(({ paid }) => paid !== false)) known.set(id, all);
    return all;
  };
  return async (settled) => {
    const some = settled.slice(0, ONE_BY_ONE_MAX).map(async ({ id }) => [id, known.has(id) ? known.get(id) : await read(id)]);
    return new Map([...settled.map(({ id }) => [id, null]), ...await Promise.all(some)]);
  };
}

/** The rank with the score, as it stands or as the result of a contest that is over; and what was won. */
function standing({ id, ranked, won }) {
  const { rank, total, score } = ranked ?? {};
  const result = ranked && [
    rank && [h("span", { class: "strong" }, grouped(rank)), h("span", { class: "under" }, t("player.of", { n: total }))],
    h("span", { class: "under" }, t("player.contest_score", { score: grouped(score) })),
  ];
  // A contest with many prizes has them on its own page.
  const prizes = won === null ? h("a", { href: link(id) }, t("player.to_prizes")) : won?.map(prize);
  return [result || h("span", { class: "soft" }, "–"), prizes];
}

function prize(one) {
  return h("div", {}, h("span", { class: "strong" }, money(one.amount, one.currency)), may("money:read") && [" ", outcome(one, "prizes")]);
}

function name(contest) {
  const { state, staff, application, entry } = contest;
  const part = entry ? "entry" : application?.state ?? (staff && "staff");
  return [
    nameOf(contest),
    h("span", { class: "under" }, state && stateChip(state), part && [" ", t(`player.part.${part}`)], entry?.banned && [" ", chip(t("player.banned"), "bad")]),
  ];
}
