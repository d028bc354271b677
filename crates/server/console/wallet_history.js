// The transactions of a wallet, newest first: each with both sides, and an adjustment with its way back.

import { get, part, withQuery } from "./api.js";
import { link as boardLink } from "./boards.js";
import { link as contestLink } from "./contests.js";
import { dialog, failed, inline } from "./dialog.js";
import { button, card, chip, choice, empty, h, renew } from "./dom.js";
import { decimal, referenceOf, sourceOf, when } from "./format.js";
import { storedReason } from "./form.js";
import { link } from "./members.js";
import { look } from "./movement.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";
import { named, t } from "./texts.js";

const PAGE = 20;

/** The sign of a transfer as its owner sees it, where the balance stays as it was. */
const OUT = new Set(["withdrawal", "transfer_out", "capture", "fee", "reversal_out", "prize_out", "refund_out", "expiry"]);

/** What is taken back with one click: adjustments. */
const ADJUSTMENTS = new Set(["deposit", "withdrawal", "promotion"]);

/** A transfer that takes another one back. */
const REVERSALS = new Set(["reversal_in", "reversal_out"]);

/** What moves for a contest or a period; the reference of another transfer is the word of its maker. */
const FOR_CONTESTS = new Set(["fee", "prize", "refund"]);

/** The reference of a transfer, as a link to the contest or the period that it names. */
function source(one) {
  const { board, period, contest } = (FOR_CONTESTS.has(one.type) && sourceOf(one.reference)) || {};
  if (contest) return h("a", { href: contestLink(contest) }, referenceOf(one));
  return board ? h("a", { href: withQuery(boardLink(board), { period }) }, referenceOf(one)) : referenceOf(one);
}

/** The card, of one currency at a time; `now()` returns the wallets, `changed` is called after a reversal. */
export function transactions(member, now, changed, signal) {
  let currency = now()[0]?.currency ?? null;
  const open = async ({ group_id: id }, back) => {
    const place = h("div", { class: "stack" });
    const close = () => place.closest("dialog").close();
    await look(place, id, link, changed, { close: back && close });
    // The form of a reversal has its own way out. What is taken back already has no form.
    const input = back && place.querySelector("form input");
    dialog(back ? t("wallet.back") : t("wallet.sides"), () => [place, !input && h("div", { class: "ends" }, button(t("wallet.close"), close))], { wide: true });
    if (input) input.focus();
  };
  const out = ({ before, after, type }) => (before === after ? OUT.has(type) : BigInt(after) < BigInt(before));
  const view = table(t("wallet.transactions_newest"), [
    { label: t("wallet.what"), cell: (one) => [chip(named(`wallet.type.${one.type}`), out(one) ? "" : "ok"), h("span", { class: "under" }, when(one.at)), one.reference && h("span", { class: "under name" }, source(one)), one.reason && h("span", { class: "under name" }, `“${storedReason(one.reason)}”`)] },
    { label: t("wallet.with"), kind: "wide", cell: ({ counterparty, counterparty_name: name }) => (counterparty ? h("a", { class: "name", href: link(counterparty) }, name || t("wallet.a_pool")) : h("span", { class: "soft" }, "–")) },
    { label: t("wallet.amount"), kind: "num", cell: (one) => [h("span", { class: "strong" }, `${out(one) ? "−" : "+"}${decimal(one.amount, one.currency)}`), h("span", { class: "under narrow" }, t("wallet.then", { balance: decimal(one.after, one.currency) }))] },
    { label: t("wallet.balance_after"), kind: "num wide", cell: ({ after, currency: code }) => h("span", { class: "soft" }, decimal(after, code)) },
    { label: t("wallet.acts"), kind: "actions", cell: (one) => [
      one.back && [chip(t("wallet.back_so_far")), " "],
      !one.back && may("money:move") && ADJUSTMENTS.has(one.type) && [button(t("wallet.back"), () => open(one, true), { kind: "small", failed }), " "],
      button(t("wallet.details"), () => open(one, false), { kind: "small", failed }),
    ] },
  ], { key: ({ id }) => id });
  const path = `/v1/wallets/${part(member)}/transactions`;
  const mark = marker(signal);
  const load = async (cursor) => {
    const page = await get(path, { limit: PAGE, cursor, currency }, signal);
    return { ...page, items: await mark(page.items) };
  };
  const all = list(view, load, () =>
    empty(t("wallet.nothing_moved"), t("wallet.nothing_moved_text")));
  const said = h("div", {});
  const codes = h("div", {});
  /** Reads it again, of a currency that is given. */
  const reload = async (code) => {
    currency = code ?? currency;
    renew(codes, [now().length, currency], () => now().length > 1 && choice(t("wallet.currency"), now().map((one) => [one.currency, one.currency]), currency, reload));
    await all.reload().catch((error) => inline(said, error));
  };
  reload();
  return { element: card(t("wallet.transactions"), h("div", {}, said, all.element), { side: codes }), reload };
}

/**
 * A function that marks rows with `back` once the whole of them is taken back. A row does not say so, but its reversal, which is newer
 * and so was listed before, says what it reverses. Each is read once.
 */
function marker(signal) {
  const reversals = new Map();
  return async (rows) => {
    const missing = rows.filter(({ type, group_id: id }) => REVERSALS.has(type) && !reversals.has(id));
    // Without an answer the rows are shown all the same.
    const read = ({ group_id: id }) => get(`/v1/ledger/transactions/${part(id)}`, {}, signal).then((found) => reversals.set(id, found), () => null);
    await Promise.all(missing.map(read));
    const sum = (id) => [...reversals.values()].filter(({ reverses }) => reverses === id).reduce((all, { amount }) => all + BigInt(amount), 0n);
    return rows.map((row) => ({ ...row, back: sum(row.group_id) >= BigInt(row.amount) }));
  };
}
