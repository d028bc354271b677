// Unpaid payouts of contests and periods, with the reason.

import { get } from "./api.js";
import { link as boardLink } from "./boards.js";
import { link as contestLink } from "./contests.js";
import { inline } from "./dialog.js";
import { button, empty, h, head, playerLink, put, set } from "./dom.js";
import { money } from "./format.js";
import { list, table } from "./table.js";

export const title = "Owed";

const WHY = {
  pending: "under way",
  currency_mismatch: "this server lacks the currency",
  member_closed: "the member is closed",
  limit_exceeded: "the balance would be too large",
};

export function render(root, _parameters, signal) {
  const view = table("Payments that are owed", [
    { label: "Of", cell: source },
    { label: "Player", cell: ({ player }) => playerLink(player) },
    { label: "What", kind: "wide", cell: ({ type }) => (type === "refund" ? "fee back" : "prize") },
    { label: "Amount", kind: "num", cell: ({ amount, currency, reason }) => [money(amount, currency), h("span", { class: "under" }, WHY[reason] ?? reason)] },
  ]);
  const nothing = () => empty("Nothing is owed", "Every stored prize is paid, and every fee of a cancelled contest is paid back.");
  const all = list(view, (cursor) => page(cursor, signal), nothing);
  const said = h("div", { "aria-live": "polite" });
  const look = async () => {
    set(said);
    try {
      await all.reload();
    } catch (error) {
      inline(said, error);
    }
  };
  const about = "Prizes of contests and periods, and fees of cancelled contests, that are not paid. Prizes of a contest that is not settled are not known yet.";
  put(root, head("Owed", { crumb: ["#/wallets", "Wallets"], about, actions: [button("Look again", look)] }), h("section", { class: "card" }, said, all.element));
  look();
}

/** The next page with items: the rows read for a page are bounded, so a page may be empty. */
async function page(after, signal) {
  let answer;
  let cursor = after;
  do {
    answer = await get("/v1/ledger/owed", { limit: 50, cursor }, signal);
    cursor = answer.next_cursor;
  } while (answer.items.length === 0 && cursor);
  return answer;
}

function source({ contest, board, period }) {
  if (contest) return h("a", { class: "name", href: contestLink(contest) }, contest);
  return [h("a", { class: "name", href: boardLink(board) }, board), h("span", { class: "under name" }, period)];
}
