// Wallets: finding a member, and the trial balance.

import { get } from "./api.js";
import { inline } from "./dialog.js";
import { card, coded, empty, h, head, notice, put, set } from "./dom.js";
import { count, decimal, money } from "./format.js";
import { field, form } from "./form.js";
import { every } from "./live.js";
import { look } from "./movement.js";
import { may } from "./rights.js";
import { table } from "./table.js";

/** Milliseconds between refreshes of the trial balance. */
const PAUSE = 5000;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export const title = "Wallets";

/** The address of a member's page. */
export function link(member) {
  return `#/wallets/${encodeURIComponent(member)}`;
}

export function render(root, _parameters, signal) {
  const owed = may("money:read") && h("a", { class: "button", href: "#/owed" }, "What is owed");
  put(root, head("Wallets", { about: "Members, what they have, and the books behind it. Every movement is written twice, and both sides are equal.", actions: [owed] }),
    h("div", { class: "two" }, may("money:read") ? books(signal) : hidden(), h("div", { class: "stack" }, may("members:read") && finder(), may("money:read") && movement(), rules(signal))));
}

function hidden() {
  return card("Trial balance", empty("Money is not for this key", coded("It needs the scope `money:read`.")));
}

const BY = [
  ["login_id", "Login"],
  ["phone_number", "Phone number"],
  ["player", "Player"],
  ["id", "Member id"],
];

function finder() {
  const found = h("div", { "aria-live": "polite" });
  const content = [
    field({ name: "by", label: "Find by", options: BY }),
    field({ name: "what", label: "Login, number or id", type: "search", required: true, hint: "The whole of it. Dashes and spaces of a number do not matter." }),
  ];
  const send = async ({ by, what }) => {
    set(found);
    const kind = ID.test(what) && by === "login_id" ? "id" : by;
    if (kind === "id") {
      location.hash = link(what).slice(1);
      return;
    }
    const { items } = await get("/v1/members", { [kind]: what });
    if (items.length === 1) location.hash = link(items[0].id).slice(1);
    else set(found, notice("warn", h("p", { class: "strong" }, "No member found"), h("p", { class: "small" }, "Check the spelling, or search by another field.")));
  };
  return card("Find a member", h("div", { class: "body" }, form(content, "Find", send), found));
}

/** A transfer seen from both sides. */
function movement() {
  const place = h("div", { "aria-live": "polite" });
  const content = [field({ name: "id", label: "Transaction id or group id", type: "search", required: true })];
  const send = ({ id }) => look(place, id, link);
  return card("Look at a movement", h("div", { class: "body" }, form(content, "Look", send), place));
}

/** The currencies with their rules. */
function rules(signal) {
  const said = ({ transfers, withdrawals }) => `${transfers ? "Members transfer it" : "Members do not transfer it"}; it is ${withdrawals ? "" : "not "}withdrawn`;
  const limits = [["balance_max", "Largest balance"], ["transfer_max", "Most at once"], ["day_max", "Most on a day"]];
  const limit = (one) => ([name, label]) => one[name] && h("span", { class: "under" }, `${label} `, decimal(one[name], one.currency));
  const view = table("Currencies", [
    { label: "Currency", kind: "fit", cell: ({ currency, digits }) => [h("span", { class: "strong" }, currency), h("span", { class: "under" }, count(digits, "decimal"))] },
    { label: "Rules", cell: (one) => [h("span", { class: "name" }, said(one)), ...limits.map(limit(one))] },
  ], { key: ({ currency }) => currency });
  const place = h("div", {}, view.element);
  get("/v1/currencies", {}, signal).then(({ items }) => view.update(items)).catch((error) => inline(place, error));
  return card("Currencies", place);
}

const MEANING = {
  BANK_ASSET: "what the bank holds",
  BANK_PAYABLE: "what is owed to wallets",
  FEES: "what was paid to the house",
  PRIZES: "what prizes were paid from",
  PROMOTIONS: "what promotional credit came from",
};

function books(signal) {
  const verdict = h("div", { class: "body", "aria-live": "polite" });
  const view = table("Accounts of the ledger", [
    { label: "Account", cell: ({ account }) => [h("span", { class: "strong" }, account), h("span", { class: "under" }, MEANING[account] ?? "")] },
    { label: "Debits", kind: "num wide", cell: ({ debits, currency }) => decimal(debits, currency) },
    { label: "Credits", kind: "num wide", cell: ({ credits, currency }) => decimal(credits, currency) },
    { label: "Balance", kind: "num", cell: balance },
  ], { key: ({ account, currency }) => `${account} ${currency}` });
  const place = h("div", {});
  const sums = h("div", { class: "foot" });
  let before = null;
  every(PAUSE, signal, async () => {
    const { balanced, accounts } = await get("/v1/ledger/trial-balance", {}, signal);
    if (before !== balanced) set(verdict, told(balanced));
    before = balanced;
    view.update(accounts);
    if (accounts.length === 0) set(place, empty("No money yet", coded("Make members with `tally import members` or `POST /v1/members`, then deposit.")));
    else if (view.element.parentElement !== place) set(place, view.element);
    set(sums, h("span", {}, totals(accounts)), h("span", {}, "debits equal credits in every currency"));
  }, (error) => {
    before = null;
    inline(verdict, error);
  });
  return h("section", { class: "card" }, h("div", { class: "top" }, h("h2", {}, "Trial balance")), verdict, place, sums);
}

function told(balanced) {
  return balanced
    ? notice("ok", h("p", { class: "strong" }, "The books are in balance"))
    : notice("bad", h("p", { class: "strong" }, "The books are out of balance"), h("p", {}, coded("Stop payments and run `tally verify`.")));
}

function balance({ debits, credits, currency }) {
  const left = BigInt(debits) - BigInt(credits);
  const side = left === 0n ? "" : left < 0n ? " Cr" : " Dr";
  return money(left < 0n ? -left : left, currency) + side;
}

function totals(accounts) {
  const sums = new Map();
  for (const { currency, debits } of accounts) sums.set(currency, (sums.get(currency) ?? 0n) + BigInt(debits));
  return [...sums].map(([currency, sum]) => `${money(sum, currency)} moved`).join(", ");
}
