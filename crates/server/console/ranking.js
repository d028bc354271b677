// A page of ranks that refreshes itself: from either end, page by page, in any window of a board.

import { get, part } from "./api.js";
import { inline } from "./dialog.js";
import { button, choice, h, icon, playerLink, set } from "./dom.js";
import { grouped, when, zoneName } from "./format.js";
import { every } from "./live.js";
import { table } from "./table.js";
import { t } from "./texts.js";

const ROWS = [10, 20, 50, 100];
/** Milliseconds between refreshes. */
const PAUSE = 2000;

const MEDALS = { 1: "first", 2: "second", 3: "third" };

/** The columns of ranks, without when a score was made. */
export function columns() {
  const named = ({ player, profile }) => [playerLink(player), profile?.name && profile.name !== player && h("span", { class: "under name" }, profile.name)];
  return [
    { label: t("board.rank"), kind: "num fit", cell: ({ rank }) => h("span", { class: `medal ${MEDALS[rank] ?? ""}` }, grouped(rank)) },
    { label: t("board.player"), cell: named },
    { label: t("board.score"), kind: "num", cell: ({ score, subscore }) => [h("span", { class: "strong" }, grouped(score)), subscore !== undefined && h("span", { class: "under" }, grouped(subscore))] },
  ];
}

/**
  * A card of ranks. `nothing` returns the content of an empty ranking, `tool` is in its head.
  * `follow(period)` shows another window of the board, and resolves once it is there. `zone` returns the time zone of the shown one, if it has its own.
 */
export function ranking(board, signal, { nothing, tool, title = t("board.ranks"), zone = () => undefined }) {
  const state = { period: null, order: "best", limit: 20, before: [], cursor: null, next: null };
  const heading = h("span", {});
  const scored = { label: t("player.scored_at"), heading, kind: "wide num", cell: ({ at }) => h("span", { class: "soft" }, when(at, zone())) };
  const view = table(t("board.ranks_of", { board }), [...columns(), scored], { key: ({ player }) => player });
  const place = h("div", {});
  const said = h("div", {});
  const foot = h("span", { "aria-live": "polite" });
  const back = button(t("board.back"), () => turn(-1), { kind: "small", icon: "back" });
  const next = h("button", { type: "button", class: "small", click: () => turn(1) }, t("board.next"), icon("next"));
  const rows = h("select", { "aria-label": t("board.page_rows"), change: ({ target }) => begin({ limit: Number(target.value) }) },
    ROWS.map((number) => h("option", { value: number, selected: number === state.limit }, t("board.rows", { n: number }))));
  const order = choice(t("board.end"), [["best", t("board.best")], ["worst", t("board.worst")]], "best", (order) => begin({ order }));
  const tools = h("div", { class: "row" }, tool, order, rows);
  const pages = h("div", { class: "row" }, back, next);
  const element = h("section", { class: "card" }, h("div", { class: "top" }, h("h2", {}, title), tools), said, place, h("div", { class: "foot" }, foot, pages));

  const nameZone = () => set(heading, t("board.scored_at", { zone: zoneName(zone()) }));
  nameZone();
  let asked = 0;
  const load = async () => {
    asked += 1;
    const mine = asked;
    const { period, order: end, limit, cursor } = state;
    const path = `/v1/leaderboards/${part(board)}/scores`;
    const page = await get(path, { limit, order: end, period, cursor, expand: "player" }, signal);
    // A response to a request before another choice is outdated.
    if (mine !== asked) return;
    set(said);
    state.next = page.next_cursor ?? null;
    const same = view.element.parentElement === place;
    if (page.entries.length === 0 && state.before.length === 0) {
      if (place.dataset.empty !== "yes") set(place, nothing());
      place.dataset.empty = "yes";
    } else {
      view.update(page.entries);
      if (!same) set(place, view.element);
      delete place.dataset.empty;
    }
    const words = t("board.count", { n: page.total });
    if (foot.textContent !== words) set(foot, words);
    back.hidden = state.before.length === 0;
    next.hidden = !state.next;
  };
  const failed = (error) => inline(said, error);
  const run = every(PAUSE, signal, load, failed);
  const now = () => {
    view.clear();
    nameZone();
    return load().catch(failed);
  };
  const begin = (change) => {
    Object.assign(state, change, { before: [], cursor: null });
    return now();
  };
  const turn = (way) => {
    if (way > 0) {
      state.before.push(state.cursor);
      state.cursor = state.next;
    } else {
      state.cursor = state.before.pop() ?? null;
    }
    now();
  };
  return { element, follow: (period) => begin({ period }), refresh: run };
}
