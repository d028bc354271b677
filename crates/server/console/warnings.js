// Warnings about the server, from one reading: each a kind, a title, a sentence, and a link.

import { bytes, percent, seconds } from "./format.js";
import { t } from "./texts.js";

const CACHE_LOOKUPS = 1000;
const CACHE_POOR = 0.5;
const UNSYNCED_SECONDS = 5;
// Writers wait from a half of the room on.
const UNFLUSHED_RATIO = 0.4;
/** Seconds of a request from which on the server is slow. */
const SLOW = 1;

/** Where most of them are mended. */
const SERVER = "#/server";

/** Warnings. `minute` is HTTP of the last minute; `balanced` is the result of the trial balance, null when it is not known. */
export function warnings({ status, now }, minute, balanced) {
  const found = [];
  const say = (kind, name, values, more = values, link = SERVER) => found.push([kind, t(`warning.${name}`, values), t(`why.${name}`, more), link]);
  const store = status.store.gauges;
  // Findings are for admins only, because they name the components below the server. Their texts are those of the server.
  for (const { level, text } of status.findings ?? []) {
    found.push([level === "wrong" ? "bad" : "warn", level === "wrong" ? t("warning.finding_wrong") : t("warning.finding"), text, SERVER]);
  }
  if (balanced === false) say("bad", "unbalanced", {}, {}, "#/wallets");
  if (store.commits_unresolved > 0) say("bad", "unresolved", { n: store.commits_unresolved });
  if (store.flush_failures > 0) say("bad", "flush", {}, { n: store.flush_failures });
  if (minute?.p99 > SLOW) say("warn", "slow", { time: seconds(minute.p99) });
  if (now.refused > 0) say("warn", "refused", {}, { n: now.refused });
  if (now.faults > 0) say("warn", "faults", {}, { n: now.faults });
  if (store.unsynced_seconds > UNSYNCED_SECONDS) say("warn", "unsynced", {}, { time: seconds(store.unsynced_seconds) });
  if (store.unflushed_ratio > UNFLUSHED_RATIO) say("warn", "unflushed", {}, { bytes: bytes(store.unflushed_bytes) });
  if (store.connections_max > 0 && store.connections_used >= store.connections_max) say("warn", "connections", {});
  const { hits, misses } = now.cache;
  if (hits + misses > CACHE_LOOKUPS && hits / (hits + misses) < CACHE_POOR) say("warn", "cache", {}, { share: percent(hits / (hits + misses)) });
  return found;
}
