// One member: identity, wallets, transfers; deposits and holds; its data, exported and erased.

import { change, get, part } from "./api.js";
import { confirmTyped, dialog, failed, inline, toast } from "./dialog.js";
import { button, card, chip, choice, empty, facts, h, head, notice, playerLink, put, set } from "./dom.js";
import { decimal, money, when } from "./format.js";
import { field, form, reason } from "./form.js";
import { data } from "./member_data.js";
import { look } from "./movement.js";
import { link } from "./wallets.js";
import { isAdmin, may } from "./rights.js";
import { list, table } from "./table.js";

export const title = "Wallet";

export function render(root, { member: id }, signal) {
  const place = h("div", {});
  put(root, place);
  const crumb = ["#/wallets", "Wallets"];
  set(place, head("Wallet", { crumb }));
  const load = async () => {
    const [member, { wallets }] = await Promise.all([get(`/v1/members/${part(id)}`, {}, signal), get(`/v1/wallets/${part(id)}`, {}, signal)]);
    document.title = `${member.name} · tally`;
    show(place, member, wallets, signal, load);
  };
  load().catch((error) => {
    if (error.name === "AbortError") return;
    const wrong = h("div", {});
    const back = h("p", {}, h("a", { href: "#/wallets" }, "Find a member by login, phone number or player"));
    set(place, head("Wallet", { crumb }), h("div", { class: "stack" }, wrong, error.status === 404 && back));
    inline(wrong, error);
  });
}

function show(place, member, wallets, signal, load) {
  const crumb = ["#/wallets", "Wallets"];
  const marks = [member.erasure ? chip("erased", "bad") : member.closed_at ? chip("closed", "bad") : chip("open", "ok"), h("code", { class: "soft" }, member.id)];
  const purse = h("div", { class: "stack" });
  let currency = wallets[0]?.currency ?? null;
  const renew = async () => {
    const { wallets: now } = await get(`/v1/wallets/${part(member.id)}`, {}, signal);
    set(purse, now.map(amounts));
    await history.reload();
  };
  const history = transactions(member.id, () => currency, renew, signal);
  const currencies = wallets.length > 1 && choice("Currency", wallets.map((one) => [one.currency, one.currency]), currency, (chosen) => {
    currency = chosen;
    history.reload().catch(failed);
  });
  set(purse, wallets.map(amounts));
  const left = h("div", { class: "stack" }, purse, card("Transactions", history.element, { side: currencies }));
  const right = h("div", { class: "stack" }, who(member), !member.closed_at && may("money:mint") && deposit(member, wallets, renew), !member.closed_at && may("money:move") && holds(member, wallets, renew), isAdmin() && data(member, load));
  set(place, head(member.name, { crumb, marks }), h("div", { class: "two" }, left, right));
  history.reload().catch((error) => inline(history.element, error));
}

function amounts({ currency, balance, held, available, promotional, credits = [] }) {
  const pairs = [["Balance", money(balance, currency)], ["Held", money(held, currency)], ["Available", money(available, currency)]];
  if (promotional) pairs.push(["Promotional", money(promotional, currency)]);
  const ends = credits.map((one) => h("div", {}, `${money(one.amount, currency)} until ${when(one.expires_at)}`));
  return h("section", { class: "card" }, h("div", { class: "body" }, facts(pairs, "big"), ends.length > 0 && h("div", { class: "soft" }, ends)));
}

function who(member) {
  const locked = member.pin_locked_until && `PIN locked until ${when(member.pin_locked_until)}`;
  const unlock = async (made) => {
    await change("POST", `/v1/members/${part(member.id)}/unlock-pin`, {});
    made.remove();
    toast("ok", "The PIN may be tried again");
  };
  const pairs = [
    ["Login", member.login_id],
    ["Phone", member.phone_number ?? "none"],
    ["Player", playerLink(member.player)],
    ["Signs in", member.has_password ? "with a password" : "not at all"],
    ["Pays by itself", member.has_pin ? "with a PIN" : "not at all"],
    ["Member since", when(member.created_at)],
    member.closed_at && ["Closed", when(member.closed_at)],
  ];
  const body = h("div", { class: "body" }, locked && notice("warn", h("p", {}, locked), may("members:write") && button("Unlock", unlock, { kind: "small", failed })), facts(pairs));
  const signOut = async () => {
    await change("POST", `/v1/members/${part(member.id)}/sign-out`, {});
    toast("ok", "Its tokens have ended");
  };
  return card("Member", body, { side: member.has_password && !member.closed_at && may("members:write") && button("Sign out", signOut, { kind: "small", failed }) });
}

/** The sign of a transfer as its owner sees it. */
const OUT = new Set(["withdrawal", "transfer_out", "capture", "fee", "reversal_out", "prize_out", "refund_out", "expiry"]);

function transactions(member, currency, renew, signal) {
  const open = async ({ group_id: id }) => {
    const place = h("div", { class: "stack" });
    await look(place, id, link, renew);
    dialog("Both sides", (box) => [place, h("div", { class: "ends" }, button("Close", () => box.close()))], { wide: true });
  };
  const out = ({ before, after, type }) => (before === after ? OUT.has(type) : BigInt(after) < BigInt(before));
  const view = table("Transactions, newest first", [
    { label: "What", cell: (one) => [chip(one.type.replaceAll("_", " "), out(one) ? "" : "ok"), h("span", { class: "under" }, when(one.at)), one.reference && h("span", { class: "under name" }, one.reference)] },
    { label: "With", kind: "wide", cell: ({ counterparty, counterparty_name: name }) => (counterparty ? h("a", { class: "name", href: link(counterparty) }, name || counterparty) : h("span", { class: "soft" }, "–")) },
    { label: "Amount", kind: "num", cell: (one) => h("span", { class: "strong" }, `${out(one) ? "−" : "+"}${decimal(one.amount, one.currency)}`) },
    { label: "Balance after", kind: "num", cell: ({ after, currency: code }) => h("span", { class: "soft" }, decimal(after, code)) },
    { label: "Both sides", kind: "actions wide", cell: (one) => button("Details", () => open(one), { kind: "small", failed }) },
  ], { key: ({ id }) => id });
  const path = `/v1/wallets/${part(member)}/transactions`;
  return list(view, (cursor) => get(path, { limit: 20, cursor, currency: currency() }, signal), () =>
    empty("Nothing moved yet", "A deposit is the first entry of most wallets."));
}

const amount = (name = "amount") => field({ name, label: "Amount", inputmode: "numeric", required: true, placeholder: "1000", hint: "In the smallest unit of the currency." });

function currencyField(wallets) {
  return field({ name: "currency", label: "Currency", value: wallets[0]?.currency ?? "", maxlength: 16 });
}

function deposit(member, wallets, renew) {
  const content = [h("div", { class: "fields" }, amount(), currencyField(wallets)), field({ name: "reference", label: "Reference", hint: "What it is for; it is kept with the entry." }),
    field({ name: "expires_at", label: "Promotional until", type: "datetime-local", hint: "Empty: usual money. Promotional credit is spent first, and leaves the wallet at this time." }), reason("Members do not see it.")];
  const send = async ({ amount: sum, currency, reference, expires_at: ends, reason: why }, made) => {
    const body = { to: member.id, amount: sum, ...(currency && { currency }), ...(reference && { reference }), ...(ends && { expires_at: new Date(ends).toISOString() }), ...(why && { reason: why }) };
    const { after } = await change("POST", "/v1/deposits", body);
    made.reset();
    toast("ok", `${money(sum, currency)} deposited`, `The balance is ${money(after, currency)}.`);
    await renew();
  };
  return card("Deposit", h("div", { class: "body" }, form(content, "Deposit", send)));
}

/** Holds of a member cannot be listed: one that is made here is shown, and others are found by their id. */
function holds(member, wallets, renew) {
  const place = h("div", { class: "stack", "aria-live": "polite" });
  const showHold = (hold) => set(place, held(hold, renew, showHold));
  const content = [h("div", { class: "fields" }, amount(), currencyField(wallets)), field({ name: "expires_at", label: "Ends by itself at", type: "datetime-local", hint: "Empty: it stays until it is taken or let go." })];
  const send = async ({ amount: sum, currency, expires_at: ends }, made) => {
    const body = { member: member.id, amount: sum, ...(currency && { currency }), ...(ends && { expires_at: new Date(ends).toISOString() }) };
    showHold(await change("POST", "/v1/holds", body));
    made.reset();
    await renew();
  };
  const find = form([field({ name: "id", label: "Hold id", type: "search", required: true })], "Look", async ({ id }) => showHold(await get(`/v1/holds/${part(id)}`)), { inline: true, kind: "" });
  return card("Hold", h("div", { class: "body" }, form(content, "Hold", send), h("details", {}, h("summary", { class: "small" }, "Look at a hold"), h("div", { class: "body" }, find)), place));
}

const HOLD = { open: "live", captured: "ok", voided: "", expired: "warn" };

function held(hold, renew, showHold) {
  const sum = money(hold.amount, hold.currency);
  const end = async (way, { reason } = {}) => {
    showHold(await change("POST", `/v1/holds/${part(hold.id)}/${way}`, reason ? { reason } : {}));
    await renew();
  };
  const capture = async () => {
    const text = `${sum} goes from the wallet to the account FEES. It cannot be undone.`;
    const sure = await confirmTyped("Take what is held?", text, hold.amount, "Take", { audited: true });
    if (sure) await end("capture", sure);
  };
  const acts = hold.state === "open" && h("div", { class: "row" },
    button("Take", capture, { kind: "small danger", failed }),
    button("Let go", () => end("void"), { kind: "small", failed }));
  return h("div", { class: "stack" }, facts([
    ["Hold", h("code", {}, hold.id)],
    ["Amount", sum],
    ["State", chip(hold.state, HOLD[hold.state])],
    hold.captured && ["Taken", money(hold.captured, hold.currency)],
    hold.expires_at && ["Ends", when(hold.expires_at)],
  ]), acts);
}
