// What waits for a person: contests to act on, and payments that cannot be made. Each is a kind, a title, a sentence and a link.

import { get, walk } from "./api.js";
import { seconds, zoned } from "./format.js";
import { isAdmin, may } from "./rights.js";
import { named, t } from "./texts.js";

/** Contests of each state that are looked at. */
const LOOKED_AT = 100;
/** Milliseconds that the clock may be behind a time of a contest. */
const LATE = 60000;
/** Requests for the owed payments: each reads a bounded part of the rows. */
const PAGES = 20;

/** Lines about contests, for a caller that may act on them. `states` has the number of contests in each state. */
export async function contestLines(states, signal) {
  if (!may("contests:manage")) return [];
  const wanted = ["open", "running", "finished", "draft"].filter((state) => !states || states[state] > 0);
  const pages = await Promise.all(wanted.map((state) => get("/v1/contests", { state, limit: LOOKED_AT }, signal)));
  return pages.flatMap(({ items }) => items.map(contestLine)).filter(Boolean);
}

function contestLine(contest) {
  const { id, title, state, counts, staff, players_min: min, opens_at: opens, starts_at: starts, ends_at: ends, review_s: review } = contest;
  // Without staff, a key that is no admin's settles nothing.
  const byHand = isAdmin() || staff.length > 0 ? "attention.review" : "attention.review_admin";
  const said = [];
  let kind = "info";
  const overdue = (at, key) => {
    if (!at || Date.now() - new Date(at) < LATE) return;
    kind = "warn";
    said.push(t(key, { when: zoned(at) }));
  };
  if (state === "draft") overdue(opens, "attention.open_overdue");
  if (state === "open") {
    overdue(starts, "attention.start_overdue");
    if (counts.pending > 0) said.push(t("attention.applications", { n: counts.pending }));
    if (!starts && counts.accepted > 0 && counts.accepted >= (min ?? 0)) said.push(t("attention.ready", { n: counts.accepted }));
  }
  if (state === "running") overdue(ends, "attention.end_overdue");
  if (state === "finished") said.push(review === null ? t(byHand) : t("attention.review_until", { time: seconds(review) }));
  return said.length > 0 && [kind, title, said.join(" · "), `#/contests/${encodeURIComponent(id)}`];
}

/** A line for prizes, and one for fees, that cannot be paid. */
export async function owedLines(signal) {
  if (!may("money:read")) return [];
  const owed = { prize: new Map(), refund: new Map() };
  const count = (items) => {
    // What is under way is paid within seconds.
    for (const { type, code } of items.filter((one) => one.code !== "pending")) {
      const of = owed[type] ?? owed.prize;
      of.set(code, (of.get(code) ?? 0) + 1);
    }
  };
  await walk("/v1/ledger/owed", { no_member: true }, "items", count, signal, PAGES);
  return [["attention.prizes", owed.prize], ["attention.fees", owed.refund]].filter(([, of]) => of.size > 0).map(([key, of]) => {
    const number = [...of.values()].reduce((sum, one) => sum + one, 0);
    const why = [...of].map(([code, n]) => t("attention.because", { n, reason: named(`unpaid.${code}`) }));
    return ["warn", t(key, { n: number }), why.join(", "), "#/owed"];
  });
}
