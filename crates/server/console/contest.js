// One contest: its state, the actions of the state, applications, members, payouts.

import { actAs, change, get, part, Problem, withQuery } from "./api.js";
import { applications } from "./contest_applications.js";
import { players } from "./contest_players.js";
import { link as boardLink } from "./boards.js";
import { STATES } from "./contests.js";
import { askReason, confirmTyped, failed, inline, toast } from "./dialog.js";
import { button, card, chip, empty, facts, h, head, notice, playerLink, put, set } from "./dom.js";
import { grouped, money, when } from "./format.js";
import { field } from "./form.js";
import { every } from "./live.js";
import { ranking } from "./ranking.js";
import { isAdmin, may } from "./rights.js";
import { list, table } from "./table.js";

/** Milliseconds between refreshes of the contest itself. */
const PAUSE = 3000;

export const title = ({ contest }) => contest;

export function render(root, { contest: id }, signal) {
  const top = h("div", {}, head(id, { crumb: ["#/contests", "Contests"] }));
  const wrong = h("div", {});
  const report = h("div", { class: "stack", "aria-live": "polite" });
  const about = h("div", {});
  const staff = h("div", {});
  const inside = h("div", { class: "stack" });
  put(root, top, h("div", { class: "stack" }, wrong, report, about, staff, inside));
  const path = `/v1/contests/${part(id)}`;
  let seen = null;
  let state = null;
  let stop = new AbortController();
  let applied = null;

  const show = (contest) => {
    const text = JSON.stringify(contest);
    if (text === seen) return;
    seen = text;
    set(top, headOf(contest, act, owes(contest, path, signal)));
    set(about, factsOf(contest));
    if (contest.state === state) return applied?.refresh();
    state = contest.state;
    stop.abort();
    stop = new AbortController();
    const inTime = AbortSignal.any([signal, stop.signal]);
    applied = state === "open" ? applications(contest, path, inTime, look) : null;
    if (staff.childElementCount === 0) set(staff, acting(contest, signal, () => applied?.reload()));
    set(inside, applied?.element ?? parts(contest, path, inTime));
  };
  const look = async () => {
    show(await get(path, {}, signal));
    set(wrong);
  };
  const act = async (name, why) => {
    set(report);
    try {
      const answer = await change("POST", withQuery(`${path}/${name}`, why));
      if (name === "start") set(report, started(answer));
      // What is unpaid is no part of the contest.
      if (name === "repay") seen = null;
      show(answer.contest ?? answer);
      toast("ok", DONE[name]);
    } catch (error) {
      if (error instanceof Problem && error.body.failed) set(report, refused(error));
      else failed(error);
      await look();
    }
  };
  every(PAUSE, signal, look, (error) => inline(wrong, error));
}

const DONE = {
  open: "Players may apply",
  start: "The contest runs",
  finish: "The contest is over",
  settle: "The prizes are paid",
  repay: "What could be paid is paid",
  cancel: "The contest is called off",
};

/** The actions of each state: name, label, whether it is the usual next one. */
const ACTS = {
  draft: [["open", "Open for applications"]],
  open: [["start", "Start"]],
  running: [["finish", "Finish"]],
  finished: [["settle", "Settle and pay prizes"]],
};

const SURE = {
  finish: ["Finish this contest?", "No more scores are taken. Its results can be reviewed until it is settled.", "Finish"],
  settle: ["Settle this contest?", "Its ranks are final, and its prizes are paid into the wallets of those who won.", "Settle"],
  cancel: ["Call this contest off?", "What is held for applications is released, and fees that were taken are paid back.", "Call off"],
};

/** Acts that ask for a reason alone. */
const ASKED = {
  open: ["Open for applications?", "Open now"],
  start: ["Start this contest?", "Start now"],
};

/** Whether a payment of a contest that is over was rejected, and may be tried again. */
async function owes({ state }, path, signal) {
  const rows = { settled: "prizes", cancelled: "refunds" }[state];
  let cursor = null;
  while (rows && cursor !== undefined) {
    const page = await get(`${path}/${rows}`, { limit: 1000, cursor }, signal);
    if (page.items.some(({ paid, reason: why }) => paid === false && why && why !== "reversed")) return true;
    cursor = page.next_cursor;
  }
  return false;
}

function headOf(contest, act, owing) {
  const sure = async (name) => {
    const asked = SURE[name];
    const plain = ASKED[name] ? askReason(...ASKED[name]) : {};
    const why = await (asked ? confirmTyped(asked[0], asked[1], contest.id, asked[2], { audited: true }) : plain);
    if (why) await act(name, why);
  };
  const main = (ACTS[contest.state] ?? []).map(([name, label]) => button(label, () => sure(name), { kind: "main", failed }));
  const cancel = ["draft", "open", "running", "finished"].includes(contest.state) && button("Call off", () => sure("cancel"), { kind: "danger", failed });
  const again = button("Pay what is unpaid", () => sure("repay"), { failed });
  again.hidden = true;
  owing.then((some) => (again.hidden = !some)).catch(failed);
  const marks = [chip(contest.state, STATES[contest.state]), h("code", { class: "soft" }, contest.id)];
  const actions = may("contests:manage") ? [main, again, cancel].flat().filter(Boolean) : [];
  return head(contest.title, { crumb: ["#/contests", "Contests"], marks, actions });
}

function factsOf(contest) {
  const { counts, entry_fee: fee, prizes } = contest;
  const range = ({ from, to }) => (from === to ? `${from}` : `${from}–${to}`);
  const waiting = contest.state === "open" && ["Waiting", grouped(counts.pending)];
  const pairs = [
    ["Players", `${grouped(contest.state === "open" ? counts.accepted : counts.members)} of ${grouped(contest.capacity)}`],
    waiting,
    contest.auto_accept && ["Applications", "accepted at once while there is room"],
    contest.members_min !== null && ["Players at least", `${grouped(contest.members_min)}; with fewer the clock ${contest.below_min === "cancel" ? "calls it off" : "starts it all the same"}`],
    contest.join_s !== null && ["Joining", `for ${grouped(contest.join_s)} s after the start`],
    contest.attempts_max !== null && ["Scores of a player", `${grouped(contest.attempts_max)} at most`],
    ["Entry fee", fee ? money(fee.amount, fee.currency) : "none"],
    ["Prizes", prizes.length > 0 ? prizes.map((one) => h("span", {}, `${range(one)}: ${money(one.amount, one.currency)}`)) : "none"],
    ...poolOf(contest, range),
    ["Staff", contest.staff.length > 0 ? contest.staff.map((player) => playerLink(player, "under name")) : "none"],
    contest.opens_at && ["Opens", when(contest.opens_at)],
    contest.starts_at && ["Starts", when(contest.starts_at)],
    contest.ends_at && ["Ends", when(contest.ends_at)],
    contest.review_s !== null && ["Review", `${grouped(contest.review_s)} s after its end`],
    ["Changed", when(contest.updated_at)],
  ];
  return h("section", { class: "card" }, h("div", { class: "body" }, facts(pairs)));
}

/** The pool, and what is to be won of it. */
function poolOf({ pool, pool_account: account, entry_fee: fee }, range) {
  if (!pool) return [];
  const percent = (parts) => `${parts / 100} %`;
  const won = [money(account.to_win, fee.currency), `of fees of ${money(account.fees, fee.currency)}`];
  if (account.rake) won.push(`; ${money(account.rake, fee.currency)} went to FEES, ${money(account.top_up, fee.currency)} came from PRIZES`);
  return [
    ["Shares", pool.prizes.map((one) => h("span", {}, `${range(one)}: ${percent(one.share)}`))],
    ["Rake", percent(pool.rake)],
    ["To be won", won.join(" ")],
  ];
}

/** A server's key acts on a contest as one of its staff; an admin's needs no player. */
function acting({ staff, state }, signal, chosen) {
  if (staff.length === 0 || ["settled", "cancelled"].includes(state) || isAdmin() || !may("contests:manage")) return null;
  actAs(null, signal);
  const options = [["", "The API key"], ...staff.map((player) => [player, player])];
  const choose = field({ name: "acting", label: "Act as", options, hint: "A key of role server acts as one of the staff; one of role admin needs no player." });
  choose.querySelector("select").addEventListener("change", ({ target }) => {
    actAs(target.value, signal);
    chosen();
  });
  return h("section", { class: "card" }, h("div", { class: "body" }, choose));
}

/** The cards of the state. */
function parts(contest, path, signal) {
  if (contest.state === "draft") {
    return card("Applications", empty("Applications are not open yet", "Open the contest, and players or your game server may apply for it."));
  }
  const boards = contest.divisions ?? (contest.board ? [{ n: null, board: contest.board }] : []);
  const start = contest.start_report && contest.start_report.failed_total > 0 && failedTable(contest.start_report.failed, contest.start_report.failed_total);
  return [
    contest.state === "settled" && payments("Prizes", `${path}/prizes`, signal, "This contest had no prizes."),
    contest.state === "cancelled" && contest.counts.members > 0 && payments("Fees paid back", `${path}/refunds`, signal, "There was no fee to pay back."),
    contest.counts.members > 0 && boards.length > 0 && h("div", { class: "two" }, ranks(boards, signal), players(path, contest, signal)),
    start,
    contest.counts.members === 0 && card("Players", empty("No players took part", "The contest ended before any player was enrolled.")),
  ].filter(Boolean);
}

function ranks(boards, signal) {
  const place = h("div", {});
  let stop = null;
  const show = (board) => {
    stop?.abort();
    stop = new AbortController();
    const nothing = () => empty("No score yet", "Ranks appear with the first score that is submitted.");
    const both = AbortSignal.any([signal, stop.signal]);
    set(place, ranking(board, both, { nothing, title: "Ranking" }).element);
  };
  show(boards[0].board);
  if (boards.length === 1) return h("div", { class: "stack" }, place, h("p", { class: "small" }, h("a", { href: boardLink(boards[0].board) }, "Look at its leaderboard")));
  const options = boards.map(({ n, board, members }) => h("option", { value: board }, `Division ${n} (${grouped(members)})`));
  const select = h("select", { "aria-label": "Division", change: ({ target }) => show(target.value) }, options);
  return h("div", { class: "stack" }, select, place);
}

function payments(label, path, signal, nothing) {
  // A reader sees neither wallets nor the results of payouts.
  const outcome = ({ paid, reason, group_id: group, reversed, currency }) => paid === undefined ? "–" : paid
    ? [h("span", { title: group ?? "" }, chip("paid", "ok")), reversed && h("span", { class: "under" }, `${money(reversed, currency)} reversed`)].filter(Boolean)
    : chip(reason ? reason.replaceAll("_", " ") : "under way", reason ? "bad" : "warn");
  const view = table(label, [
    { label: "Rank", kind: "num fit", cell: ({ rank }) => grouped(rank) },
    { label: "Player", cell: ({ player }) => playerLink(player) },
    { label: "Amount", kind: "num", cell: ({ amount, currency, pool }) => [money(amount, currency), pool && h("span", { class: "under" }, "of the pool")].filter(Boolean) },
    { label: "Paid", kind: "fit", cell: outcome },
  ], { key: ({ division, rank, player, pool }) => `${division} ${rank} ${player} ${pool}` });
  const all = list(view, (cursor) => get(path, { limit: 20, cursor }, signal), () => empty(label, nothing));
  const said = h("div", {});
  every(PAUSE, signal, async () => {
    await all.refresh();
    set(said);
  }, (error) => inline(said, error));
  return card(label, h("div", {}, said, all.element));
}

/** The result of the start. */
function started({ enrolled, failed: bad, took_ms: took }) {
  const said = notice(bad.length > 0 ? "warn" : "ok",
    h("p", { class: "strong" }, `${grouped(enrolled)} players are enrolled`),
    h("p", { class: "small" }, `Members, fees, leaderboard and state in one durable transaction, ${took} ms.`));
  return bad.length > 0 ? [said, failedTable(bad, bad.length)] : said;
}

/** Why the contest did not start, row by row. */
function refused(error) {
  const request = error.request && ` Request ${error.request}.`;
  return [
    notice("bad", h("p", { class: "strong" }, "The contest did not start, and nothing was changed"), h("p", { class: "small" }, `${error.message}.${request ?? ""} Reject these applications, or let the contest skip bad ones.`)),
    failedTable(error.body.failed, error.body.failed.length),
  ];
}

function failedTable(rows, total) {
  const view = table("Bad applications", [
    { label: "Player", cell: ({ player }) => playerLink(player) },
    { label: "Why", cell: ({ code, detail }) => [detail, h("span", { class: "under" }, code)] },
  ], { key: ({ player }) => player });
  view.update(rows);
  return card(`Bad applications (${grouped(total)})`, view.element);
}
