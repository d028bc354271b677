// Members: found by the beginning of a login, a player or a phone number, listed, and named by their id.

import { get, kept, part, withQuery } from "./api.js";
import { inline, toast } from "./dialog.js";
import { button, card, chip, empty, h, notice, onceSeen, playerLink, put, set } from "./dom.js";
import { field, form } from "./form.js";
import { makeMember } from "./member_form.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";
import { t } from "./texts.js";

const FOUND_MAX = 100;
/** Members of a page of the list of all. */
const LISTED = 20;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const PHONE = /^(\+|00)?\d([\s-]?\d){3,19}$/;

/** The address of a member's page. */
export function link(member) {
  return `#/wallets/${encodeURIComponent(member)}`;
}

const known = kept();
const path = (id) => `/v1/members/${part(id)}`;
const read = (id) => known.read(path(id));

/** Forgets what is known of members, by their ids and by their players: one has changed. */
export const forget = () => known.clear();

/** A link to a member's page. Its name and login are shown once they are read. */
export function memberLink(id) {
  const name = h("a", { class: "name", href: link(id) }, t("wallets.a_member"));
  const made = h("span", {}, name);
  const fill = (member) => {
    set(name, member.name);
    if (member.login_id !== member.name) put(made, h("span", { class: "under name" }, member.login_id));
  };
  // The wallet of a pool has no member, and some keys may not read members. The link holds for both.
  if (may("members:read")) read(id).then(fill).catch(() => {});
  return made;
}

/** A link to a member's page with its login, as soon as that is read. */
export function loginLink(id) {
  const made = h("a", { class: "name", href: link(id) }, id);
  if (may("members:read")) read(id).then(({ login_id: login }) => set(made, login)).catch(() => {});
  return made;
}

/** What follows a link to the wallet of a member: its name once that is read, unless it is that of its `player`. */
export function nameAfter(id, player) {
  const made = h("span", {});
  if (may("members:read")) read(id).then(({ name }) => name !== player && set(made, `: ${name}`)).catch(() => {});
  return made;
}

/** What follows a player: the name of its member as a link to its page, once it is seen and read, unless it is that of the player. */
export function memberAfter(player) {
  const made = h("span", {});
  const from = withQuery("/v1/members", { player });
  const fill = ({ items: [member] }) => {
    // It may be made at any time.
    if (!member) known.forget(from);
    else if (member.name !== player) set(made, " · ", h("a", { href: link(member.id) }, member.name));
  };
  if (may("members:read")) onceSeen(made, () => known.read(from).then(fill).catch(() => {}));
  return made;
}

/** The player of a member. A pool is no member, and some keys may not read members: nothing then. */
export async function playerOf(id) {
  return may("members:read") ? read(id).then(({ player }) => player, () => null) : null;
}

/** The member of a player: `null` without one, and nothing for a caller that may not read members. */
export async function memberOf(player, signal) {
  if (!may("members:read")) return undefined;
  const { items } = await get("/v1/members", { player }, signal);
  return items[0] ?? null;
}

/** The member with this id, login, player or phone number, or nothing. */
export async function findMember(text) {
  if (ID.test(text)) return get(`/v1/members/${part(text)}`);
  // The server refuses what cannot be a phone number.
  for (const by of ["login_id", "player", PHONE.test(text) && "phone_number"].filter(Boolean)) {
    const { items } = await get("/v1/members", { [by]: text });
    if (items.length > 0) return items[0];
  }
  return null;
}

/** An id with a button that copies it, or marks it where the browser lets no page copy, such as without TLS. */
export function copyable(id) {
  const text = h("code", {}, id);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(id);
      toast("ok", t("wallets.copied"));
    } catch {
      getSelection().selectAllChildren(text);
      toast("ok", t("wallets.marked"));
    }
  };
  return [text, " ", button(t("wallets.copy"), copy, { kind: "small" })];
}

/** The card of the search, which lists all members without one. The address has the search, so it can be shared and gone back to. */
export function finder(q, signal) {
  const found = h("div", { "aria-live": "polite" });
  const input = field({ name: "q", label: t("wallets.find"), type: "search", required: true, value: q, hint: t("wallets.find_hint") });
  const send = async ({ q: text }) => {
    if (ID.test(text)) location.hash = link(text).slice(1);
    else if (text === q) await look(found, text, signal);
    else location.hash = `/wallets?q=${encodeURIComponent(text)}`;
  };
  (q ? look(found, q, signal) : everyone(found, signal)).catch((error) => inline(found, error));
  return card(t("wallets.members"), h("div", {}, h("div", { class: "body" }, form([input], t("wallets.find_go"), send, { inline: true })), found));
}

/** All members, the newest first. */
async function everyone(place, signal) {
  const all = list(rows(t("wallets.members")), (cursor) => get("/v1/members", { limit: LISTED, cursor }, signal), () => empty(t("wallets.no_member"), t("wallets.no_member_text")));
  set(place, all.element);
  await all.reload();
}

async function look(place, text, signal) {
  const { items, complete } = await get("/v1/players", { prefix: text, limit: FOUND_MAX }, signal);
  const members = items.filter(({ member }) => member).map(({ player, member }) => ({ ...member, player }));
  // Players without a member may have filled the answer.
  const exact = complete ? null : await findMember(text);
  if (exact && !members.some(({ id }) => id === exact.id)) members.unshift(exact);
  if (members.length === 0) {
    const make = may("members:write") && button(t("wallets.new"), () => makeMember({ login_id: text }), { kind: "small" });
    set(place, notice("warn", h("p", { class: "strong" }, t("wallets.no_match")), h("p", { class: "small" }, t("wallets.no_match_hint")), make));
    return;
  }
  const view = rows(t("wallets.found"));
  view.update(members);
  set(place, view.element, !complete && h("div", { class: "foot" }, t("wallets.more")));
}

function rows(caption) {
  return table(caption, [
    { label: t("wallets.member"), cell: ({ id, name, login_id: login, closed_at: closed }) => [h("a", { class: "name", href: link(id) }, name), closed && [" ", chip(t("wallet.closed"), "bad")], h("span", { class: "under name" }, login)] },
    { label: t("wallets.player"), cell: ({ player }) => playerLink(player) },
    { label: t("wallets.phone"), kind: "wide", cell: ({ phone_number: phone }) => phone ?? h("span", { class: "soft" }, t("wallets.none")) },
  ], { key: ({ id }) => id });
}
