// Unpaid payouts of contests and periods, with the reason, the place that mends it, and another try.

import { get, withQuery } from "./api.js";
import { keptBackBy, mayBePaid, mayPay, whyUnpaid, withMembers } from "./board_prizes.js";
import { link as boardLink } from "./boards.js";
import { link as contestLink } from "./contests.js";
import { failed, inline } from "./dialog.js";
import { button, card, empty, h, head, playerLink, put, set } from "./dom.js";
import { money } from "./format.js";
import { makeMember } from "./member_form.js";
import { memberLink } from "./members.js";
import { periodLine } from "./period_zone.js";
import { paymentBan, withBans } from "./players.js";
import { BY_HAND, repay } from "./repay.js";
import { isAdmin, may } from "./rights.js";
import { list, table } from "./table.js";
import { has, t } from "./texts.js";

export const title = t("owed.title");

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
  const make = ({ player }) => makeMember({ player }, again, (member) => member.player === player && t("owed.payable", { player }));
  const acts = (row) => [
    row.code === "no_member" && row.memberNow === null && may("members:write") && button(t("wallets.new"), () => make(row), { kind: "small" }),
    BY_HAND.has(row.code) && mayBePaid(row) && mayRepay(row) && button(t("repay.go"), () => repay(row, again), { kind: "small", failed }),
  ];
  const page = async (cursor) => {
    const found = await get("/v1/ledger/owed", { no_member: true, limit: 50, cursor }, signal);
    return { ...found, items: await withBans(await withMembers(found.items, signal), signal) };
  };
  const view = table(t("owed.caption"), [
    { label: t("owed.of"), cell: (row) => [source(row), h("span", { class: "under narrow" }, winner(row)), h("span", { class: "under narrow" }, whyUnpaid(row)), mend(row, "under narrow")] },
    { label: t("owed.player"), kind: "wide who", cell: (row) => [winner(row), row.member && h("div", { class: "small" }, memberLink(row.member))] },
    { label: t("owed.amount"), kind: "num", cell: ({ amount, currency, type }) => [h("span", { class: "strong" }, money(amount, currency)), h("span", { class: "under" }, type === "refund" ? t("owed.refund") : t("owed.prize"))] },
    { label: t("owed.why"), kind: "wide", cell: (row) => [whyUnpaid(row), mend(row, "under")] },
    { label: t("owed.acts"), kind: "actions", cell: acts },
  ]);
  const nothing = () => empty(t("owed.nothing"), t("owed.nothing_text"));
  const all = list(view, page, nothing);
  const look = button(t("owed.look"), again);
  put(root, head(title, { crumb: ["#/wallets", t("wallets.title")], about: t("owed.about"), actions: [look] }), card(t("owed.caption"), h("div", {}, said, all.element)));
  again();
}

/** A prize that was fixed before a ban is owed all the same. */
const winner = (row) => [playerLink(row.player), " ", paymentBan(row)];

/** What to do, where the code does not say it. */
function mend(row, kind) {
  const key = `owed.mend.${keptBackBy(row)}`;
  return has(key) && h("span", { class: kind }, t(key));
}

/** The staff of a contest pays on its page; here only an admin does. */
function mayRepay({ contest }) {
  return contest ? isAdmin() : mayPay();
}

/** The page that mends it: the contest, or the period of the leaderboard. */
function source({ contest, board, period }) {
  if (contest) return h("a", { class: "name", href: contestLink(contest) }, contest);
  return [h("a", { class: "name", href: withQuery(boardLink(board), { period }) }, board), h("span", { class: "under name" }, periodLine(board, period))];
}
