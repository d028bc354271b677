// A transfer from both sides: what was taken back of it, and its reversal after the balances that it leaves.

import { actorOf, readNames } from "./acts.js";
import { steps, whole } from "./amount.js";
import { change, get, part } from "./api.js";
import { failed, toast } from "./dialog.js";
import { chip, facts, h, notice, put, set } from "./dom.js";
import { money, referenceOf, when } from "./format.js";
import { UNSAID, field, form, reason, storedReason } from "./form.js";
import { copyable } from "./members.js";
import { may } from "./rights.js";
import { named, t } from "./texts.js";

/**
 * Shows a transfer in `place`. `link` gives the address of a member's page; `changed` is called after a reversal. With `close` it is
 * there to be taken back: the form is open, and `close` is called after it.
 */
export async function look(place, id, link, changed, { close } = {}) {
  const again = () => Promise.all([changed?.(), !close && look(place, id, link, changed)]).catch(failed);
  const [movement] = await Promise.all([get(`/v1/ledger/transactions/${part(id)}`), readNames()]);
  const taken = await reversal(movement, again, close);
  set(place, shown(movement, link), taken);
}

function shown(movement, link) {
  const { id, type, amount, currency, at, reference, debit, credit, actor, reason: why } = movement;
  const side = (label, { account, member, name }) => h("tr", {},
    h("th", { scope: "row" }, label),
    h("td", {}, account, member && h("a", { class: "under name", href: link(member) }, name || t("wallet.a_pool"))),
    h("td", { class: "num" }, money(amount, currency)));
  const heads = [t("wallet.side"), t("wallet.account"), t("wallet.amount")];
  const heading = h("thead", {}, h("tr", {}, heads.map((text, column) => h("th", { scope: "col", class: column === 2 ? "num" : null }, text))));
  const view = h("table", {}, h("caption", { class: "unseen" }, t("wallet.sides")), heading, h("tbody", {}, side(t("wallet.debit"), debit), side(t("wallet.credit"), credit)));
  const about = facts([[t("wallet.by"), actorOf(actor)], why && [t("wallet.reason"), storedReason(why)], [t("wallet.transaction_id"), copyable(id)]]);
  return [h("p", {}, chip(named(`wallet.type.${type}`)), " ", h("span", { class: "soft small" }, when(at))), reference && h("p", { class: "name" }, `“${referenceOf(movement)}”`), view, about, taken(movement)];
}

/** What was taken back of a movement, or what it takes back. */
function taken({ amount, currency, reversed, reversals, reverses }) {
  if (reverses) return facts([[t("wallet.takes_back"), h("code", {}, reverses)]]);
  const one = ({ id, amount: sum, at }) => [when(at), [money(sum, currency), " ", h("code", {}, id)]];
  return reversals.length > 0 && facts([[t("wallet.back_so_far"), t("wallet.back_of", { sum: money(reversed, currency), all: money(amount, currency) })], ...reversals.map(one)]);
}

async function reversal({ id, amount, currency, reversed, reverses, debit, credit }, again, close) {
  const left = BigInt(amount) - BigInt(reversed);
  if (reverses) return null;
  if (left === 0n) return notice("ok", h("p", {}, t("wallet.all_back")));
  if (!may("money:move")) return null;
  const [payer, receiver] = await Promise.all([walletOf(credit, currency), walletOf(debit, currency)]);
  const sum = field({ name: "amount", label: t("wallet.amount"), inputmode: "numeric", value: String(left), required: true, hint: t("wallet.back_hint", { most: money(left, currency) }) });
  const input = sum.querySelector("input");
  const place = h("div", { "aria-live": "polite" });
  const show = () => {
    const units = whole(input.value.trim());
    set(place, units !== null && units <= left && effects(payer, receiver, units, currency));
  };
  input.addEventListener("input", show);
  show();
  const send = async ({ amount: sent, reason: why }) => {
    await change("POST", `/v1/ledger/transactions/${part(id)}/reverse`, { amount: sent, reason: why || UNSAID });
    // What was sent goes before anything is read: a form that stays open could take back once more.
    if (close) close();
    else details.remove();
    toast("ok", t("wallet.taken_back", { sum: money(sent, currency) }));
    await again();
  };
  const details = h("details", {}, h("summary", { class: "small" }, t("wallet.back")));
  // Beside other content its summary folds it, and the dialog around it has its own way out.
  const made = form([sum, place, reason(t("wallet.unseen"))], t("wallet.back"), send, { cancel: close, kind: "danger" });
  return close ? made : put(details, h("div", { class: "body" }, made));
}

/** The wallet of a side, with the name of its member; nothing for an account of the house. */
async function walletOf({ member, name }, currency) {
  if (!member || !may("money:read")) return null;
  const { items: wallets } = await get(`/v1/wallets/${part(member)}`);
  const wallet = wallets.find((one) => one.currency === currency);
  return wallet ? { ...wallet, name: name || t("wallet.a_pool") } : null;
}

/** The balances before and after. */
function effects(payer, receiver, units, currency) {
  const row = (wallet, by) => wallet && [t("wallet.balance_of", { name: wallet.name }), wallet.balance, BigInt(wallet.balance) + by];
  const rows = [row(payer, -units), row(receiver, units)].filter(Boolean);
  const short = payer && BigInt(payer.available) < units;
  return [rows.length > 0 && steps(t("wallet.before_after"), rows, currency), short && notice("warn", t("wallet.too_little", { available: money(payer.available, currency) }))];
}
