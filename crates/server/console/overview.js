// The overview: health, load, latency and memory.

import { get } from "./api.js";
import { chart, legend } from "./chart.js";
import { inline } from "./dialog.js";
import { card, chip, coded, empty, facts, h, head, notice, put, renew, set } from "./dom.js";
import { brief, bytes, count, grouped, percent, seconds } from "./format.js";
import { every } from "./live.js";
import { latest, PAUSE, points, read } from "./samples.js";
import { table } from "./table.js";
import { warnings } from "./warnings.js";

const STATES = ["draft", "open", "running", "finished", "settled", "cancelled"];
const BOARDS_SHOWN = 12;
/** Milliseconds between refreshes of the trial balance. */
const BOOKS = 15000;

export const title = "Overview";

export function render(root, _parameters, signal) {
  const marks = h("div", { class: "row" });
  const said = h("div", { class: "stack", "aria-live": "polite" });
  const wrong = h("div", {});
  const charts = makeCharts();
  const boards = boardTable();
  const contests = h("div", { class: "body" });
  const store = storeCard();
  const memory = h("div", {});
  put(
    root,
    head("Overview", { marks }),
    h(
      "div",
      { class: "stack" },
      wrong,
      said,
      h("div", { class: "charts" }, charts.map(({ element }) => element)),
      h("div", { class: "two" }, card("Memory of leaderboards", memory), h("div", { class: "stack" }, card("Contests", contests), store.element)),
    ),
  );
  let balanced = null;
  const show = () => {
    if (!latest) return;
    const { status } = latest;
    renew(marks, [status.version, Math.floor(status.uptime_s / 10), status.store.kind], () => state(status));
    charts.forEach((one) => one.update(points));
    const found = warnings(latest, balanced);
    const marked = ([kind, title, text, link]) => notice(kind, h("p", { class: "strong" }, title), h("p", { class: "small" }, coded(text), link && [" ", h("a", { href: link[0] }, link[1])]));
    renew(said, found, () => (found.length > 0 ? found.map(marked) : allWell()));
    showBoards(memory, boards, status);
    showContests(contests, status);
    store.update(status.store);
  };
  show();
  const failed = (error) => inline(wrong, error);
  every(PAUSE, signal, async () => {
    await read(signal);
    set(wrong);
    show();
  }, failed);
  // The trial balance is read less often. A key without the permission for it stops these reads.
  let may = true;
  every(BOOKS, signal, async () => {
    if (!may) return;
    const answer = await get("/v1/ledger/trial-balance", {}, signal);
    balanced = answer.balanced;
    show();
  }, (error) => (may = error.status !== 403));
}

function allWell() {
  return notice("ok", h("p", {}, "Nothing needs attention."));
}

function state(status) {
  return [
    chip([h("i", { class: "dot ok" }), "ready"], "ok"),
    chip(`version ${status.version}`),
    chip(`up ${seconds(Math.max(1, status.uptime_s))}`),
    chip(`store ${status.store.kind}`),
    chip(`ranks in ${status.ranking.kind}`),
    status.applications.kind !== "store" && chip(`applications in ${status.applications.kind}`),
  ];
}

function makeCharts() {
  const rate = (value) => `${brief(value)} /s`;
  const big = (text) => h("b", {}, text);
  const latency = (of) => (point) => {
    const { p50, p99 } = of(point);
    return [big(seconds(p99)), legend("p99", ""), legend("p50", seconds(p50), true)];
  };
  const pair = (of) => [
    { label: "p99", of: (point) => of(point).p99 },
    { label: "p50", of: (point) => of(point).p50, other: true },
  ];
  return [
    chart("HTTP requests", [{ of: (point) => point.http.rate }], rate, (point) => [
      big(rate(point.http.rate)),
      h("span", {}, point.http.failed > 0 ? `${rate(point.http.failed)} failed` : `${count(latest.now.http.connections, "connection")}`),
    ]),
    chart("HTTP latency", pair((point) => point.http), seconds, latency((point) => point.http)),
    chart("Redis commands", [{ of: (point) => point.resp.rate }], rate, (point) => [
      big(rate(point.resp.rate)),
      h("span", {}, point.resp.failed > 0 ? `${rate(point.resp.failed)} refused` : `${count(latest.now.resp.connections, "connection")}`),
    ]),
    chart("Redis latency", pair((point) => point.resp), seconds, latency((point) => point.resp)),
    chart("Score submits, both protocols", [{ of: (point) => point.scores.requests }], rate, (point) => [
      big(rate(point.scores.requests)),
    ]),
    chart("Score commit", pair((point) => point.scores.commit), seconds, latency((point) => point.scores.commit)),
    chart("Money movements", [{ of: (point) => point.ledger.requests }], rate, (point) => [big(rate(point.ledger.requests))]),
    chart("Ledger commit", pair((point) => point.ledger.commit), seconds, latency((point) => point.ledger.commit)),
    chart("Waiting for a batch", [
      { of: (point) => point.scores.waiting },
      { of: (point) => point.ledger.waiting, other: true },
    ], brief, (point) => [
      big(brief(point.scores.waiting)),
      legend("scores", ""),
      legend("ledger", brief(point.ledger.waiting), true),
    ]),
    chart("Rows in a batch", [
      { of: (point) => point.scores.batch },
      { of: (point) => point.ledger.batch, other: true },
    ], brief, (point) => [
      big(brief(point.scores.batch)),
      legend("scores", ""),
      legend("ledger", brief(point.ledger.batch), true),
    ]),
    chart("Members found in memory", [
      { of: (point) => point.cache },
      { of: (point) => point.pool, other: true },
    ], percent, (point) => [
      big(percent(point.cache)),
      legend("hit rate", ""),
      point.pool !== null && legend("pool in use", percent(point.pool), true),
    ], 1),
  ];
}

function boardTable() {
  return table("Leaderboards by memory", [
    { label: "Leaderboard", cell: ({ board }) => h("a", { class: "name", href: `#/boards/${encodeURIComponent(board)}` }, board) },
    { label: "Players", kind: "num", cell: ({ members }) => grouped(members) },
    { label: "Memory", kind: "num", cell: ({ bytes: size }) => bytes(size) },
    { label: "Share", kind: "wide fit", cell: ({ share }) => meter(share) },
  ], { key: ({ board }) => board });
}

function meter(share) {
  const bar = h("i", {});
  bar.style.width = `${Math.round(share * 100)}%`;
  return h("span", { class: "meter" }, bar);
}

function showBoards(place, view, status) {
  const all = status.boards.toSorted((one, other) => other.bytes - one.bytes);
  const most = all[0]?.bytes || 1;
  if (all.length === 0) {
    if (!place.querySelector(".empty")) {
      const go = h("a", { class: "button", href: "#/boards" }, "Go to leaderboards");
      set(place, empty("No leaderboard yet", "A leaderboard keeps the order of its players. Make the first one, then send scores.", go));
    }
    return;
  }
  view.update(all.slice(0, BOARDS_SHOWN).map((board) => ({ ...board, share: board.bytes / most })), { flash: false });
  const total = all.reduce((sum, { bytes: size }) => sum + size, 0);
  const of = status.boards_total > all.length ? ` of the first ${grouped(all.length)} by name` : "";
  const rest = status.boards_total > BOARDS_SHOWN ? ` · the ${BOARDS_SHOWN} largest${of} are shown` : "";
  const foot = h("div", { class: "foot" }, h("span", {}, `${count(status.boards_total, "leaderboard")}${rest}`), h("span", {}, `${bytes(total)} together`));
  if (view.element.parentElement !== place) set(place, view.element, foot);
  else place.lastElementChild.replaceWith(foot);
}

function showContests(place, status) {
  const { states } = status.contests;
  renew(place, states, () => {
    if (!states) return h("p", { class: "soft" }, "They cannot be counted now.");
    return facts(STATES.map((name) => [name, h("a", { href: `#/contests?state=${name}` }, grouped(states[name] ?? 0))]));
  });
}

function storeCard() {
  const main = h("div", {});
  const all = table("All that the store measures", [
    { label: "Measure", cell: ([name]) => name.replaceAll("_", " ") },
    { label: "Value", kind: "num", cell: ([, value]) => brief(value) },
  ], { key: ([name]) => name });
  const body = h("div", { class: "body" }, main, h("details", {}, h("summary", { class: "small" }, "All measures"), all.element));
  const update = ({ gauges }) => {
    const pairs = storeFacts(gauges);
    renew(main, pairs, () => facts(pairs));
    all.update(Object.entries(gauges), { flash: false });
  };
  return { element: card("Store", body), update };
}

function storeFacts(gauges) {
  if ("connections_max" in gauges) {
    return [
      ["Connections used", `${gauges.connections_used} of ${gauges.connections_max}`],
      ["Waits", grouped(gauges.connection_waits)],
      ["Messages", brief(gauges.round_trips)],
      ["Transactions again", grouped(gauges.transactions_again)],
    ];
  }
  return [
    ["File", bytes(gauges.file_bytes)],
    ["Journal", bytes(gauges.journal_bytes)],
    ["Not folded yet", count(gauges.unfolded_rows ?? 0, "row")],
    ["Folded", count(gauges.folds ?? 0, "time")],
  ];
}
