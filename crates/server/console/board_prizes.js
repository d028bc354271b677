// The prizes of one period of a board: the winners with what became of each prize, the totals, and another try for what is owed.

import { change, get, part, withQuery } from "./api.js";
import { prizes as tableOf } from "./board_changes.js";
import { confirmActs, failed, inline, toast } from "./dialog.js";
import { button, card, chip, empty, facts, h, playerLink, set } from "./dom.js";
import { grouped, money, when } from "./format.js";
import { makeMember } from "./member_form.js";
import { memberOf } from "./members.js";
import { may } from "./rights.js";
import { table } from "./table.js";
import { named, t } from "./texts.js";

/** Winners, and banned players among them, that are shown; there may be more. */
const WINNERS_MAX = 1000;
/** Winners without a member of which it is read whether they are members by now. */
const MEMBERS_MAX = 50;
/** Names that a message has. */
const NAMED_MAX = 5;

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

/** What keeps a payout back, in words. `memberNow` is the member that a winner without one has by now, as `memberOf` reads it. */
export function whyUnpaid({ reason, memberNow: member }) {
  if (reason !== "no_member" || !member) return named(`periods.why.${reason}`);
  return t(member.closed_at ? "periods.why.member_closed" : "periods.why.payable");
}

/** Whether another try may pay it: not as long as the winner is known to be no member. */
export const mayBePaid = ({ reason, memberNow }) => Boolean(reason) && !(reason === "no_member" && memberNow === null);

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
  return { element: card(t("periods.prizes_of", { period: period.period }), place, { side }), unpaid };
}

/** Fills the card; returns whether a prize is unpaid. */
async function show(board, period, rule, signal, { place, side, again }) {
  const path = `/v1/leaderboards/${part(board.board)}`;
  const [{ items: found, settled, next_cursor: more }, bans] = await Promise.all([
    get(`${path}/prizes`, { period: period.period, limit: WINNERS_MAX }, signal),
    get(`${path}/bans`, { limit: WINNERS_MAX }, signal),
  ]);
  const banned = new Set(bans.items.map(({ player }) => player));
  const items = await withMembers(found, signal);
  const sum = sums(items);
  const unpaid = Boolean(sum.owed || sum.missed);
  const pays = unpaid && mayPay();
  const nobody = pays && !items.some(mayBePaid);
  const pay = pays && button(t("periods.repay"), () => payPeriod(board.board, period.period, again), { kind: "small", failed });
  if (pay) pay.disabled = nobody;
  set(side, pay);
  const about = rule && h("p", { class: "small soft" }, t("periods.rule_prizes", { prizes: tableOf(rule) }));
  if (items.length === 0) {
    const text = period.state === "closed" ? settled ? t("periods.no_winner") : t("periods.no_payout_about") : t("periods.paid_at", { at: when(period.ends_at, rule?.time_zone) });
    set(place, h("div", {}, about && h("div", { class: "body" }, about), empty(t("periods.no_payout"), text)));
    return unpaid;
  }
  const view = table(t("periods.prizes_of", { period: period.period }), [
    { label: t("board.rank"), kind: "num fit", cell: ({ rank }) => grouped(rank) },
    { label: t("board.player"), cell: ({ player }) => [playerLink(player), banned.has(player) && [" ", chip(t("player.banned"), "bad")]] },
    { label: t("periods.prize"), kind: "num", cell: (item) => [h("span", { class: "strong" }, money(item.amount, item.currency)), [...outcome(item), makes(item, again)].map((one) => one && h("span", { class: "under" }, one))] },
  ], { key: ({ rank, player }) => `${rank} ${player}` });
  view.update(items);
  const totals = facts(["paid", "owed", "missed", "way"].map((name) => sum[name] && [t(`periods.total.${name}`), sum[name]]));
  const cut = more && h("p", { class: "small soft" }, t("periods.first_winners", { n: items.length }));
  set(place, h("div", {}, h("div", { class: "body stack" }, totals, nobody && h("p", { class: "small" }, t("periods.repay_nobody")), about, cut), view.element));
  return unpaid;
}

/** The same with the member that each winner without one has by now. */
async function withMembers(items, signal) {
  const players = [...new Set(items.filter(({ reason }) => reason === "no_member").map(({ player }) => player))].slice(0, MEMBERS_MAX);
  const members = new Map(await Promise.all(players.map(async (player) => [player, await memberOf(player, signal)])));
  return items.map((item) => (item.reason === "no_member" ? { ...item, memberNow: members.get(item.player) } : item));
}

/** A member for a winner without one, without leaving the page. */
function makes({ player, reason, memberNow }, again) {
  if (reason !== "no_member" || memberNow !== null || !may("members:write")) return null;
  return button(t("wallets.new"), () => makeMember({ player }, again), { kind: "small" });
}

/** What became of a prize: a mark, and a line. A reader does not see it. */
function outcome(item) {
  const { paid, reason, group_id: group, reversed, currency } = item;
  if (paid === undefined) return [];
  if (paid) return [h("span", { title: group ?? "" }, chip(t("periods.paid"), "ok")), reversed && t("periods.reversed", { sum: money(reversed, currency) })];
  if (!reason) return [chip(t("periods.under_way"), "warn")];
  const mark = reason === "no_member" && !item.memberNow ? chip(t("periods.missed"), "warn") : chip(t("periods.owed"), "bad");
  return [mark, whyUnpaid(item)];
}

/** Asks, and tries every payment of a period once more that was not made. */
export async function payPeriod(board, period, again) {
  const consequences = [t("periods.repay_about", { period }), t("periods.repay_once")];
  const sure = await confirmActs(t("periods.repay_title"), consequences, t("periods.repay"), { reason: true });
  if (!sure) return;
  const path = `/v1/leaderboards/${part(board)}/prizes`;
  const read = async () => (await get(path, { period, limit: WINNERS_MAX })).items;
  const key = ({ rank, player, currency }) => `${rank} ${player} ${currency}`;
  const before = new Set((await read()).filter(({ paid }) => !paid).map(key));
  const { pending } = await change("POST", withQuery(`${path}/repay`, { period }), sure.reason ? { reason: sure.reason } : {});
  const after = await read();
  report(after.filter((one) => one.paid && before.has(key(one))), after.filter(({ paid, reason }) => !paid && reason && reason !== "pending"), pending);
  await again();
}

/** Says who was paid, and which prizes are left, with links to their players. */
function report(paid, left, pending) {
  const missed = left.filter(({ reason }) => reason === "no_member");
  const owed = left.filter(({ reason }) => reason !== "no_member");
  const rest = [["missed", missed], ["owed", owed]].filter(([, rows]) => rows.length > 0).map(([name, rows]) => [t(`periods.left.${name}`, { n: rows.length }), " ", links(rows), " "]);
  const end = pending > 0 ? t("periods.being_paid") : t("periods.repaid");
  if (paid.length > 0) toast("ok", t("periods.paid_to", { sum: sums(paid).paid, players: names(paid) }), rest.length > 0 ? rest : end);
  else if (left.length > 0) toast("bad", t("periods.still_owed", { n: left.length }), rest);
  else toast("ok", end);
}

const players = (rows) => [...new Set(rows.map(({ player }) => player))];

function names(rows) {
  const all = players(rows);
  return all.length > NAMED_MAX ? t("periods.winners", { n: all.length }) : all.join(", ");
}

function links(rows) {
  const all = players(rows);
  const listed = all.slice(0, NAMED_MAX).map((player, at) => [at > 0 && ", ", playerLink(player)]);
  return [listed, all.length > NAMED_MAX && ", …"];
}
