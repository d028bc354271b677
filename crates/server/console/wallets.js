// Wallets: members that are found or made, open holds, and the books behind them.

import { get } from "./api.js";
import { inline } from "./dialog.js";
import { button, card, coded, empty, h, head, notice, put, set } from "./dom.js";
import { decimal, money, totalOf } from "./format.js";
import { field, form } from "./form.js";
import { holds } from "./holds.js";
import { every } from "./live.js";
import { makeMember } from "./member_form.js";
import { finder, link } from "./members.js";
import { look } from "./movement.js";
import { may } from "./rights.js";
import { table } from "./table.js";
import { named, t } from "./texts.js";

export { link };

/** Milliseconds between refreshes of the trial balance. */
const PAUSE = 5000;

export const title = t("wallets.title");

/** `q` is what is searched; `player` begins a member for that player, and `transaction` is a transfer to look at. */
export function render(root, { q = "", player, transaction }, signal) {
  const makes = may("members:write");
  const actions = [
    may("money:read") && h("a", { class: "button", href: "#/owed" }, t("wallets.owed")),
    makes && button(t("wallets.new"), () => makeMember(), { kind: "main", icon: "plus" }),
  ].filter(Boolean);
  const reads = may("money:read");
  const left = h("div", { class: "stack" }, may("members:read") && finder(q, signal), reads && card(t("wallets.open_holds"), holds(() => ({ state: "open" }), signal).element), reads ? books(signal) : hidden());
  const right = h("div", { class: transaction ? "stack sooner" : "stack" }, reads && movement(transaction), rules(signal));
  put(root, head(title, { about: t("wallets.about"), actions: actions.length > 0 && actions }), h("div", { class: "two" }, left, right));
  if (player && makes) makeMember({ player });
}

function hidden() {
  return card(t("wallets.trial_balance"), empty(t("wallets.hidden"), coded(t("wallets.hidden_text"))));
}

/** A transfer seen from both sides, such as that of an address. */
function movement(present) {
  const place = h("div", { "aria-live": "polite" });
  const content = [field({ name: "id", label: t("wallets.transaction"), type: "search", required: true, value: present })];
  const send = ({ id }) => look(place, id, link);
  if (present) send({ id: present }).catch((error) => inline(place, error));
  return card(t("wallets.look_title"), h("div", { class: "body" }, form(content, t("wallets.look"), send), place));
}

/** The currencies with their rules. */
function rules(signal) {
  const said = ({ transfers, withdrawals }) => [transfers ? t("wallets.transferable") : t("wallets.not_transferable"), " ", withdrawals ? t("wallets.withdrawable") : t("wallets.not_withdrawable")];
  const limits = [["balance_max", t("wallets.balance_max")], ["transfer_max", t("wallets.transfer_max")], ["day_max", t("wallets.day_max")]];
  const limit = (one) => ([name, label]) => one[name] && h("span", { class: "under" }, `${label} `, decimal(one[name], one.currency));
  const view = table(t("wallets.currencies"), [
    { label: t("wallets.currency"), kind: "fit", cell: ({ currency, digits }) => [h("span", { class: "strong" }, currency), h("span", { class: "under" }, t("wallets.decimals", { n: digits }))] },
    { label: t("wallets.rules"), cell: (one) => [h("span", { class: "name" }, said(one)), ...limits.map(limit(one))] },
  ], { key: ({ currency }) => currency });
  const place = h("div", {}, view.element);
  get("/v1/currencies", {}, signal).then(({ items }) => view.update(items)).catch((error) => inline(place, error));
  return card(t("wallets.currencies"), place);
}

function books(signal) {
  const verdict = h("div", { class: "body", "aria-live": "polite" });
  const view = table(t("wallets.accounts"), [
    { label: t("wallets.account"), cell: ({ account }) => [h("span", { class: "strong" }, account), h("span", { class: "under" }, named(`wallets.account.${account}`))] },
    { label: t("wallets.debits"), kind: "num wide", cell: ({ debits, currency }) => decimal(debits, currency) },
    { label: t("wallets.credits"), kind: "num wide", cell: ({ credits, currency }) => decimal(credits, currency) },
    { label: t("wallets.balance"), kind: "num", cell: balance },
  ], { key: ({ account, currency }) => `${account} ${currency}` });
  const place = h("div", {});
  const sums = h("div", { class: "foot" });
  let before = null;
  every(PAUSE, signal, async () => {
    const { balanced, items: accounts } = await get("/v1/ledger/trial-balance", {}, signal);
    if (before !== balanced) set(verdict, told(balanced));
    before = balanced;
    view.update(accounts);
    if (accounts.length === 0) set(place, empty(t("wallets.no_money"), t("wallets.no_money_text")));
    else if (view.element.parentElement !== place) set(place, view.element);
    set(sums, h("span", {}, t("wallets.moved", { sums: totalOf(accounts, ({ debits }) => debits) })), h("span", {}, t("wallets.equal")));
  }, (error) => {
    before = null;
    inline(verdict, error);
  });
  return h("section", { class: "card" }, h("div", { class: "top" }, h("h2", {}, t("wallets.trial_balance"))), verdict, place, sums);
}

function told(balanced) {
  return balanced
    ? notice("ok", h("p", { class: "strong" }, t("wallets.balanced")))
    : notice("bad", h("p", { class: "strong" }, t("wallets.unbalanced")), h("p", {}, coded(t("wallets.unbalanced_text"))));
}

function balance({ debits, credits, currency }) {
  const left = BigInt(debits) - BigInt(credits);
  const side = left === 0n ? "" : ` ${left < 0n ? t("wallets.cr") : t("wallets.dr")}`;
  return money(left < 0n ? -left : left, currency) + side;
}
