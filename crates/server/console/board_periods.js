// The periods of a board, newest first, each with its first player.

import { get, part } from "./api.js";
import { inline } from "./dialog.js";
import { card, chip, empty, h, playerLink, set } from "./dom.js";
import { grouped, when } from "./format.js";
import { every } from "./live.js";
import { list, table } from "./table.js";

/** Milliseconds between refreshes. */
const PAUSE = 5000;
const PAGE = 10;

const STATES = { open: "live", closing: "warn", closed: "" };

/** A card of periods; `open` is called with one that was chosen. */
export function periods(board, signal, open) {
  const path = `/v1/leaderboards/${part(board.board)}`;
  const known = new Map();
  const view = table(`Periods of ${board.board}`, [
    { label: "Period", cell: (row) => name(row, open) },
    { label: "First", cell: ({ first }) => winner(first) },
    { label: "Players", kind: "num", cell: ({ total }) => grouped(total) },
    { label: "Ends", kind: "wide num", cell: ({ end }) => h("span", { class: "soft" }, when(end)) },
  ], { key: ({ period }) => period });

  /** The first player; that of a closed period is requested once. */
  const first = async ({ period, state }) => {
    if (known.has(period)) return known.get(period);
    const { entries } = await get(`${path}/scores`, { period, limit: 1 }, signal);
    if (state === "closed") known.set(period, entries[0]);
    return entries[0];
  };
  const load = async (cursor) => {
    const page = await get(`${path}/periods`, { limit: PAGE, cursor }, signal);
    const items = await Promise.all(page.items.map(async (item) => ({ ...item, first: await first(item) })));
    return { ...page, items };
  };
  const all = list(view, load, () =>
    board.periods.length > 0
      ? empty("No period with players yet", "The open period is listed after its first score.")
      : empty("No periods", "Weeks, months or seasons are given when a leaderboard is made, and may be added over HTTP."));
  const said = h("div", {});
  const refresh = every(PAUSE, signal, async () => {
    await all.refresh();
    set(said);
  }, (error) => inline(said, error));
  return { element: card("Periods", h("div", {}, said, all.element)), refresh };
}

function name({ period, state }, open) {
  const go = h("button", { type: "button", class: "plain small name", click: () => open(period) }, period);
  return [go, " ", chip(state, STATES[state])];
}

function winner(entry) {
  if (!entry) return h("span", { class: "soft" }, "nobody");
  return [playerLink(entry.player), h("span", { class: "under" }, grouped(entry.score))];
}
