// The audit log: administrative acts with their actors.

import { get } from "./api.js";
import { inline } from "./dialog.js";
import { empty, h, head, playerLink, put, set } from "./dom.js";
import { field, form } from "./form.js";
import { when } from "./format.js";
import { list, table } from "./table.js";

/** Acts whose subject is a player. */
const OF_PLAYERS = /^(player|score)\./;

export const title = "Audit log";

export function render(root, _parameters, signal) {
  let filter = {};
  const view = table("Acts", [
    { label: "When", cell: ({ at }) => when(at) },
    { label: "Act", cell: ({ action, detail, reason }) => [h("span", { class: "strong" }, action), detail && h("span", { class: "under name" }, detail), reason && h("span", { class: "under name" }, `“${reason}”`)] },
    { label: "On", cell: ({ action, subject }) => (OF_PLAYERS.test(action) ? playerLink(subject) : h("span", { class: "name" }, subject)) },
    { label: "By", kind: "wide", cell: ({ actor }) => h("code", {}, actor) },
  ], { key: ({ id }) => id });
  const nothing = () => empty("No act", Object.keys(filter).length === 0 ? "Keys, leaderboards, bans, members and contests leave a row each time they are changed." : "No act fits the filter.");
  const all = list(view, (cursor) => page(filter, cursor, signal), nothing);
  const said = h("div", { "aria-live": "polite" });
  const content = [
    field({ name: "subject", label: "On", hint: "The id or the name of what was changed." }),
    field({ name: "actor", label: "By", placeholder: "key:0a1b2c3d4e5f" }),
    field({ name: "action", label: "Act", placeholder: "key.created" }),
  ];
  const send = async (values) => {
    filter = Object.fromEntries(Object.entries(values).filter(([, text]) => text !== ""));
    await all.reload();
  };
  const about = "Administrative acts, newest first. Transfers and holds show their actor themselves.";
  put(root, head("Audit log", { crumb: ["#/settings", "Settings"], about }),
    h("div", { class: "stack" }, h("section", { class: "card" }, h("div", { class: "body" }, form(content, "Show", send, { inline: true }))), h("section", { class: "card" }, said, all.element)));
  all.reload().catch((error) => {
    set(said);
    inline(said, error);
  });
}

/** The next page with items: the rows read for a page are bounded, so a page may be empty. */
async function page(filter, after, signal) {
  let answer;
  let cursor = after;
  do {
    answer = await get("/v1/audit", { ...filter, limit: 50, cursor }, signal);
    cursor = answer.next_cursor;
  } while (answer.items.length === 0 && cursor);
  return answer;
}
