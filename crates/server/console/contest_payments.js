// The prizes or the fees paid back of a contest that is over: what could not be paid with its reason, and one button that pays it.

import { get, part, walk } from "./api.js";
import { failed, inline } from "./dialog.js";
import { button, card, chip, empty, h, notice, playerLink, set } from "./dom.js";
import { grouped, money, totalOf } from "./format.js";
import { every } from "./live.js";
import { link as memberPage, nameAfter } from "./members.js";
import { isUnpaid, repay } from "./repay.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";
import { named, t } from "./texts.js";

/** Milliseconds between refreshes. */
const PAUSE = 5000;
/** The most unpaid rows that are named. */
const NAMED = 50;

/** The wallet of a member that a key may see, with its name. */
export function walletLink({ member, player }) {
  return [h("a", { href: memberPage(member) }, t("contest.wallet")), nameAfter(member, player)];
}

/** The cards of a contest; `what` is `prizes` or `refunds`, and `decides` whether the caller may pay again. */
export function payments(what, contest, signal, decides) {
  const sees = may("money:read");
  const columns = [
    what === "prizes" && { label: t("contest.rank"), kind: "num fit", cell: ({ rank }) => grouped(rank) },
    { label: t("contest.player"), cell: ({ player, member, division }) => [playerLink(player), under([division && t("contest.division", { n: division }), member && walletLink({ member, player })])] },
    { label: t("contest.amount"), kind: "num", cell: ({ amount, currency, pool }) => [money(amount, currency), pool && h("span", { class: "under" }, t("contest.of_pool"))] },
    sees && { label: t(`contest.paid_head.${what}`), cell: (row) => outcome(row, what) },
  ].filter(Boolean);
  const key = ({ division, rank, player, pool }) => `${division} ${rank} ${player} ${pool}`;
  const view = table(t(`contest.payments.${what}`), columns, { key });
  const rows = `/v1/contests/${part(contest)}/${what}`;
  const all = list(view, (cursor) => get(rows, { limit: 20, cursor }, signal), () => empty(t(`contest.none_of.${what}`), t(`contest.none_text.${what}`)));
  const unpaid = h("div", {});
  const said = h("div", {});
  const read = async () => {
    await all.refresh();
    set(said);
  };
  every(PAUSE, signal, read, (error) => inline(said, error));
  if (sees) showUnpaid(unpaid, { rows, contest, signal, decides, columns, key, read }).catch(failed);
  return h("div", { class: "stack" }, unpaid, card(t(`contest.payments.${what}`), h("div", {}, said, all.element)));
}

/** What could not be paid, above everything that was. */
async function showUnpaid(place, from) {
  const { rows, contest, signal, decides, columns, key, read } = from;
  const open = [];
  await walk(rows, {}, "items", (items) => open.push(...items.filter(isUnpaid)), signal);
  if (open.length === 0) return set(place);
  const renew = async () => {
    await showUnpaid(place, from);
    await read();
  };
  const again = decides && button(t("repay.go"), () => repay({ contest }, renew), { kind: "main", failed });
  const view = table(t("contest.unpaid"), columns, { key });
  view.update(open.slice(0, NAMED));
  const more = open.length > NAMED && h("div", { class: "foot" }, t("contest.first_of", { shown: grouped(NAMED), total: grouped(open.length) }));
  const head = h("div", { class: "body" }, notice("warn", h("p", { class: "strong" }, t("contest.unpaid_sum", { n: open.length, total: totalOf(open) })), h("p", { class: "small" }, t("contest.unpaid_text"))));
  set(place, card(t("contest.unpaid"), h("div", {}, head, view.element, more), { side: again }));
}

/** What is below a name, in one line. */
export function under(parts) {
  const given = parts.filter(Boolean);
  return given.length > 0 && h("span", { class: "under" }, given.flatMap((one, at) => (at === 0 ? [one] : [" · ", one])));
}

/** What became of a payment; `what` is `prizes` or `refunds`. */
export function outcome({ paid, code, reversed, currency }, what) {
  if (paid) return [chip(t(`contest.paid.${what}`), "ok"), reversed && h("span", { class: "under" }, t("contest.reversed", { amount: money(reversed, currency) }))];
  if (!code) return chip(t(`contest.under_way.${what}`), "warn");
  const mark = code === "reversed" ? chip(t("contest.not_owed")) : chip(t("contest.not_paid"), "bad");
  return [mark, h("span", { class: "under" }, named(`contest.unpaid_for.${code}`))];
}
