// Players: found by the beginning of a name, and the last bans.

import { get } from "./api.js";
import { link as boardLink } from "./boards.js";
import { inline } from "./dialog.js";
import { card, chip, empty, h, head, notice, playerLink, put, set } from "./dom.js";
import { when } from "./format.js";
import { field, form } from "./form.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";

const FOUND_MAX = 50;

export const title = "Players";

export function render(root, { q = "" }, signal) {
  const found = h("div", { "aria-live": "polite" });
  const where = may("members:read") ? "Player, login, phone number or member id" : "Player";
  const input = field({ name: "q", label: where, type: "search", required: true, value: q, hint: "Its beginning is enough. Capitals and small letters are both looked for." });
  const send = ({ q: text }) => {
    // The address has the search, so it can be shared and gone back to.
    if (text === q) return look(found, text, signal);
    location.hash = `/players?q=${encodeURIComponent(text)}`;
    return null;
  };
  const search = h("section", { class: "card" }, h("div", { class: "body" }, form([input], "Search", send, { inline: true })));
  const about = "One page for each player: ranks on every leaderboard, bans, money, contests, and what was done to it.";
  put(root, head("Players", { about }), h("div", { class: "stack" }, search, found, may("audit:read") && bans(signal)));
  if (q) look(found, q, signal).catch((error) => inline(found, error));
  else input.querySelector("input").focus();
}

async function look(place, text, signal) {
  const { items, complete } = await get("/v1/players", { prefix: text, limit: FOUND_MAX }, signal);
  if (items.length === 0) {
    const more = complete ? "" : " Not every leaderboard was searched.";
    set(place, notice("warn", h("p", { class: "strong" }, `Nobody is found for “${text}”`), h("p", { class: "small" }, `Names of profiles and of members are not searched: use the id, the login or the phone number.${more}`)));
    return;
  }
  const view = table("Players that were found", [
    { label: "Player", cell: ({ player, member }) => [playerLink(player), member && h("span", { class: "under name" }, member.name), member?.closed_at && chip("closed", "bad")] },
    { label: "Member", cell: ({ member }) => (member ? [h("span", { class: "name" }, member.login_id), member.phone_number && h("span", { class: "under" }, member.phone_number)] : h("span", { class: "soft" }, "none")) },
    { label: "Found on", kind: "wide", cell: ({ boards }) => boards.map((board) => h("div", {}, h("a", { class: "name", href: boardLink(board) }, board))) },
  ], { key: ({ player }) => player });
  view.update(items);
  const foot = complete ? null : h("span", {}, "There may be more: type more of the name.");
  set(place, card("Found", view.element, { foot }));
}

/** The last bans of the audit log. */
function bans(signal) {
  const view = table("The last bans", [
    { label: "Player", cell: ({ subject, reason }) => [playerLink(subject), reason && h("span", { class: "under name" }, `“${reason}”`)] },
    { label: "On", cell: ({ detail }) => h("a", { class: "name", href: boardLink(detail) }, detail) },
    { label: "When", kind: "wide num", cell: ({ at }) => h("span", { class: "soft" }, when(at)) },
    { label: "By", kind: "wide", cell: ({ actor }) => h("code", {}, actor) },
  ], { key: ({ id }) => id });
  const nothing = () => empty("No ban", "A ban takes a player out of the ranks of a leaderboard until it is restored.");
  const all = list(view, (cursor) => get("/v1/audit", { action: "player.banned", limit: 10, cursor }, signal), nothing);
  const said = h("div", {});
  all.reload().catch((error) => inline(said, error));
  return card("The last bans", h("div", {}, said, all.element));
}
