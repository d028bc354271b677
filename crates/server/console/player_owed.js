// The prizes and fees that a player has not got, each with its reason and another try. Nothing is shown while there are none.

import { walk, withQuery } from "./api.js";
import { mayBePaid, mayPay, whyUnpaid } from "./board_prizes.js";
import { link as boardLink } from "./boards.js";
import { link as contestLink } from "./contests.js";
import { failed } from "./dialog.js";
import { button, card, h, put } from "./dom.js";
import { money } from "./format.js";
import { periodLine } from "./period_zone.js";
import { paymentBan, withBans } from "./players.js";
import { BY_HAND, repay } from "./repay.js";
import { may } from "./rights.js";
import { table } from "./table.js";
import { t } from "./texts.js";

/** Pages of what is owed that are read. */
const PAGES_MAX = 20;

/** A card that shows itself when something was found; `member()` reads that of the player, and `changed` is called after payments. */
export function owed(player, member, signal, changed) {
  if (!may("money:read")) return null;
  const pay = (row) => BY_HAND.has(row.code) && row.board && mayBePaid(row) && button(t("player.pay"), () => repay(row, changed), { kind: "small", failed });
  const view = table(t("player.owed"), [
    { label: t("player.owed_of"), cell: source },
    { label: t("player.amount"), kind: "num", cell: ({ amount, currency, type }) => [h("span", { class: "strong" }, money(amount, currency)), h("span", { class: "under" }, t(`player.owed_type.${type}`))] },
    ...(mayPay() ? [{ label: t("board.actions"), kind: "actions", cell: pay }] : []),
  ], { key: (row) => `${row.contest ?? row.board} ${row.period} ${row.amount} ${row.code}` });
  const more = h("div", { class: "foot", hidden: true }, h("span", {}, t("player.more_owed")));
  const element = put(card(t("player.owed"), view.element), more);
  element.hidden = true;
  const load = async () => {
    const [{ found, complete }, memberNow] = await Promise.all([ofLedger(player, signal), member()]);
    const rows = await withBans(found.map((row) => ({ ...row, player, memberNow })), signal);
    view.update(rows, { flash: false });
    view.element.hidden = rows.length === 0;
    more.hidden = complete;
    element.hidden = rows.length === 0 && complete;
  };
  load().catch(failed);
  return { element, reload: load };
}

function source(row) {
  const { contest, board, period } = row;
  const name = contest ? h("a", { class: "name", href: contestLink(contest) }, contest) : h("a", { class: "name", href: withQuery(boardLink(board), { period }) }, board);
  return [name, " ", paymentBan(row), period && h("span", { class: "under name" }, periodLine(board, period)), h("span", { class: "under" }, whyUnpaid(row))];
}

/** What the ledger owes the player, and prizes that it won while it was no member: `{found, complete}`. */
async function ofLedger(player, signal) {
  const found = [];
  const complete = await walk("/v1/ledger/owed", { player, no_member: true }, "items", (items) => found.push(...items), signal, PAGES_MAX);
  return { found, complete };
}
