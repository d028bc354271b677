// The page of the server: rates, latencies and memory, the slowest routes and requests, and what the store measures.

import { chart, legend } from "./chart.js";
import { inline } from "./dialog.js";
import { card, chip, empty, facts, h, head, put, renew, set } from "./dom.js";
import { brief, bytes, grouped, percent, seconds, time } from "./format.js";
import { every } from "./live.js";
import { latest, minute, PAUSE, points, read } from "./samples.js";
import { table } from "./table.js";
import { t } from "./texts.js";

const BOARDS_SHOWN = 12;
const ROUTES_SHOWN = 10;

export const title = t("nav.server");

export function render(root, _parameters, signal) {
  const marks = h("div", { class: "row" });
  const wrong = h("div", {});
  const charts = makeCharts();
  const boards = boardTable();
  const memory = h("div", {});
  const routes = routeCards();
  const slow = slowCard();
  const store = storeCard();
  put(root, head(t("nav.server"), { about: t("server.about"), marks }), h("div", { class: "stack" },
    wrong,
    h("div", { class: "charts" }, charts.map(({ element }) => element)),
    h("div", { class: "two" }, h("div", { class: "stack" }, routes.slowest, slow.element, card(t("server.memory"), memory)), h("div", { class: "stack" }, store.element, routes.passwords))));
  const show = () => {
    if (!latest) return;
    const { status } = latest;
    renew(marks, [status.version, Math.floor(status.uptime_s / 10), status.store.kind], () => state(status));
    charts.forEach((one) => one.update(points));
    routes.update(minute?.routes ?? []);
    slow.update(status.slow_requests);
    showBoards(memory, boards, status);
    store.update(status.store);
  };
  show();
  every(PAUSE, signal, async () => {
    await read(signal);
    set(wrong);
    show();
  }, (error) => inline(wrong, error));
}

/** The version of the server and what it stands on. */
function state({ version, uptime_s: uptime, store, ranking, applications }) {
  return [
    chip([h("i", { class: "dot ok" }), t("server.ready")], "ok"),
    chip(t("server.version", { version })),
    chip(t("server.up", { time: seconds(Math.max(1, uptime)) })),
    chip(t("server.store_in", { kind: store.kind })),
    chip(t("server.ranks_in", { kind: ranking.kind })),
    applications.kind !== "store" && chip(t("server.applications_in", { kind: applications.kind })),
  ];
}

function makeCharts() {
  const rate = (value) => t("server.rate", { rate: brief(value) });
  const big = (text) => h("b", {}, text);
  const latency = (of) => (point) => {
    const { p50, p99 } = of(point);
    return [big(seconds(p99)), legend("p99", ""), legend("p50", seconds(p50), true)];
  };
  const pair = (of) => [
    { label: "p99", of: (point) => of(point).p99 },
    { label: "p50", of: (point) => of(point).p50, other: true },
  ];
  const connections = (name) => t("server.connections", { n: latest.now[name].connections });
  const both = (name, of) => chart(t(`chart.${name}`), [
    { of: (point) => of(point.scores) },
    { of: (point) => of(point.ledger), other: true },
  ], brief, (point) => [big(brief(of(point.scores))), legend(t("server.scores"), ""), legend(t("server.ledger"), brief(of(point.ledger)), true)]);
  return [
    chart(t("chart.http"), [{ of: (point) => point.http.rate }], rate, (point) => [
      big(rate(point.http.rate)),
      h("span", {}, point.http.failed > 0 ? t("server.failed", { rate: rate(point.http.failed) }) : connections("http")),
    ]),
    chart(t("chart.http_latency"), pair((point) => point.http), seconds, latency((point) => point.http)),
    chart(t("chart.redis"), [{ of: (point) => point.resp.rate }], rate, (point) => [
      big(rate(point.resp.rate)),
      h("span", {}, point.resp.failed > 0 ? t("server.refused", { rate: rate(point.resp.failed) }) : connections("resp")),
    ]),
    chart(t("chart.redis_latency"), pair((point) => point.resp), seconds, latency((point) => point.resp)),
    chart(t("chart.scores"), [{ of: (point) => point.scores.requests }], rate, (point) => [big(rate(point.scores.requests))]),
    chart(t("chart.score_commit"), pair((point) => point.scores.commit), seconds, latency((point) => point.scores.commit)),
    chart(t("chart.money"), [{ of: (point) => point.ledger.requests }], rate, (point) => [big(rate(point.ledger.requests))]),
    chart(t("chart.ledger_commit"), pair((point) => point.ledger.commit), seconds, latency((point) => point.ledger.commit)),
    both("waiting", (lane) => lane.waiting),
    both("batch", (lane) => lane.batch),
    chart(t("chart.cache"), [
      { of: (point) => point.cache },
      { of: (point) => point.pool, other: true },
    ], percent, (point) => [
      big(percent(point.cache)),
      legend(t("server.hit_rate"), ""),
      point.pool !== null && legend(t("server.pool"), percent(point.pool), true),
    ]),
  ];
}

/** The slowest routes, and apart from them those that compute the digest of a password. */
function routeCards() {
  const columns = [
    { label: t("server.route"), cell: ({ name }) => h("code", {}, name) },
    { label: t("server.requests"), kind: "num wide", cell: ({ requests }) => grouped(requests) },
    { label: t("server.median"), kind: "num wide", cell: ({ p50 }) => seconds(p50) },
    { label: "p99", kind: "num", cell: ({ p99 }) => seconds(p99) },
    { label: t("server.ever"), kind: "num", cell: ({ ever }) => seconds(ever) },
  ];
  const few = columns.filter(({ kind }) => !kind?.includes("wide"));
  const key = ({ name }) => name;
  const [routes, passwords] = [table(t("server.slowest"), columns, { key }), table(t("server.passwords"), few, { key })];
  const place = h("div", {}, h("p", { class: "body soft" }, t("server.no_routes")));
  const note = h("p", { class: "body small soft" }, t("server.passwords_why"));
  const slowest = card(t("server.slowest"), place, { side: h("span", { class: "small soft" }, t("server.last_minute")) });
  const apart = card(t("server.passwords"), [passwords.element, note]);
  apart.hidden = true;
  const update = (all) => {
    const plain = all.filter(({ password }) => !password).slice(0, ROUTES_SHOWN);
    const slow = all.filter(({ password }) => password);
    routes.update(plain, { flash: false });
    passwords.update(slow, { flash: false });
    if (plain.length > 0 && routes.element.parentElement !== place) set(place, routes.element);
    apart.hidden = slow.length === 0;
  };
  return { slowest, passwords: apart, update };
}

/** The slowest requests, each with the stage that took longest. */
function slowCard() {
  const share = ({ cause, stages_ms: stages, ms }) => `${t(`stage.${cause}`)}, ${percent(ms > 0 ? Math.min(1, stages[cause] / ms) : 0)}`;
  const requests = table(t("server.slow"), [
    { label: t("server.request"), cell: ({ method, route, status }) => [h("code", {}, `${method} ${route}`), status >= 400 && ` ${status}`] },
    { label: t("server.at"), kind: "num wide", cell: ({ at }) => time(Date.parse(at)) },
    { label: t("server.took"), kind: "num", cell: ({ ms }) => seconds(ms / 1e3) },
    { label: t("server.cause"), cell: share },
    { label: t("server.beside"), kind: "wide", cell: ({ beside }) => beside.map((work) => t(`work.${work}`)).join(", ") },
  ]);
  const place = h("div", {}, h("p", { class: "body soft" }, t("server.no_routes")));
  const update = (all) => {
    requests.update(all, { flash: false });
    if (all.length > 0 && requests.element.parentElement !== place) set(place, requests.element);
  };
  return { element: card(t("server.slow"), place, { side: h("span", { class: "small soft" }, t("server.last_two_minutes")) }), update };
}

function boardTable() {
  return table(t("server.by_memory"), [
    { label: t("server.board"), cell: ({ board }) => h("a", { class: "name", href: `#/boards/${encodeURIComponent(board)}` }, board) },
    { label: t("server.players"), kind: "num", cell: ({ members }) => grouped(members) },
    { label: t("server.size"), kind: "num", cell: ({ bytes: size }) => bytes(size) },
    { label: t("server.share"), kind: "wide fit", cell: ({ share }) => meter(share) },
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
    if (!place.querySelector(".empty")) set(place, empty(t("server.no_board"), t("server.no_board_text"), h("a", { class: "button", href: "#/boards" }, t("server.to_boards"))));
    return;
  }
  view.update(all.slice(0, BOARDS_SHOWN).map((board) => ({ ...board, share: board.bytes / most })), { flash: false });
  const total = all.reduce((sum, { bytes: size }) => sum + size, 0);
  const [more, cut] = [status.boards_total > BOARDS_SHOWN, status.boards_total > all.length];
  const rest = more && (cut ? t("server.largest_of", { n: BOARDS_SHOWN, of: all.length }) : t("server.largest", { n: BOARDS_SHOWN }));
  const number = [t("server.boards", { n: status.boards_total }), rest].filter(Boolean).join(" · ");
  const foot = h("div", { class: "foot" }, h("span", {}, number), h("span", {}, t("server.together", { bytes: bytes(total) })));
  if (view.element.parentElement !== place) set(place, view.element, foot);
  else place.lastElementChild.replaceWith(foot);
}

function storeCard() {
  const main = h("div", {});
  const all = table(t("server.measures"), [
    { label: t("server.measure"), cell: ([name]) => name.replaceAll("_", " ") },
    { label: t("server.value"), kind: "num", cell: ([, value]) => brief(value) },
  ], { key: ([name]) => name });
  const body = h("div", { class: "body" }, main, h("details", {}, h("summary", { class: "small" }, t("server.measures")), all.element));
  const update = ({ gauges }) => {
    const pairs = storeFacts(gauges);
    renew(main, pairs, () => facts(pairs));
    all.update(Object.entries(gauges), { flash: false });
  };
  return { element: card(t("server.store"), body), update };
}

function storeFacts(gauges) {
  if ("connections_max" in gauges) {
    return [
      [t("server.used"), t("server.used_of", { used: gauges.connections_used, max: gauges.connections_max })],
      [t("server.waits"), grouped(gauges.connection_waits)],
      [t("server.messages"), brief(gauges.round_trips)],
      [t("server.again"), grouped(gauges.transactions_again)],
    ];
  }
  return [
    [t("server.file"), bytes(gauges.file_bytes)],
    [t("server.journal"), bytes(gauges.journal_bytes)],
    [t("server.unflushed"), t("server.rows", { n: gauges.unflushed_rows ?? 0 })],
    [t("server.flushes"), t("server.times", { n: gauges.flushes ?? 0 })],
  ];
}
