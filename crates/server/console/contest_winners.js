// The prizes that a contest would pay now, computed as the server does when it is settled: before that, it has none to read.

import { get, part } from "./api.js";
import { sumsOf } from "./format.js";

/** The most players of a leaderboard that are read, and the most divisions. */
const READ = 1000;
const DIVISIONS = 20;

/**
 * `{winners, all}`: rows of `{rank, player, amount, currency}`, and whether every winner is there: more than are read may win. `null`
 * if the contest pays nothing.
 */
export async function winners(contest, signal) {
  const { prizes, pool, divisions, board, entry_fee: fee, pool_account: account, counts } = contest;
  if ((prizes.length === 0 && !pool) || counts.players === 0) return null;
  const last = Math.max(0, ...prizes.map(({ to }) => to), ...(pool?.prizes ?? []).map(({ to }) => to));
  const boards = divisions ?? [{ board, players: counts.players }];
  const found = { winners: [], all: boards.length <= DIVISIONS };
  for (const one of boards.slice(0, DIVISIONS)) {
    const page = await get(`/v1/leaderboards/${part(one.board)}/scores`, { limit: READ }, signal);
    const toWin = pool ? (BigInt(account.to_win) * BigInt(one.players)) / BigInt(counts.players) : 0n;
    const ties = groups(page.entries);
    if (page.next_cursor && ties.at(-1).rank <= last) found.all = false;
    for (const { rank, players } of ties.filter((tie) => tie.rank <= last)) {
      for (const [currency, amount] of [...ofTable(contest, rank, players.length), ...(pool ? ofPool(pool, toWin, fee.currency, rank, players.length) : [])]) {
        if (amount === 0n) continue;
        players.forEach((player) => found.winners.push({ division: one.n, rank, player, amount, currency }));
      }
    }
  }
  return found;
}

/** Players that share a rank, with the first position that they fill. */
function groups(entries) {
  const ties = [];
  entries.forEach(({ rank, player }, at) => {
    const tie = ties.at(-1);
    if (tie?.shown === rank) tie.players.push(player);
    else ties.push({ shown: rank, rank: at + 1, players: [player] });
  });
  return ties;
}

/** How many positions from `rank` on a range has. */
function common({ from, to }, rank, positions) {
  return BigInt(Math.max(0, Math.min(to, rank + positions - 1) - Math.max(from, rank) + 1));
}

/** What each of so many players gets of the table that share a rank: `[currency, amount]`. */
function ofTable({ prizes, prize_ties: how }, rank, tied) {
  const positions = how === "split" ? tied : 1;
  const sums = sumsOf(prizes, (prize) => common(prize, rank, positions) * BigInt(prize.amount));
  return [...sums].map(([currency, sum]) => [currency, sum / BigInt(positions)]);
}

/** The same of the pool, which is always split. */
function ofPool(pool, toWin, currency, rank, tied) {
  const share = pool.prizes.reduce((sum, one) => sum + common(one, rank, tied) * BigInt(one.share), 0n);
  return [[currency, (toWin * share) / (10000n * BigInt(tied))]];
}
