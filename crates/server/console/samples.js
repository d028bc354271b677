// Readings of `/v1/status` and `/metrics`, and the changes between them: what the overview and the page of the server show.
//
// The history is bounded. It outlives the page, so coming back shows the earlier readings; a gap stays a gap.

import { get, getText } from "./api.js";
import { between, histogram, histograms, parse, quantile, sum } from "./metrics.js";

/** Milliseconds between readings. */
export const PAUSE = 2000;
const KEPT = 150;
/** Latencies cover the last readings together: one alone may have measured nothing. */
const WINDOW = 5;
/** Readings of the last minute. */
const MINUTE = 60000 / PAUSE + 1;
/** A longer time in milliseconds without a reading breaks a line. */
const GAP = 15000;

/** The requests of the console itself are left out of rates and latencies. */
const OWN = new Set(["/metrics", "/v1/status"]);
const others = (labels) => !OWN.has(labels.route);

/** A request of these may compute the digest of a password, which is slow by design. They have latencies of their own. The server has this list, too. */
const PASSWORDS = new Set(["POST /auth/signin", "POST /v1/members", "PATCH /v1/members/{member}"]);
const route = ({ method, route: path }) => `${method} ${path}`;
/** Requests to paths that are no route: files of the console, and what does not exist. */
const NO_ROUTE = "any none";
const plain = (labels) => others(labels) && !PASSWORDS.has(route(labels));

const readings = [];

/** The points of the charts, oldest first. */
export const points = [];

/** The last reading, unchanged. */
export let latest = null;

/** HTTP of the last minute, or of the time since the first reading: `{p99, routes}`; null before the second reading. */
export let minute = null;

/** Takes one reading, and adds a point. */
export async function read(signal) {
  const [status, text] = await Promise.all([get("/v1/status", {}, signal), getText("/metrics", signal)]);
  const now = reading(status, parse(text));
  const before = readings.at(-1);
  const again = before && now.uptime < before.uptime;
  if (before && (again || now.at - before.at > GAP)) {
    readings.length = 0;
    points.push({ at: now.at, gap: true });
  }
  if (readings.length > 0) points.push(point(readings.slice(-WINDOW), now));
  minute = readings.length > 0 ? since(readings[0], now) : null;
  readings.push(now);
  readings.splice(0, readings.length - MINUTE);
  points.splice(0, points.length - KEPT);
  latest = { status, now };
}

function reading(status, families) {
  const lanes = Object.fromEntries(status.lanes.map((lane) => [lane.lane, lane]));
  const stage = (lane, name) => histogram(families, "tally_lane_seconds", (labels) => labels.lane === lane && labels.stage === name);
  const stages = (lane) => ({ queue: stage(lane, "queue"), commit: stage(lane, "commit"), publish: stage(lane, "publish") });
  const cache = (found) => sum(families, "tally_cache_requests_total", (labels) => labels.found === found);
  return {
    at: Date.now(),
    uptime: status.uptime_s,
    lanes,
    http: {
      requests: sum(families, "tally_http_requests_total", others),
      failed: sum(families, "tally_http_requests_total", (labels) => labels.class === "5xx"),
      seconds: histogram(families, "tally_http_request_seconds", plain),
      routes: histograms(families, "tally_http_request_seconds", route),
      connections: sum(families, "tally_http_connections"),
    },
    resp: {
      commands: sum(families, "tally_resp_commands_total"),
      failed: sum(families, "tally_resp_commands_total", (labels) => labels.outcome === "error"),
      seconds: histogram(families, "tally_resp_seconds"),
      connections: sum(families, "tally_resp_connections"),
    },
    stages: { scores: stages("scores"), ledger: stages("ledger") },
    rows: { scores: sum(families, "tally_lane_rows_total"), ledger: sum(families, "tally_ledger_lane_rows_total") },
    refused: sum(families, "tally_lane_refused_full_total") + sum(families, "tally_ledger_lane_refused_full_total"),
    faults: sum(families, "tally_lane_faults_total") + sum(families, "tally_ledger_lane_faults_total"),
    cache: { hits: cache("hit"), misses: cache("miss") },
    contests: { due: status.contests?.due ?? 0 },
    store: status.store.gauges,
  };
}

/** What HTTP did between two readings: its latency, and that of each route, the slowest first. */
function since(first, now) {
  const shown = [...now.http.routes].filter(([name]) => !OWN.has(name.split(" ")[1]) && name !== NO_ROUTE);
  const routes = shown.map(([name, counts]) => {
    const last = between(first.http.routes.get(name) ?? [], counts);
    return { name, requests: last.at(-1)[1], p50: quantile(last, 0.5), p99: quantile(last, 0.99), ever: quantile(counts, 0.99), password: PASSWORDS.has(name) };
  });
  const order = ({ p99, ever }) => [p99 ?? -1, ever ?? -1];
  routes.sort((one, other) => {
    const [[a, b], [c, d]] = [order(one), order(other)];
    return c - a || d - b;
  });
  return { p99: quantile(between(first.http.seconds, now.http.seconds), 0.99), routes };
}

/** The counts since the last reading, and the latencies of the last few. */
function point(before, now) {
  const last = before.at(-1);
  const first = before[0];
  const elapsed = (now.at - last.at) / 1000;
  const rate = (of) => Math.max(0, of(now) - of(last)) / elapsed;
  const spread = (of) => {
    const counts = between(of(first), of(now));
    return { p50: quantile(counts, 0.5), p99: quantile(counts, 0.99) };
  };
  const lane = (name) => {
    const batches = rate((one) => one.lanes[name]?.batches ?? 0);
    const rows = rate((one) => one.rows[name]);
    return {
      requests: rate((one) => one.lanes[name]?.requests ?? 0),
      waiting: (now.lanes[name]?.queued ?? 0) + (now.lanes[name]?.in_flight ?? 0),
      batch: batches > 0 ? rows / batches : null,
      queue: spread((one) => one.stages[name].queue),
      commit: spread((one) => one.stages[name].commit),
    };
  };
  const hits = now.cache.hits - first.cache.hits;
  const looked = hits + now.cache.misses - first.cache.misses;
  return {
    at: now.at,
    http: { rate: rate((one) => one.http.requests), failed: rate((one) => one.http.failed), ...spread((one) => one.http.seconds) },
    resp: { rate: rate((one) => one.resp.commands), failed: rate((one) => one.resp.failed), ...spread((one) => one.resp.seconds) },
    scores: lane("scores"),
    ledger: lane("ledger"),
    cache: looked > 0 ? hits / looked : null,
    pool: now.store.connections_max ? now.store.connections_used / now.store.connections_max : null,
  };
}
