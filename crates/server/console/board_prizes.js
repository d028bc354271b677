// The prizes of one period of a board: the winners with what became of each prize, the totals, and another try for what is owed.

import { change, get, part, withQuery } from "./api.js";
import { prizes as tableOf } from "./board_changes.js";
import { confirmActs, failed, inline, toast } from "./dialog.js";
import { button, card, chip, empty, facts, h, playerLink, set } from "./dom.js";
import { grouped, money, when } from "./format.js";
import { may } from "./rights.js";
import { table } from "./table.js";
import { t } from "./texts.js";

/** Winners, and banned players among them, that are shown; there may be more. */
const WINNERS_MAX = 1000;

/** What payouts came to: a sum for each kind of outcome, and all of them as lines. */
export function sums(items) {
  const by = { paid: new Map(), missed: new Map(), owed: new Map(), way: new Map() };
  for (const item of items) {
    const of = by[item.paid ? "paid" : item.reason === "no_member" ? "missed" : item.reason ? "owed" : "way"];
    of.set(item.currency, (of.get(item.currency) ?? 0n) + BigInt(item.amount));
  }
  const line = (of) => [...of].map(([currency, sum]) => money(String(sum), currency)).join(" + ");
  // A reader does not see what became of a payout.
  const known = items.some(({ paid }) => paid !== undefined);
  const said = Object.fromEntries(Object.entries(by).filter(([name]) => known || name === "way").map(([name, of]) => [name, line(of)]));
  const lines = Object.entries(said).filter(([, sum]) => sum).map(([name, sum]) => t(`periods.sum.${known ? name : "promised"}`, { sum }));
  return { lines: lines.length > 0 ? lines : [t("periods.sum_none")], any: items.length > 0, ...(known && said) };
}

/** A card of the prizes of `period`; `rule` is that of its name. `changed` is called after payments. */
export function prizesOf(board, period, rule, signal, changed) {
  const place = h("div", { "aria-live": "polite" });
  const side = h("div", { class: "row" });
  const load = () => show(board, period, rule, signal, { place, side, again }).catch((error) => inline(place, error));
  const again = () => Promise.all([load(), changed()]);
  load();
  return card(t("periods.prizes_of", { period: period.period }), place, { side });
}

async function show(board, period, rule, signal, { place, side, again }) {
  const path = `/v1/leaderboards/${part(board.board)}`;
  const [{ items, settled, next_cursor: more }, bans] = await Promise.all([
    get(`${path}/prizes`, { period: period.period, limit: WINNERS_MAX }, signal),
    get(`${path}/bans`, { limit: WINNERS_MAX }, signal),
  ]);
  const banned = new Set(bans.items.map(({ player }) => player));
  const sum = sums(items);
  set(side, (sum.owed || sum.missed) && may("boards:admin") && button(t("periods.repay"), () => payPeriod(board.board, period.period, again), { kind: "small", failed }));
  const about = rule && h("p", { class: "small soft" }, t("periods.rule_prizes", { prizes: tableOf(rule) }));
  if (items.length === 0) {
    const text = period.state === "closed" ? settled ? t("periods.no_winner") : t("periods.no_payout_about") : t("periods.paid_at", { at: when(period.ends_at, rule?.time_zone) });
    set(place, h("div", {}, about && h("div", { class: "body" }, about), empty(t("periods.no_payout"), text)));
    return;
  }
  const view = table(t("periods.prizes_of", { period: period.period }), [
    { label: t("board.rank"), kind: "num fit", cell: ({ rank }) => grouped(rank) },
    { label: t("board.player"), cell: ({ player }) => [playerLink(player), banned.has(player) && [" ", chip(t("player.banned"), "bad")]] },
    { label: t("periods.prize"), kind: "num", cell: (item) => [h("span", { class: "strong" }, money(item.amount, item.currency)), outcome(item).map((one) => one && h("span", { class: "under" }, one))] },
  ], { key: ({ rank, player }) => `${rank} ${player}` });
  view.update(items);
  const totals = facts(["paid", "owed", "missed", "way"].map((name) => sum[name] && [t(`periods.total.${name}`), sum[name]]));
  const cut = more && h("p", { class: "small soft" }, t("periods.first_winners", { n: items.length }));
  set(place, h("div", {}, h("div", { class: "body stack" }, totals, about, cut), view.element));
}

/** What became of a prize: a mark, and a line. A reader does not see it. */
function outcome({ paid, reason, group_id: group, reversed, currency }) {
  if (paid === undefined) return [];
  if (paid) return [h("span", { title: group ?? "" }, chip(t("periods.paid"), "ok")), reversed && t("periods.reversed", { sum: money(reversed, currency) })];
  if (!reason) return [chip(t("periods.under_way"), "warn")];
  const mark = reason === "no_member" ? chip(t("periods.missed"), "warn") : chip(t("periods.owed"), "bad");
  return [mark, t(`periods.why.${reason}`)];
}

/** Asks, and tries every payment of a period once more that was not made. */
export async function payPeriod(board, period, again) {
  const consequences = [t("periods.repay_about", { period }), t("periods.repay_once")];
  const sure = await confirmActs(t("periods.repay_title"), consequences, t("periods.repay"), { reason: true });
  if (!sure) return;
  const { unpaid, pending } = await change("POST", withQuery(`/v1/leaderboards/${part(board)}/prizes/repay`, { period }), sure.reason ? { reason: sure.reason } : {});
  const left = Object.values(unpaid).reduce((all, one) => all + one, 0);
  if (left > 0) toast("bad", t("periods.still_owed", { n: left }));
  else toast("ok", pending > 0 ? t("periods.being_paid") : t("periods.repaid"));
  await again();
}
