// The history of a player's scores: its ranks in the closed periods of one leaderboard, newest first.

import { ask, get, part, withQuery } from "./api.js";
import { link as boardLink } from "./boards.js";
import { inline } from "./dialog.js";
import { card, empty, h, renew, set } from "./dom.js";
import { grouped, periodName, zoned } from "./format.js";
import { table } from "./table.js";
import { t } from "./texts.js";
import { zoneOf } from "./zones.js";

/** Closed periods that are shown of a leaderboard. */
const PERIODS_MAX = 50;

/** A card for the leaderboards with periods, with its `reload`; nothing without one. `isBanned` tells whether a leaderboard has banned the player. */
export function history(player, found, isBanned, signal) {
  const boards = found.map(({ board }) => board);
  if (boards.length === 0) return null;
  const rules = (name) => found.find(({ board }) => board === name).periods;
  const view = table(t("player.closed_periods"), [
    { label: t("periods.period"), cell: ({ board, period }) => h("a", { class: "name", href: withQuery(boardLink(board), { period }) }, periodName(period)) },
    { label: t("board.rank"), kind: "num", cell: ({ rank, total }) => t("board.of", { rank: grouped(rank), total: grouped(total) }) },
    { label: t("board.score"), kind: "num", cell: ({ score }) => h("span", { class: "strong" }, grouped(score)) },
    { label: t("player.scored_at"), kind: "wide num", cell: ({ board, period, at }) => h("span", { class: "soft" }, zoned(at, zoneOf(rules(board), period))) },
  ], { key: ({ period }) => period });
  const said = h("div", {});
  const place = h("div", { "aria-live": "polite" });
  let shown = boards[0];
  const load = async (board) => {
    const { items: all } = await get(`/v1/leaderboards/${part(board)}/periods`, { limit: PERIODS_MAX }, signal);
    const closed = all.filter(({ state }) => state === "closed");
    const found = closed.length === 0 ? [] : await rankedIn(board, player, closed, signal);
    // Another leaderboard was chosen meanwhile.
    if (board !== shown) return;
    set(said);
    view.update(found, { flash: false });
    // A ban takes the ranks of closed periods too, and one without another player is not listed.
    const none = isBanned(board) ? [t("player.closed_banned"), t("player.closed_banned_about")] : [t("player.no_closed"), t("player.no_closed_about")];
    renew(place, found.length > 0 || none, () => (found.length > 0 ? view.element : empty(...none)));
  };
  const reload = () => load(shown).catch((error) => inline(said, error));
  const show = (board) => {
    shown = board;
    return reload();
  };
  const choose = boards.length > 1 && h("select", { "aria-label": t("boards.board"), change: ({ target }) => show(target.value) }, boards.map((board) => h("option", { value: board }, board)));
  reload();
  const element = card(boards.length > 1 ? t("player.closed_periods") : t("player.closed_periods_of", { board: boards[0] }), h("div", {}, said, place), { side: choose });
  return { element, reload };
}

async function rankedIn(board, player, periods, signal) {
  const rows = periods.map(({ period }) => ({ board, player, period }));
  const { results } = await ask("POST", "/v1/ranks", { body: JSON.stringify({ ranks: rows }), signal });
  return results.filter(({ error }) => !error);
}
