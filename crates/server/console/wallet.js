// One member: identity, wallets, an adjustment, transfers and holds; its data, exported and erased.

import { adjust, mayAdjust } from "./adjust.js";
import { change, get, part } from "./api.js";
import { actsOn } from "./ban.js";
import { failed, inline, toast } from "./dialog.js";
import { button, card, chip, choice, facts, h, head, notice, playerLink, put, set } from "./dom.js";
import { money, when } from "./format.js";
import { holds, makeHold } from "./holds.js";
import { data } from "./member_data.js";
import { closeMember, editMember } from "./member_form.js";
import { copyable } from "./members.js";
import { isAdmin, may } from "./rights.js";
import { t } from "./texts.js";
import { transactions } from "./wallet_history.js";

export const title = t("wallet.title");

const crumb = ["#/wallets", t("wallets.title")];

export function render(root, { member: id }, signal) {
  const place = h("div", {}, head(title, { crumb }));
  put(root, place);
  const load = async () => {
    const reads = may("members:read");
    const member = reads ? await get(`/v1/members/${part(id)}`, {}, signal).catch(absent) : null;
    const found = member || may("money:read") ? await walletsOf(id, signal).catch(absent) : null;
    if (member) document.title = `${member.name} · tally`;
    if (member) show(place, member, found?.items ?? [], { load, signal });
    else if (found && !reads) show(place, { id, name: id }, found.items, { load, signal });
    else if (found) showPool(place, id, found.items, signal);
    else set(place, head(title, { crumb }), notice("bad", h("p", { class: "strong" }, t("wallet.no_member")), h("p", {}, h("a", { href: "#/wallets" }, t("wallet.find_another")))));
  };
  load().catch((error) => {
    const wrong = h("div", {});
    set(place, head(title, { crumb }), wrong);
    inline(wrong, error);
  });
}

/** What is not there is nothing; other failures stay. */
function absent(error) {
  if (error.status !== 404) throw error;
  return null;
}

/** The wallet of a contest's pool: it has no member, and contests alone move its money. */
function showPool(place, id, wallets, signal) {
  const history = transactions(id, () => wallets, null, signal);
  set(place, head(t("wallet.pool"), { crumb, about: t("wallet.pool_text") }), h("div", { class: "stack" }, wallets.map(amounts), history.element));
}

async function walletsOf(id, signal) {
  return may("money:read") ? get(`/v1/wallets/${part(id)}`, {}, signal) : { items: [] };
}

/** A member with its wallets. A caller that may not read members has its id alone. */
function show(place, member, wallets, { load, signal }) {
  const purse = h("div", { class: "stack" });
  let now = wallets;
  const showPurse = () => set(purse, now.map(amounts));
  const renew = async (currency) => {
    now = (await walletsOf(member.id, signal)).items;
    showPurse();
    await Promise.all([history?.reload(currency), held?.reload()]);
  };
  showPurse();
  const opened = !member.closed_at;
  const history = may("money:read") ? transactions(member.id, () => now, renew, signal) : null;
  const held = may("money:read") ? holdsOf(member, wallets, renew, signal) : null;
  const adjusts = opened && mayAdjust() && card(t("wallet.adjust_title"), h("div", { class: "body" }, adjust(member, () => now, renew)));
  const left = h("div", { class: "stack" }, purse, adjusts, history?.element, held?.element);
  if (!may("members:read")) return set(place, head(title, { crumb, about: t("wallet.nameless") }), left);
  const mark = member.erasure ? chip(t("wallet.erased"), "bad") : member.closed_at ? chip(t("wallet.closed"), "bad") : chip(t("wallet.open"), "ok");
  const right = h("div", { class: "stack" }, identity(member, load), isAdmin() && data(member, load));
  set(place, head(member.name, { crumb, marks: [mark, h("span", { class: "soft name" }, member.login_id)] }), h("div", { class: "two" }, left, right));
}

function amounts({ currency, balance, held, available, promotional, credits = [] }) {
  const pairs = [[t("wallet.balance"), money(balance, currency)], [t("wallet.held"), money(held, currency)], [t("wallet.available"), money(available, currency)]];
  if (promotional) pairs.push([t("wallet.promotional"), money(promotional, currency)]);
  const ends = credits.map((one) => h("div", {}, t("wallet.credit_until", { sum: money(one.amount, currency), at: when(one.expires_at) })));
  return h("section", { class: "card" }, h("div", { class: "body" }, facts(pairs, "big"), ends.length > 0 && h("div", { class: "soft" }, ends)));
}

/** The holds of a member: the open ones, or all. */
function holdsOf(member, wallets, renew, signal) {
  let state = "open";
  const all = holds(() => ({ member: member.id, state }), signal, renew, member.player);
  const states = choice(t("wallet.hold_states"), [["open", t("wallet.holds_open")], ["", t("wallet.holds_all")]], state, (chosen) => {
    state = chosen;
    all.reload();
  });
  const make = !member.closed_at && may("money:move") && button(t("wallet.new_hold"), () => makeHold(member, wallets, renew), { kind: "small", failed });
  return { element: card(t("wallet.holds"), all.element, { side: h("div", { class: "row" }, states, make) }), reload: all.reload };
}

function identity(member, load) {
  const locked = member.pin_locked_until && t("wallet.locked", { at: when(member.pin_locked_until) });
  const path = `/v1/members/${part(member.id)}`;
  const unlock = async (made) => {
    await change("POST", `${path}/unlock-pin`, {});
    made.remove();
    toast("ok", t("wallet.unlocked"));
  };
  const signOut = async () => {
    await change("POST", `${path}/sign-out`, {});
    toast("ok", t("wallet.signed_out"));
  };
  const writes = may("members:write") && !member.closed_at;
  const pairs = [
    [t("wallet.login"), member.login_id],
    [t("wallet.phone"), member.phone_number ?? t("wallets.none")],
    [t("wallet.player"), playerLink(member.player)],
    [t("wallet.signs_in"), member.has_password ? t("wallet.with_password") : t("wallet.not_at_all")],
    [t("wallet.pays_itself"), member.has_pin ? t("wallet.with_pin") : t("wallet.not_at_all")],
    [t("wallet.created_at"), when(member.created_at)],
    member.closed_at && [t("wallet.closed_at"), when(member.closed_at)],
  ];
  const acts = writes && h("div", { class: "row" },
    button(t("wallet.edit"), () => editMember(member, load), { kind: "small" }),
    member.has_password && button(t("wallet.sign_out"), signOut, { kind: "small", failed }),
    button(t("wallet.close_member"), () => closeMember(member, load), { kind: "small danger", failed }));
  const id = h("div", { class: "small" }, h("div", { class: "soft" }, t("wallet.id")), copyable(member.id));
  const warned = locked && notice("warn", h("p", {}, locked), may("members:write") && button(t("wallet.unlock"), unlock, { kind: "small", failed }));
  return card(t("wallets.member"), h("div", { class: "body stack" }, warned, facts(pairs), id, acts), { side: actsOn(member.id) });
}
