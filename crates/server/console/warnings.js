// Warnings for an operator, from one reading: each a kind, a title, a sentence, and a link.

import { bytes, count, percent, seconds } from "./format.js";

const CACHE_LOOKUPS = 1000;
const CACHE_POOR = 0.5;
const UNSYNCED_SECONDS = 5;
// Writers wait from a half of the room on.
const UNFOLDED_RATIO = 0.4;

/** Warnings. `balanced` is the result of the trial balance, null when it is not known. */
export function warnings({ status, now }, balanced) {
  const found = [];
  const say = (kind, title, text, link) => found.push([kind, title, text, link]);
  const store = status.store.gauges;
  // Findings are for admins only, because they name the components below the server.
  for (const { level, text } of status.findings ?? []) {
    if (level === "wrong") say("bad", "What the server stands on may lose data or stop it", text);
    else say("warn", "What the server stands on is worth a look", text);
  }
  if (balanced === false) {
    say("bad", "The ledger is out of balance", "Debits and credits differ. Stop payments and run `tally verify`: it names every row that disagrees.");
  }
  if (store.commits_unresolved > 0) {
    say("bad", `${count(store.commits_unresolved, "commit")} without a known outcome`, "The database went away while it committed. They are looked up when it is back.");
  }
  if (store.fold_failures > 0) {
    say("bad", "The journal could not be folded", `${count(store.fold_failures, "time")} since the start. Look at the log: the disk may be full.`);
  }
  if (now.refused > 0) {
    say("warn", "Requests were refused by a full queue", `${count(now.refused, "request")} since the start. The store is slower than what arrives; run \`tally doctor\`.`);
  }
  if (now.faults > 0) {
    say("warn", "The store failed requests", `${count(now.faults, "request")} since the start, each answered with 503. Look at the log for the cause.`);
  }
  if (store.unsynced_seconds > UNSYNCED_SECONDS) {
    say("warn", "The disk is behind", `What was acknowledged as relaxed waits ${seconds(store.unsynced_seconds)} to be synced.`);
  }
  if (store.unfolded_ratio > UNFOLDED_RATIO) {
    say("warn", "The journal grows faster than it is folded", `${bytes(store.unfolded_bytes)} wait in memory. Writers are slowed down before it is full.`);
  }
  if (store.connections_max > 0 && store.connections_used >= store.connections_max) {
    say("warn", "Every connection to the database is in use", "Others wait for one. `tally doctor` computes how many are needed.");
  }
  const { hits, misses } = now.cache;
  if (hits + misses > CACHE_LOOKUPS && hits / (hits + misses) < CACHE_POOR) {
    say("warn", "Members are seldom found in memory", `${percent(hits / (hits + misses))} of look-ups since the start. A larger members cache saves reads of the store.`);
  }
  for (const [name, payments] of [["prizes", status.contests.prizes], ["fees", status.contests.refunds]]) {
    const unpaid = Object.entries(payments ?? {}).filter(([reason, number]) => reason !== "paid" && number > 0);
    if (unpaid.length === 0) continue;
    const text = unpaid.map(([reason, number]) => `${number} ${reason.replaceAll("_", " ")}`).join(", ");
    say("warn", name === "prizes" ? "Some prizes could not be paid" : "Some fees could not be paid back", `${text}, since the start.`, ["#/owed", "What is owed"]);
  }
  // The gravest first, else in the order of the checks.
  return found.toSorted(([one], [other]) => (one === "bad" ? 0 : 1) - (other === "bad" ? 0 : 1));
}
