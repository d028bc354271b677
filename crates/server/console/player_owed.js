// The prizes and fees that a player has not got, each with its reason and another try. Nothing is shown while there are none.

import { get, part, withQuery } from "./api.js";
import { mayBePaid, mayPay, payPeriod, whyUnpaid } from "./board_prizes.js";
import { link as boardLink } from "./boards.js";
import { link as contestLink } from "./contests.js";
import { failed } from "./dialog.js";
import { button, card, h } from "./dom.js";
import { money } from "./format.js";
import { memberOf } from "./members.js";
import { may } from "./rights.js";
import { table } from "./table.js";
import { t } from "./texts.js";

/** Reasons that another try may overcome. */
const BY_HAND = new Set(["member_closed", "limit_exceeded", "no_member"]);

/** Pages of what is owed that are read. */
const PAGES_MAX = 20;
/** Leaderboards, and closed periods of each, that are looked through for prizes without a member. */
const BOARDS_MAX = 10;
const PERIODS_MAX = 12;

/** A card that shows itself when something was found; `boards` are the leaderboards of the player with periods, and `changed` is called after payments. */
export function owed(player, boards, signal, changed) {
  if (!may("money:read")) return null;
  const pay = (row) => BY_HAND.has(row.reason) && row.board && mayBePaid(row) && button(t("player.pay"), () => payPeriod(row.board, row.period, changed), { kind: "small", failed });
  const view = table(t("player.owed"), [
    { label: t("player.owed_of"), cell: source },
    { label: t("player.amount"), kind: "num", cell: ({ amount, currency, type }) => [h("span", { class: "strong" }, money(amount, currency)), h("span", { class: "under" }, t(`player.owed_type.${type}`))] },
    ...(mayPay() ? [{ label: t("board.actions"), kind: "actions", cell: pay }] : []),
  ], { key: (row) => `${row.contest ?? row.board} ${row.period} ${row.amount} ${row.reason}` });
  const element = card(t("player.owed"), view.element);
  element.hidden = true;
  const load = async () => {
    const [waiting, missed, memberNow] = await Promise.all([ofLedger(player, signal), withoutMember(player, boards, signal), memberOf(player, signal)]);
    const rows = [...waiting, ...missed].map((row) => ({ ...row, memberNow }));
    view.update(rows, { flash: false });
    element.hidden = rows.length === 0;
  };
  load().catch(failed);
  return { element, reload: load };
}

function source(row) {
  const { contest, board, period } = row;
  const name = contest ? h("a", { class: "name", href: contestLink(contest) }, contest) : h("a", { class: "name", href: withQuery(boardLink(board), { period }) }, board);
  return [name, period && h("span", { class: "under name" }, period), h("span", { class: "under" }, whyUnpaid(row))];
}

/** What the ledger owes the player. */
async function ofLedger(player, signal) {
  const rows = [];
  let cursor = null;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await get("/v1/ledger/owed", { limit: 1000, cursor }, signal);
    rows.push(...page.items.filter((one) => one.player === player));
    cursor = page.next_cursor ?? null;
    if (!cursor) break;
  }
  return rows;
}

/** Prizes of closed periods that the player won while it was no member: they are owed to nobody yet. */
async function withoutMember(player, boards, signal) {
  const paying = boards.filter(({ periods }) => periods.some(({ prizes }) => prizes)).slice(0, BOARDS_MAX);
  const of = async ({ board }) => {
    const path = `/v1/leaderboards/${part(board)}`;
    const { items: all } = await get(`${path}/periods`, { limit: PERIODS_MAX }, signal);
    const closed = all.filter(({ state }) => state === "closed");
    const found = await Promise.all(closed.map(async ({ period }) => {
      const { items: prizes } = await get(`${path}/prizes`, { period, limit: 1000 }, signal);
      return prizes.filter((one) => one.player === player && one.reason === "no_member").map((one) => ({ ...one, board, period, type: "prize" }));
    }));
    return found.flat();
  };
  return (await Promise.all(paying.map(of))).flat();
}
