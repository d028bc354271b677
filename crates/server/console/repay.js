// Another try for the payments of a contest or a closed period that were not made: asked with its numbers, and what came of it.

import { change, get, part, walk, withQuery } from "./api.js";
import { bannedOn } from "./ban.js";
import { confirmActs, toast } from "./dialog.js";
import { h, playerLink } from "./dom.js";
import { totalOf } from "./format.js";
import { zonedPeriodOf } from "./period_zone.js";
import { t } from "./texts.js";

/** Codes that a try by hand may overcome. The server itself pays the others. */
export const BY_HAND = new Set(["limit_exceeded", "member_closed", "no_member"]);

/** Whether a payment was refused, and may be tried again. */
export const isUnpaid = ({ paid, code }) => paid === false && BY_HAND.has(code);

/** Names that a message has. */
const NAMED_MAX = 5;
/** Pages of bans that are read before the question. */
const PAGES_MAX = 5;

/** Asks, with what is paid at most, and tries all that is unpaid of `{contest}` or of `{board, period}`. `done` is called after it. */
export async function repay(of, done) {
  const { name, list, query, send, bans } = await (of.contest ? ofContest(of) : ofPeriod(of));
  const read = async () => {
    const rows = [];
    await walk(list, query, "items", (items) => rows.push(...items));
    return rows;
  };
  const before = (await read()).filter(isUnpaid);
  if (before.length === 0) {
    toast("ok", t("repay.all_paid", { name }));
    return done();
  }
  const tries = t("repay.tries", { payments: t("repay.payments", { n: before.length }), sums: totalOf(before) });
  const marked = await bans();
  const banned = before.filter(({ player }) => marked.has(player));
  const fixed = banned.length > 0 && h("strong", {}, t("repay.banned", { n: players(banned).length, players: names(banned), board: of.board }));
  const consequences = [tries, t("repay.to", { players: sums(before) }), fixed, t("repay.once")];
  const sure = await confirmActs(t("repay.ask", { name }), consequences, t("repay.go"), { reason: true });
  if (!sure) return;
  const { pending } = await send(sure.reason);
  const tried = new Set(before.map(keyOf));
  const after = await read();
  report(name, after.filter((row) => row.paid && tried.has(keyOf(row))), after.filter(isUnpaid), pending);
  await done();
}

/** A settled contest owes prizes, and a cancelled one fees. */
async function ofContest({ contest }) {
  const path = `/v1/contests/${part(contest)}`;
  const { state } = await get(path);
  const send = (reason) => change("POST", withQuery(`${path}/repay`, { reason }), {});
  // A player that is banned has no prize of a contest, and cannot be banned once it is settled.
  const bans = () => new Set();
  return { name: contest, list: `${path}/${state === "cancelled" ? "refunds" : "prizes"}`, query: {}, send, bans };
}

async function ofPeriod({ board, period }) {
  const path = `/v1/leaderboards/${part(board)}/prizes`;
  const send = (reason) => change("POST", withQuery(`${path}/repay`, { period }), reason ? { reason } : {});
  return { name: await zonedPeriodOf(board, period), list: path, query: { period }, send, bans: () => bannedOn(board, PAGES_MAX) };
}

const keyOf = ({ division, rank, player, currency, pool }) => JSON.stringify([division, rank, player, currency, pool]);

/** Says which players were paid, and which payments are left, with links to their players. */
function report(name, paid, left, pending) {
  const missed = left.filter(({ code }) => code === "no_member");
  const owed = left.filter(({ code }) => code !== "no_member");
  const rest = [["no_member", missed], ["owed", owed]].filter(([, rows]) => rows.length > 0).map(([kind, rows]) => [t(`repay.left.${kind}`, { n: rows.length }), " ", links(rows), " "]);
  const end = pending > 0 ? t("repay.being_paid") : t("repay.all_paid", { name });
  if (paid.length > 0) toast("ok", t("repay.paid_to", { sum: totalOf(paid), players: names(paid) }), rest.length > 0 ? rest : end);
  else if (left.length > 0) toast("bad", t("repay.none_paid"), rest);
  else toast("ok", end);
}

const players = (rows) => [...new Set(rows.map(({ player }) => player))];

/** Who gets how much. */
function sums(rows) {
  const all = players(rows);
  const listed = all.slice(0, NAMED_MAX).map((player) => `${player} (${totalOf(rows.filter((row) => row.player === player))})`);
  return [...listed, all.length > NAMED_MAX && "…"].filter(Boolean).join(", ");
}

function names(rows) {
  const all = players(rows);
  return all.length > NAMED_MAX ? t("repay.players", { n: all.length }) : all.join(", ");
}

function links(rows) {
  const all = players(rows);
  const listed = all.slice(0, NAMED_MAX).map((player, at) => [at > 0 && ", ", playerLink(player)]);
  return [listed, all.length > NAMED_MAX && ", …"];
}
