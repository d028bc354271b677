// A transfer from both sides: what was taken back of it, and its reversal.

import { change, get, part } from "./api.js";
import { toast } from "./dialog.js";
import { chip, facts, h, set } from "./dom.js";
import { money, when } from "./format.js";
import { field, form, reason } from "./form.js";
import { may } from "./rights.js";

/** Shows a transfer in `place`. `link` gives the address of a member's page; `changed` is called after a reversal. */
export async function look(place, id, link, changed) {
  const again = async () => {
    await look(place, id, link, changed);
    await changed?.();
  };
  set(place, shown(await get(`/v1/ledger/transactions/${part(id)}`), link, again));
}

function shown(movement, link, again) {
  const { type, amount, currency, at, reference, debit, credit, actor, reason } = movement;
  const side = (label, { account, member, name }) => h("tr", {},
    h("th", { scope: "row" }, label),
    h("td", {}, account, member && h("a", { class: "under name", href: link(member) }, name || member)),
    h("td", { class: "num" }, money(amount, currency)));
  const heading = h("thead", {}, h("tr", {}, ["Side", "Account", "Amount"].map((text, at) => h("th", { scope: "col", class: at === 2 ? "num" : null }, text))));
  const view = h("table", {}, h("caption", { class: "unseen" }, "Both sides"), heading, h("tbody", {}, side("Debit", debit), side("Credit", credit)));
  return [h("p", {}, chip(type.replaceAll("_", " ")), " ", h("span", { class: "soft small" }, when(at))), reference && h("p", { class: "name" }, `“${reference}”`), view, facts([["By", h("code", {}, actor)], reason && ["Why", reason]]), taken(movement), reversal(movement, again)];
}

/** What was taken back of a movement, or what it takes back. */
function taken({ amount, currency, reversed, reversals, reverses }) {
  if (reverses) return facts([["Takes back", h("code", {}, reverses)]]);
  const one = ({ id, amount: sum, at }) => [when(at), [money(sum, currency), " by ", h("code", {}, id)]];
  return reversals.length > 0 && facts([["Taken back", `${money(reversed, currency)} of ${money(amount, currency)}`], ...reversals.map(one)]);
}

function reversal({ id, amount, currency, reversed, reverses }, again) {
  const left = BigInt(amount) - BigInt(reversed);
  if (reverses || left === 0n || !may("money:move")) return null;
  const content = [
    field({ name: "amount", label: "Amount", inputmode: "numeric", value: String(left), required: true, hint: `At most ${money(left, currency)}, in the smallest unit.` }),
    reason("Members do not see it."),
  ];
  const send = async ({ amount: sum, reason: why }) => {
    await change("POST", `/v1/ledger/transactions/${part(id)}/reverse`, { amount: sum, ...(why && { reason: why }) });
    toast("ok", `${money(sum, currency)} taken back`);
    await again();
  };
  return h("details", {}, h("summary", { class: "small" }, "Take it back"), h("div", { class: "body" }, form(content, "Reverse", send, { kind: "danger" })));
}
