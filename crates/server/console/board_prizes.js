// The prizes of one period of a board: the winners with what became of each prize, the totals, and another try for what is owed.

import { part, walk } from "./api.js";
import { bannedOn } from "./ban.js";
import { prizes as tableOf } from "./board_changes.js";
import { failed, inline } from "./dialog.js";
import { button, card, chip, empty, facts, h, playerLink, set } from "./dom.js";
import { grouped, money, periodName, totalOf, zoned } from "./format.js";
import { makeMember } from "./member_form.js";
import { memberOf } from "./members.js";
import { repay } from "./repay.js";
import { may } from "./rights.js";
import { table } from "./table.js";
import { named, t } from "./texts.js";

/** Winners that are shown, and bans that are read; there may be more. */
const WINNERS_MAX = 1000;
/** Winners without a member of which it is read whether they are members by now. */
const MEMBERS_MAX = 50;

/** The payouts of a period, all or up to a number of pages: `{items, settled, complete}`. `settled` is whether each had its turn. */
export async function payoutsOf(board, period, signal, pagesMax) {
  const found = { items: [], settled: false };
  const add = (items, { settled }) => {
    found.items.push(...items);
    found.settled = settled;
  };
  const complete = await walk(`/v1/leaderboards/${part(board)}/prizes`, { period }, "items", add, signal, pagesMax);
  return { ...found, complete };
}

/** What payouts came to: a sum for each kind of outcome, and all of them as lines. Some payouts are a sum at least. */
export function sums(items, complete = true) {
  const by = { paid: [], missed: [], owed: [], way: [] };
  for (const item of items) by[item.paid ? "paid" : keptBackBy(item) === "no_member" ? "missed" : item.code ? "owed" : "way"].push(item);
  // A reader does not see what became of a payout.
  const known = items.some(({ paid }) => paid !== undefined);
  const said = Object.fromEntries(Object.entries(by).filter(([name]) => known || name === "way").map(([name, of]) => [name, totalOf(of)]));
  const lines = Object.entries(said).filter(([, sum]) => sum).map(([name, sum]) => t(`periods.sum.${known ? name : "promised"}`, { sum: complete ? sum : t("periods.at_least", { sum }) }));
  return { lines: lines.length > 0 ? lines : [t("periods.sum_none")], any: items.length > 0, ...(known && said) };
}

/** What keeps a payout back: its code, or `payable` or `member_closed` for a winner that is a member by now (`memberNow`, as `memberOf` reads it). */
export function keptBackBy({ code, memberNow: member }) {
  if (code !== "no_member" || !member) return code;
  return member.closed_at ? "member_closed" : "payable";
}

/** The same in words. */
export const whyUnpaid = (row) => named(`periods.why.${keptBackBy(row)}`);

/** Whether another try may pay it: not as long as the winner is known to be no member. */
export const mayBePaid = ({ code, memberNow }) => Boolean(code) && !(code === "no_member" && memberNow === null);

/** Whether the caller may try: it makes money for winners that are members by now. */
export const mayPay = () => may("boards:admin") && may("money:mint");

/**
 * A card of the prizes of `period`, and whether some are unpaid once it is filled; `rule` is that of its name. `changed` is called
 * after payments.
 */
export function prizesOf(board, period, rule, signal, changed) {
  const place = h("div", { "aria-live": "polite" });
  const side = h("div", { class: "row" });
  const load = () => show(board, period, rule, signal, { place, side, again }).catch((error) => inline(place, error));
  const again = () => Promise.all([load(), changed()]);
  const unpaid = load();
  return { element: card(t("periods.prizes_of", { period: periodName(period.period) }), place, { side }), unpaid };
}

/** Fills the card; returns whether a prize is unpaid. */
async function show(board, period, rule, signal, { place, side, again }) {
  const [{ items: found, settled }, banned] = await Promise.all([
    payoutsOf(board.board, period.period, signal),
    bannedOn(board.board, 1, signal),
  ]);
  const items = await withMembers(found, signal);
  const sum = sums(items);
  const unpaid = Boolean(sum.owed || sum.missed);
  const pays = unpaid && mayPay();
  const noMember = pays && !items.some(mayBePaid);
  const pay = pays && button(t("periods.repay"), () => repay({ board: board.board, period: period.period }, again), { kind: "small", failed });
  if (pay) pay.disabled = noMember;
  set(side, pay);
  const about = rule && h("p", { class: "small soft" }, t("periods.rule_prizes", { prizes: tableOf(rule) }));
  if (items.length === 0) {
    const text = period.state === "closed" ? settled ? t("periods.no_winner") : t("periods.no_payout_about") : t("periods.paid_at", { at: zoned(period.ends_at, rule?.time_zone) });
    set(place, h("div", {}, about && h("div", { class: "body" }, about), empty(t("periods.no_payout"), text)));
    return unpaid;
  }
  const view = table(t("periods.prizes_of", { period: periodName(period.period) }), [
    { label: t("board.rank"), kind: "num fit", cell: ({ rank }) => grouped(rank) },
    { label: t("board.player"), cell: ({ player }) => [playerLink(player), banned.has(player) && [" ", chip(t("player.banned"), "bad")]] },
    { label: t("periods.prize"), kind: "num", cell: (item) => [h("span", { class: "strong" }, money(item.amount, item.currency)), [...outcome(item), makes(item, again)].map((one) => one && h("span", { class: "under" }, one))] },
  ], { key: ({ rank, player }) => `${rank} ${player}` });
  view.update(items.slice(0, WINNERS_MAX));
  const totals = facts(["paid", "owed", "missed", "way"].map((name) => sum[name] && [t(`periods.total.${name}`), sum[name]]));
  const cut = items.length > WINNERS_MAX && h("p", { class: "small soft" }, t("periods.first_winners", { n: WINNERS_MAX }));
  set(place, h("div", {}, h("div", { class: "body stack" }, totals, noMember && h("p", { class: "small" }, t("periods.repay_no_member")), about, cut), view.element));
  return unpaid;
}

/** The same with the member that each winner without one has by now. `asked` has the answers that several lists share, which are few. */
export async function withMembers(items, signal, asked = new Map()) {
  const missed = items.filter(({ code }) => code === "no_member");
  for (const { player } of missed) {
    if (!asked.has(player) && asked.size < MEMBERS_MAX) asked.set(player, memberOf(player, signal));
  }
  const members = new Map(await Promise.all(missed.map(async ({ player }) => [player, await asked.get(player)])));
  return items.map((item) => (item.code === "no_member" ? { ...item, memberNow: members.get(item.player) } : item));
}

/** A member for a winner without one, without leaving the page. */
function makes({ player, code, memberNow }, again) {
  if (code !== "no_member" || memberNow !== null || !may("members:write")) return null;
  return button(t("wallets.new"), () => makeMember({ player }, again), { kind: "small" });
}

/** What became of a prize: a mark, and a line. A reader does not see it. */
function outcome(item) {
  const { paid, code, group_id: group, reversed, currency } = item;
  if (paid === undefined) return [];
  if (paid) return [h("span", { title: group ?? "" }, chip(t("periods.paid"), "ok")), reversed && t("periods.reversed", { sum: money(reversed, currency) })];
  if (!code) return [chip(t("periods.under_way"), "warn")];
  const mark = code === "no_member" && !item.memberNow ? chip(t("periods.missed"), "warn") : chip(t("periods.owed"), "bad");
  return [mark, whyUnpaid(item)];
}
