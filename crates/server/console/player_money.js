// The money of a player: its member, wallets and open holds, and an adjustment with a reason.

import { change, get, part } from "./api.js";
import { inline, toast } from "./dialog.js";
import { card, chip, empty, facts, h, put, set } from "./dom.js";
import { money as amountOf, when } from "./format.js";
import { field, form } from "./form.js";
import { may } from "./rights.js";
import { link } from "./wallets.js";

const HOLDS_MAX = 20;

/** A card; nothing for a caller that may not read members. */
export function money(player, signal) {
  if (!may("members:read")) return null;
  const place = h("div", {});
  const load = async () => {
    const { items: [member] } = await get("/v1/members", { player }, signal);
    if (!member) {
      set(place, empty("No member", "A player without a member has no wallet. Members are made over HTTP or by an import."));
      return;
    }
    const body = h("div", { class: "body stack" }, who(member));
    if (may("money:read")) put(body, await purse(member, signal));
    if (!member.closed_at) put(body, adjust(member, load));
    set(place, body);
  };
  load().catch((error) => inline(place, error));
  return card("Member and wallet", place);
}

function who(member) {
  return facts([
    ["Name", h("a", { class: "name", href: link(member.id) }, member.name)],
    ["Login", member.login_id],
    ["Phone", member.phone_number ?? "none"],
    member.closed_at && ["Closed", when(member.closed_at)],
  ]);
}

async function purse(member, signal) {
  const query = { member: member.id, state: "open", limit: HOLDS_MAX };
  const [{ wallets }, { items: holds, next_cursor: more }] = await Promise.all([
    get(`/v1/wallets/${part(member.id)}`, {}, signal),
    get("/v1/holds", query, signal),
  ]);
  const one = ({ currency, balance, held, available }) => facts([["Balance", amountOf(balance, currency)], ["Held", amountOf(held, currency)], ["Available", amountOf(available, currency)]]);
  const hold = ({ id, amount, currency, reason, expires_at: ends }) => h("li", {}, amountOf(amount, currency), ends && ` until ${when(ends)}`, reason && ` “${reason}”`, " ", h("code", { class: "soft small" }, id));
  const listed = holds.length > 0 && h("div", {}, h("h3", {}, "Open holds ", chip(more ? `${holds.length} or more` : String(holds.length), "warn")), h("ul", { class: "plain" }, holds.map(hold)));
  return [wallets.map(one), wallets.length === 0 && h("p", { class: "soft" }, "Its wallet is empty."), listed];
}

/** More or less money, with a reason. */
function adjust(member, renew) {
  const ways = [may("money:mint") && ["deposits", "Give (+)"], may("money:move") && ["withdrawals", "Take (−)"]].filter(Boolean);
  if (ways.length === 0) return null;
  const content = [
    h("div", { class: "fields" },
      field({ name: "way", label: "Adjust", options: ways }),
      field({ name: "amount", label: "Amount", inputmode: "numeric", required: true, placeholder: "1000", hint: "In the smallest unit." }),
      field({ name: "currency", label: "Currency", maxlength: 16, hint: "Empty: the default one." })),
    field({ name: "reason", label: "Reason", required: true, maxlength: 255, hint: "It is kept with the transaction. Members do not see it." }),
  ];
  const send = async ({ way, amount, currency, reason }) => {
    const body = { [way === "deposits" ? "to" : "from"]: member.id, amount, ...(currency && { currency }), reason };
    const { after, currency: of } = await change("POST", `/v1/${way}`, body);
    toast("ok", way === "deposits" ? `${amountOf(amount, of)} given` : `${amountOf(amount, of)} taken`, `The balance is ${amountOf(after, of)}.`);
    await renew();
  };
  return h("details", {}, h("summary", {}, "Adjust the wallet"), h("div", { class: "body" }, form(content, "Adjust", send)));
}
