// The money of a player: its member, wallets and open holds, and an adjustment with a reason.

import { adjust, mayAdjust } from "./adjust.js";
import { get, part, walk } from "./api.js";
import { failed, inline } from "./dialog.js";
import { button, card, chip, empty, facts, h, put, renew, set } from "./dom.js";
import { money as amountOf, when } from "./format.js";
import { makeMember } from "./member_form.js";
import { link } from "./members.js";
import { feeOf, withContests } from "./player_contests.js";
import { may } from "./rights.js";
import { t } from "./texts.js";

const HOLDS_MAX = 20;
/** Pages of members that are looked through for closed ones. */
const MEMBER_PAGES_MAX = 20;

/**
 * A card, with its `reload`; nothing for a caller that may not read members. `changed` is called once the player is a member,
 * `adjusted` after an adjustment or its undo, and `told` with the member that was read. `memberNow()` reads it, and `contests()` returns
 * the contests of the player.
 */
export function money(player, memberNow, signal, { changed, adjusted, told, contests }) {
  if (!may("members:read")) return null;
  const said = h("div", {});
  const place = h("div", {});
  let seen = null;
  let purse = null;
  const load = async () => {
    const member = await memberNow();
    const text = JSON.stringify(member);
    const same = text === seen;
    if (!same) purse = member && may("money:read") ? purseOf(member, contests, signal) : null;
    await purse?.load();
    set(said);
    // The same member keeps its form, with what was typed.
    if (same) return;
    set(place, member ? ofMember(member, purse, adjusted) : withoutMember(player, changed, signal));
    seen = text;
    told(member);
  };
  const reload = () => load().catch((error) => inline(said, error));
  reload();
  return { element: card(t("wallet.of_player"), h("div", {}, said, place)), reload };
}

function withoutMember(player, changed, signal) {
  const place = h("div", { "aria-live": "polite" });
  const make = may("members:write") && button(t("wallets.new"), () => makeMember({ player }, changed), { kind: "small" });
  const look = button(t("wallet.look_closed"), async () => set(place, h("div", { class: "body" }, await closedOf(player, signal))), { kind: "small", failed });
  return [empty(t("wallet.player_alone"), t("wallet.player_alone_text"), ...[make, look].filter(Boolean)), place];
}

/** The closed members that had the player. No request finds them by it, so the newest members are looked through. */
async function closedOf(player, signal) {
  const found = [];
  const note = (items) => found.push(...items.filter((one) => one.closed_at && one.player === player));
  const complete = await walk("/v1/members", {}, "items", note, signal, MEMBER_PAGES_MAX);
  if (found.length === 0) return h("p", { class: "soft" }, t(complete ? "wallet.none_closed" : "wallet.none_closed_newest"));
  const one = ({ id, name, closed_at: at }) => h("li", {}, h("a", { class: "name", href: link(id) }, name), " ", chip(t("wallet.closed"), "bad"), " ", when(at));
  return h("ul", { class: "plain" }, found.map(one));
}

/** The wallets of a member with its open holds: `load` reads them, `wallets()` returns those that were read. */
function purseOf(member, contests, signal) {
  const element = h("div", { class: "stack" });
  let wallets = [];
  const load = async () => {
    const { items, ...rest } = await walletsAndHolds(member, signal);
    const found = { ...rest, items: withContests(items, contests().values()) };
    wallets = found.wallets;
    renew(element, found, () => shown(found, member));
  };
  return { element, load, wallets: () => wallets };
}

function ofMember(member, purse, adjusted) {
  const again = () => Promise.all([purse?.load(), adjusted()]);
  const adjusts = !member.closed_at && mayAdjust() &&
    h("details", {}, h("summary", {}, t("wallet.adjust_title")), h("div", { class: "body" }, adjust(member, () => purse?.wallets() ?? [], again)));
  return put(h("div", { class: "body stack" }), identity(member), purse?.element, adjusts);
}

function identity(member) {
  return facts([
    [t("wallet.name"), h("a", { class: "name", href: link(member.id) }, member.name)],
    [t("wallet.login"), member.login_id],
    [t("wallet.phone"), member.phone_number ?? t("wallets.none")],
    member.closed_at && [t("wallet.closed_at"), when(member.closed_at)],
  ]);
}

async function walletsAndHolds(member, signal) {
  const query = { member: member.id, state: "open", limit: HOLDS_MAX };
  const [{ items: wallets }, { items, next_cursor: more }] = await Promise.all([
    get(`/v1/wallets/${part(member.id)}`, {}, signal),
    get("/v1/holds", query, signal),
  ]);
  return { wallets, items, more };
}

function shown({ wallets, items, more }, member) {
  const one = ({ currency, balance, held, available }) => facts([[t("wallet.balance"), amountOf(balance, currency)], [t("wallet.held"), amountOf(held, currency)], [t("wallet.available"), amountOf(available, currency)]]);
  const hold = ({ amount, currency, reason, contest, expires_at: ends }) => h("li", {}, amountOf(amount, currency), ends && ` ${t("wallet.ends", { at: when(ends) })}`, reason && ` “${reason}”`, contest && [" · ", feeOf(contest)]);
  const listed = items.length > 0 && h("div", {}, h("h3", {}, t("wallets.open_holds"), " ", chip(more ? t("wallet.or_more", { n: items.length }) : String(items.length), "warn")), h("ul", { class: "plain" }, items.map(hold)));
  const all = h("p", { class: "small" }, h("a", { href: link(member.id) }, t("wallet.to_transactions")));
  return [wallets.map(one), wallets.length === 0 ? h("p", { class: "soft" }, t("wallet.empty_wallet")) : all, listed];
}
