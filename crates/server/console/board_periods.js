// The periods of a board, newest first, each with its winner and what its prizes came to.

import { get, part } from "./api.js";
import { payoutsOf, prizesOf, sums, withMembers } from "./board_prizes.js";
import { inline } from "./dialog.js";
import { button, card, chip, empty, h, playerLink, set } from "./dom.js";
import { grouped, periodName, zoned } from "./format.js";
import { every } from "./live.js";
import { words } from "./schedules.js";
import { list, table } from "./table.js";
import { t, tt } from "./texts.js";

/** Milliseconds between refreshes. */
const PAUSE = 5000;
const PAGE = 10;
/** Milliseconds after which a closed period without payouts had no prizes. */
const PAID_BY = 3600000;
/** Pages of payouts that are read of each period. Their sums are at least what all would come to. */
const PAGES_MAX = 10;
/** Payouts of which the next refreshes show the same sums, for so many milliseconds. */
const MANY = 1000;
const KEPT = 60000;

const STATES = { open: "live", closing: "warn", closed: "" };

/**
 * A card of periods, with the prizes of a chosen one: by a click, or `chosen`, if it is among the newest ones. `open` is called
 * with one whose ranks were chosen.
 */
export function periods(board, chosen, signal, open) {
  const path = `/v1/leaderboards/${part(board.board)}`;
  let known = new Map();
  let wanted = chosen;
  const shown = h("div", { "aria-live": "polite" });
  const rule = ({ name }) => board.periods.find((one) => one.name === name);
  const show = (period) => {
    const { element: prizes, unpaid } = prizesOf(board, period, rule(period), signal, paid);
    set(shown, prizes);
    return unpaid;
  };
  const paid = () => {
    known = new Map();
    return all.reload();
  };
  const scroll = () => shown.scrollIntoView({ block: "start" });
  // An empty card below the window would leave nothing to scroll to.
  const look = (period) => show(period).then(scroll);
  const view = table(t("periods.of", { board: board.board }), [
    { label: t("periods.period"), cell: (row) => name(row, rule(row)?.time_zone, open) },
    { label: t("periods.first"), cell: ({ winner }) => winnerCell(winner) },
    { label: t("board.players"), kind: "wide num", cell: ({ total }) => grouped(total) },
    { label: t("periods.prizes"), kind: "num", cell: (row) => prizeCell(row, rule(row), look) },
  ], { key: ({ period }) => period });

  /**
   * The first player and the prizes. Those of a closed period are read until each payout had its turn, and again after a payment; many
   * are not read at each refresh. `asked` has the members of winners, which the periods of a page share.
   */
  const more = async (item, asked) => {
    // What was read before a payment is not kept after it.
    const kept = known;
    const before = kept.get(item.period);
    if (before && Date.now() < before.until) return before.found;
    const [{ entries }, prizes] = await Promise.all([
      get(`${path}/scores`, { period: item.period, limit: 1 }, signal),
      item.state === "closed" ? payoutsOf(board.board, item.period, signal, PAGES_MAX) : null,
    ]);
    const found = { winner: entries[0], sums: prizes && sums(await withMembers(prizes.items, signal, asked), prizes.complete) };
    const settled = prizes?.settled || !rule(item)?.prizes || Date.now() - Date.parse(item.ends_at) > PAID_BY;
    const until = settled ? Infinity : prizes?.items.length > MANY ? Date.now() + KEPT : 0;
    if (item.state === "closed" && until > 0) kept.set(item.period, { found, until });
    return found;
  };
  const load = async (cursor) => {
    const page = await get(`${path}/periods`, { limit: PAGE, cursor }, signal);
    const asked = new Map();
    const items = await Promise.all(page.items.map(async (item) => ({ ...item, ...(await more(item, asked)) })));
    return { ...page, items };
  };
  const all = list(view, load, () =>
    board.periods.length > 0 ? empty(t("periods.none_yet"), t("periods.none_yet_about")) : empty(t("periods.none"), t("periods.none_about")));
  const said = h("div", {});
  const refresh = every(PAUSE, signal, async () => {
    await all.refresh();
    set(said);
    const found = wanted && all.items().find(({ period }) => period === wanted);
    if (found && rule(found)?.prizes) show(found).then((unpaid) => unpaid && scroll());
    wanted = null;
  }, (error) => inline(said, error));
  const rules = board.periods.length > 0 && h("ul", { class: "plain small soft" }, board.periods.map((one) => h("li", {}, h("span", { class: "strong" }, one.name), ": ", words(one))));
  const element = h("div", { class: "stack" }, card(t("periods.title"), h("div", {}, rules && h("div", { class: "body" }, rules), said, all.element)), shown);
  return { element, refresh };
}

/** The period, and when it began and ends on the clocks of its time zone. On a phone its name says when it began. */
function name({ period, state, starts_at: start, ends_at: end }, zone, open) {
  const go = h("button", { type: "button", class: "plain small name", title: period, click: () => open(period) }, periodName(period));
  return [go, " ", chip(t(`periods.state.${state}`), STATES[state]), h("span", { class: "under" }, tt("periods.span", { start: h("span", { class: "wide" }, zoned(start, zone)), end: zoned(end, zone) }))];
}

function winnerCell(entry) {
  if (!entry) return h("span", { class: "soft" }, t("periods.no_player"));
  return [playerLink(entry.player), h("span", { class: "under" }, grouped(entry.score))];
}

function prizeCell(row, rule, look) {
  const { period, state, sums: sum } = row;
  if (!sum?.any && !rule?.prizes) return h("span", { class: "soft" }, "–");
  const go = button(t("periods.show_prizes"), () => look(row), { kind: "small" });
  go.setAttribute("aria-label", t("periods.show_prizes_of", { period: periodName(period) }));
  const lines = state === "closed" ? sum.lines : [t("periods.paid_at_end")];
  return [go, lines.map((line) => h("span", { class: "under" }, line))];
}
