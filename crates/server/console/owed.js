// Unpaid payouts of contests and periods, with the reason, the place that mends it, and another try.

import { change, get, part, somePage, withQuery } from "./api.js";
import { mayPay } from "./board_prizes.js";
import { link as boardLink } from "./boards.js";
import { link as contestLink } from "./contests.js";
import { confirmActs, failed, inline, toast } from "./dialog.js";
import { button, card, empty, h, head, playerLink, put, set } from "./dom.js";
import { money } from "./format.js";
import { memberLink } from "./members.js";
import { isAdmin, may } from "./rights.js";
import { list, table } from "./table.js";
import { has, named, t } from "./texts.js";

export const title = t("owed.title");

/** Reasons that a try by hand may overcome. The server itself pays the others. */
const BY_HAND = new Set(["limit_exceeded", "member_closed", "no_member"]);

const PATH = "/v1/ledger/owed";

export function render(root, _parameters, signal) {
  const said = h("div", { "aria-live": "polite" });
  const again = async () => {
    set(said);
    try {
      await all.reload();
    } catch (error) {
      inline(said, error);
    }
  };
  const acts = (row) => [
    row.reason === "no_member" && may("members:write") && h("a", { class: "button small", href: withQuery("#/wallets", { player: row.player }) }, t("wallets.new")),
    BY_HAND.has(row.reason) && mayRepay(row) && button(t("owed.again"), () => askRepay(row, again), { kind: "small", failed }),
  ];
  const view = table(t("owed.caption"), [
    { label: t("owed.of"), cell: (row) => [source(row), h("span", { class: "under narrow" }, playerLink(row.player)), h("span", { class: "under narrow" }, why(row.reason))] },
    { label: t("owed.player"), kind: "wide", cell: ({ player, member }) => [playerLink(player), member && h("div", { class: "small" }, memberLink(member))] },
    { label: t("owed.amount"), kind: "num", cell: ({ amount, currency, type }) => [h("span", { class: "strong" }, money(amount, currency)), h("span", { class: "under" }, type === "refund" ? t("owed.refund") : t("owed.prize"))] },
    { label: t("owed.why"), kind: "wide", cell: ({ reason: of }) => [why(of), has(`owed.mend.${of}`) && h("span", { class: "under" }, t(`owed.mend.${of}`))] },
    { label: t("owed.acts"), kind: "actions", cell: acts },
  ]);
  const nothing = () => empty(t("owed.nothing"), t("owed.nothing_text"));
  const all = list(view, (cursor) => somePage(PATH, { no_member: true, limit: 50, cursor }, signal), nothing);
  const look = button(t("owed.look"), again);
  put(root, head(title, { crumb: ["#/wallets", t("wallets.title")], about: t("owed.about"), actions: [look] }), card(t("owed.caption"), h("div", {}, said, all.element)));
  again();
}

function why(reason) {
  return reason === "pending" ? t("owed.pending") : named(`unpaid.${reason}`);
}

/** The staff of a contest pays on its page; here only an admin does. */
function mayRepay({ contest }) {
  return contest ? isAdmin() : mayPay();
}

/** The page that mends it: the contest, or the period of the leaderboard. */
function source({ contest, board, period }) {
  if (contest) return h("a", { class: "name", href: contestLink(contest) }, contest);
  return [h("a", { class: "name", href: withQuery(boardLink(board), { period }) }, board), h("span", { class: "under name" }, period)];
}

/** Everything that is owed by the contest or period of a row, and waits for a try by hand. */
async function ofSource({ contest, board, period }) {
  const found = [];
  let cursor = null;
  do {
    const page = await get(PATH, { no_member: true, limit: 1000, cursor });
    found.push(...page.items.filter((one) => one.contest === contest && one.board === board && one.period === period && BY_HAND.has(one.reason)));
    cursor = page.next_cursor ?? null;
  } while (cursor);
  return found;
}

/** Asks, with what is paid at most, and tries all that the contest or period owes. */
async function askRepay(row, again) {
  const before = await ofSource(row);
  const name = row.contest ?? `${row.board} ${row.period}`;
  const path = row.contest
    ? `/v1/contests/${part(row.contest)}/repay`
    : withQuery(`/v1/leaderboards/${part(row.board)}/prizes/repay`, { period: row.period });
  const consequences = [t("owed.ask_text", { payments: t("owed.payments", { n: before.length }), sums: sums(before) }), t("owed.once")];
  const sure = await confirmActs(t("owed.ask", { name }), consequences, t("owed.go"), { reason: true });
  if (!sure) return;
  if (row.contest) await change("POST", withQuery(path, sure), {});
  else await change("POST", path, sure.reason ? sure : {});
  const left = (await ofSource(row)).length;
  report(before.length - left, left);
  await again();
}

function report(paid, left) {
  const rest = left > 0 ? t("owed.left", { payments: t("owed.payments", { n: left }) }) : t("owed.none_left");
  if (paid > 0) toast("ok", t("owed.paid", { payments: t("owed.payments", { n: paid }) }), rest);
  else toast("bad", t("owed.none_paid"), t("owed.same_reasons"));
}

function sums(rows) {
  const all = new Map();
  for (const { currency, amount } of rows) all.set(currency, (all.get(currency) ?? 0n) + BigInt(amount));
  return [...all].map(([currency, sum]) => money(sum, currency)).join(", ");
}
