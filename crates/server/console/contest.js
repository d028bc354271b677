// One contest: its state with the acts of the state, its facts, applications, players, ranks and payments.

import { actAs, change, get, part, Problem, walk, withQuery } from "./api.js";
import { ACTS, cancelled, confirmAct, edit, prizePreview } from "./contest_acts.js";
import { applications } from "./contest_applications.js";
import { contestFacts, factsCard } from "./contest_facts.js";
import { mayChange } from "./contest_form.js";
import { payments } from "./contest_payments.js";
import { players } from "./contest_players.js";
import { actsOn } from "./ban.js";
import { link as boardLink } from "./boards.js";
import { seriesLink, stateChip, title as contests } from "./contests.js";
import { failed, inline, toast } from "./dialog.js";
import { button, card, empty, h, head, notice, playerLink, put, set } from "./dom.js";
import { grouped, totalOf } from "./format.js";
import { field } from "./form.js";
import { every } from "./live.js";
import { ranking } from "./ranking.js";
import { isUnpaid } from "./repay.js";
import { isAdmin, may } from "./rights.js";
import { table } from "./table.js";
import { has, t } from "./texts.js";

/** Milliseconds between refreshes of the contest itself. */
const PAUSE = 3000;
/** Pages of prizes that are added up. */
const PRIZE_PAGES_MAX = 5;

export const title = ({ contest }) => contest;

export function render(root, { contest: id }, signal) {
  const top = h("div", {}, head(id, { crumb: ["#/contests", contests] }));
  const wrong = h("div", {});
  const report = h("div", { class: "stack", "aria-live": "polite" });
  const about = h("div", {});
  const staff = h("div", {});
  const inside = h("div", { class: "stack" });
  put(root, top, h("div", { class: "stack" }, wrong, report, about, staff, inside));
  const path = `/v1/contests/${part(id)}`;
  let seen = null;
  let shown = null;
  let stop = new AbortController();
  let applied = null;
  let acting = null;

  const show = (contest) => {
    const text = JSON.stringify([contest, acting]);
    if (text === seen) return;
    seen = text;
    // A key that is no admin's acts on a contest as one of its staff.
    const decides = may("contests:manage") && (isAdmin() || acting !== null);
    set(top, headOf(contest, decides ? act : null, () => edit(contest, path, show)));
    set(about, factsCard(contestFacts(contest)));
    const parts = JSON.stringify([contest.state, acting]);
    if (parts === shown) return applied?.refresh();
    shown = parts;
    stop.abort();
    stop = new AbortController();
    const inTime = AbortSignal.any([signal, stop.signal]);
    if (staff.childElementCount === 0) set(staff, actingAs(contest, signal, (player) => {
      acting = player;
      set(wrong);
      show(contest);
    }));
    applied = contest.state === "open" && decides ? applications(contest, path, inTime, look) : null;
    set(inside, applied?.element ?? partsOf(contest, path, inTime, decides));
  };
  const look = async () => {
    show(await get(path, {}, signal));
    set(wrong);
  };
  const act = async (name) => {
    const sure = await confirmAct(name, path, signal);
    if (!sure) return;
    set(report);
    try {
      const contest = await change("POST", withQuery(`${path}/${name}`, { reason: sure.reason }));
      if (name === "start") set(report, started(contest));
      show(contest);
      const more = name === "cancel" && cancelled(sure.before).join(" ");
      toast("ok", ...(name === "settle" ? await settled(contest, path, signal) : [t(`contest.done.${name}`), more]));
    } catch (error) {
      if (error instanceof Problem && error.body.failed) set(report, refused(error));
      else failed(error);
      await look();
    }
  };
  every(PAUSE, signal, look, (error) => inline(wrong, error));
}

/** What became of the prizes: a title, and how many and how much. Those of a large contest are paid in the background. */
async function settled({ state }, path, signal) {
  if (state !== "settled") return [t("contest.settling")];
  const won = [];
  const complete = await walk(`${path}/prizes`, {}, "items", (items) => won.push(...items), signal, PRIZE_PAGES_MAX).catch(() => null);
  if (complete === null) return [t("contest.done.settle_unread")];
  if (won.length === 0) return [t("contest.done.settle_none")];
  const [open, paid] = [won.filter(isUnpaid), won.filter(({ paid: is }) => is !== false)];
  const number = new Set(paid.map(({ player }) => player)).size;
  // What is under way would be left out of the sum.
  const isWhole = complete && open.length + paid.length === won.length;
  const sums = isWhole && number > 0 && t("contest.done.settle_sum", { n: number, total: totalOf(paid) });
  if (open.length === 0) return [t("contest.done.settle"), sums];
  return [t("contest.unpaid_sum", { n: open.length, total: totalOf(open) }), sums];
}

function headOf(contest, act, change) {
  const acts = act ? ACTS[contest.state] ?? [] : [];
  const main = acts.map((name) => button(t(`contest.act.${name}`), () => act(name), { kind: name === "cancel" ? "danger" : "main", failed }));
  const alter = mayChange(contest) && button(t("contest.edit"), change, { failed });
  const series = contest.series && h("a", { class: "small", href: seriesLink(contest.series) }, t("contests.of_series", { series: contest.series }));
  const acted = actsOn(contest.id);
  const marks = [stateChip(contest.state), h("code", { class: "soft" }, contest.id), series, acted && h("span", { class: "small" }, acted)];
  // The usual next act first, cancelling last.
  const actions = [main[0], alter, ...main.slice(1)].filter(Boolean);
  return head(contest.title, { crumb: ["#/contests", contests], marks, actions });
}

/** A server's key acts on a contest as one of its staff; an admin's needs no player. */
function actingAs({ staff, state }, signal, chosen) {
  if (isAdmin() || !may("contests:manage")) return null;
  if (staff.length === 0) return ACTS[state] && h("p", { class: "soft" }, t("contest.admin_only"));
  actAs(null, signal);
  const options = [["", t("contest.the_key")], ...staff.map((player) => [player, player])];
  const choose = field({ name: "acting", label: t("contest.act_as"), options, hint: t("contest.act_as_hint") });
  choose.querySelector("select").addEventListener("change", ({ target }) => {
    actAs(target.value, signal);
    chosen(target.value || null);
  });
  return h("section", { class: "card" }, h("div", { class: "body" }, choose));
}

/** The cards of the state. */
function partsOf(contest, path, signal, decides) {
  const { state, counts } = contest;
  if (state === "draft") return card(t("contest.applications"), empty(t("contest.not_open"), t("contest.not_open_text")));
  if (state === "open") {
    const words = t("contest.applications_are", { pending: counts.pending ?? "–", accepted: counts.accepted ?? "–" });
    return card(t("contest.applications"), empty(words, t(may("contests:manage") && contest.staff.length > 0 ? "contest.decide_as" : "contest.staff_only")));
  }
  const boards = contest.divisions ?? (contest.board ? [{ division: null, board: contest.board }] : []);
  const start = contest.start_report;
  const ranked = counts.players > 0 && boards.length > 0;
  const hasPrizes = contest.prizes.length > 0 || contest.pool !== null;
  const won = ranked && hasPrizes && decides && ["running", "finished"].includes(state) ? prizePreview(path, signal) : null;
  return [
    state === "settled" && payments("prizes", contest.id, signal, decides),
    state === "cancelled" && counts.players > 0 && payments("refunds", contest.id, signal, decides),
    ranked && h("div", { class: "two" }, h("div", { class: "stack" }, ranks(boards, state, signal), won?.element), players(path, contest, signal, decides, won?.refresh)),
    start?.failed_total > 0 && failedTable(start.failed, start.failed_total),
    counts.players === 0 && card(t("contest.players"), empty(t("contest.no_players"), t("contest.no_players_text"))),
  ].filter(Boolean);
}

function ranks(boards, state, signal) {
  const place = h("div", {});
  const to = h("a", { href: boardLink(boards[0].board) }, t("contest.to_board"));
  let stop = null;
  const show = (board) => {
    stop?.abort();
    stop = new AbortController();
    const nothing = () => (state === "running" ? empty(t("contest.no_score"), t("contest.no_score_text")) : empty(t("contest.no_rank"), t("contest.no_rank_text")));
    const both = AbortSignal.any([signal, stop.signal]);
    set(place, ranking(board, both, { nothing, title: t("contest.ranking") }).element);
    to.setAttribute("href", boardLink(board));
  };
  show(boards[0].board);
  const foot = h("p", { class: "small" }, to);
  if (boards.length === 1) return h("div", { class: "stack" }, place, foot);
  const options = boards.map(({ division, board, players: count }) => h("option", { value: board }, t("contest.division_of", { no: division, n: count })));
  const select = h("select", { "aria-label": t("contest.division_head"), change: ({ target }) => show(target.value) }, options);
  return h("div", { class: "stack" }, select, place, foot);
}

/** The result of the start. */
function started({ enrolled, failed: bad, took_ms: took }) {
  const said = notice(bad.length > 0 ? "warn" : "ok",
    h("p", { class: "strong" }, t("contest.enrolled", { n: enrolled })),
    h("p", { class: "small" }, t("contest.enrolled_text", { ms: took })));
  return bad.length > 0 ? [said, failedTable(bad, bad.length)] : said;
}

/** Why the contest did not start, row by row. */
function refused(error) {
  const request = error.request && t("common.request", { id: error.request });
  return [
    notice("bad", h("p", { class: "strong" }, t("contest.refused")), h("p", { class: "small" }, t("contest.refused_text")), h("p", { class: "small" }, [error.message, request].filter(Boolean).join(" · "))),
    failedTable(error.body.failed, error.body.failed.length),
  ];
}

function failedTable(rows, total) {
  const view = table(t("contest.bad_applications"), [
    { label: t("contest.player"), cell: ({ player }) => playerLink(player) },
    { label: t("contest.why"), cell: ({ code, detail }) => [has(`contest.bad.${code}`) ? t(`contest.bad.${code}`) : detail, h("span", { class: "under" }, code)] },
  ], { key: ({ player }) => player });
  view.update(rows);
  return card(t("contest.bad_applications_of", { n: total }), h("div", {}, view.element, rows.length < total && h("div", { class: "foot" }, t("contest.first_of", { shown: grouped(rows.length), total: grouped(total) }))));
}
