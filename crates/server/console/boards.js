// Leaderboards: the list, and creating one.

import { change, get, part, Problem } from "./api.js";
import { dialog, inline, toast } from "./dialog.js";
import { button, chip, empty, h, head, put, set } from "./dom.js";
import { date, grouped } from "./format.js";
import { field, form, reason } from "./form.js";
import { every } from "./live.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";

/** Milliseconds between refreshes. */
const PAUSE = 5000;

export const title = "Boards";

/** The address of a board's page. */
export function link(board) {
  return `#/boards/${encodeURIComponent(board)}`;
}

export function render(root, _parameters, signal) {
  const view = table("Leaderboards", [
    { label: "Leaderboard", cell: row },
    { label: "Rule", kind: "wide", cell: (board) => rule(board) },
    { label: "Players", kind: "num", cell: ({ counts }) => grouped(Object.values(counts)[0] ?? 0) },
    { label: "Made", kind: "wide num", cell: ({ created_at: at }) => date(at) },
  ], { key: ({ board }) => board });
  const make = () => may("boards:admin") && button("New leaderboard", () => create(), { kind: "main", icon: "plus" });
  const all = list(view, (cursor) => get("/v1/leaderboards", { limit: 100, cursor }, signal), () =>
    empty("No leaderboard yet", "A leaderboard keeps players in order. Make one, then send scores over HTTP or with any Redis client.", make()));
  const said = h("div", {});
  const place = h("section", { class: "card" }, said, all.element);
  put(root, head("Leaderboards", { about: "Every rank is exact. Choose one to look at its players and periods.", actions: [make()] }), place);
  every(PAUSE, signal, async () => {
    await all.refresh();
    set(said);
  }, (error) => inline(said, error));
}

function row({ board, counts, periods }) {
  const parts = periods.map(({ name }) => `${name} ${grouped(counts[name] ?? 0)}`).join(" · ");
  return [h("a", { class: "name strong", href: link(board) }, board), parts && h("span", { class: "under" }, parts)];
}

/** The rule of a board in a few words. */
export function rule({ order, update, ranking }) {
  const better = order === "descending" ? "highest first" : "lowest first";
  return `${{ best: "best score", latest: "latest score", sum: "sum of scores" }[update]}, ${better}, ${ranking} ranks`;
}

/** The definition as badges. */
export function marks(board) {
  return [
    chip(board.order === "descending" ? "highest first" : "lowest first"),
    chip({ best: "best score", latest: "latest score", sum: "sum of scores" }[board.update]),
    chip(`${board.ranking} ranks`),
    chip(`ties: ${TIES.find(([value]) => value === board.ties)[1].toLowerCase()}`),
    board.score !== "int64" && chip(board.score),
    board.subscore !== "none" && chip(`subscore ${board.subscore}`),
  ];
}

const TIES = [
  ["first", "Who was there first"],
  ["last", "Who was there last"],
  ["player", "By player id"],
  ["player_reversed", "By player id, backwards"],
];

const NAME = { name: "board", label: "Name", required: true, maxlength: 128, placeholder: "arcade", hint: "1 to 128 bytes, without @. It cannot be changed later." };

const OPTIONS = [
  { name: "order", label: "Which score is better", options: [["descending", "The higher"], ["ascending", "The lower"]], hint: "Points go up, lap times go down." },
  { name: "update", label: "What a submit does", options: [["best", "Keep the better score"], ["latest", "Take the new score"], ["sum", "Add to the score"]], hint: "A player has one record on each board." },
  { name: "ranking", label: "Equal scores share a rank", options: [["ordinal", "No: 1 2 3 4"], ["competition", "Yes: 1 2 2 4"], ["dense", "Yes, without gaps: 1 2 2 3"]], hint: "The subscore counts as part of the score." },
  { name: "ties", label: "Order of equal scores", options: TIES, hint: "Who of those with the same score stands above." },
  { name: "score", label: "Kind of number", options: [["int64", "Whole numbers, exact"], ["float64", "Decimal numbers"]], hint: "Whole numbers have 64 bits." },
  { name: "subscore", label: "Second number", options: [["none", "None"], ["descending", "The higher is better"], ["ascending", "The lower is better"]], hint: "Decides between equal scores. Not on boards that add." },
];

const SCHEDULES = [
  ["", "No periods"],
  ["daily 0 0 * * *", "Every day"],
  ["weekly 0 0 * * mon", "Every week, from Monday"],
  ["monthly 0 0 1 * *", "Every month"],
  ["yearly 0 0 1 1 *", "Every year"],
  ["own", "Another schedule"],
];

/** The fields of a definition, for this page and for contests. */
export function definitionFields() {
  return h("div", { class: "fields" }, OPTIONS.map(field));
}

/** The chosen values, without defaults. */
export function definition(values) {
  const chosen = OPTIONS.map(({ name, options }) => [name, values[name], options[0][0]]);
  return Object.fromEntries(chosen.filter(([, value, standard]) => value !== standard).map(([name, value]) => [name, value]));
}

function periodFields() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";
  const own = h("div", { class: "fields", hidden: true },
    field({ name: "period_name", label: "Name of the period", placeholder: "season", hint: "Small letters, digits, - and _." }),
    field({ name: "schedule", label: "When one ends and the next begins", placeholder: "0 0 * * mon", hint: "Cron: minute, hour, day of month, month, day of week." }));
  const more = h("div", { class: "fields", hidden: true },
    field({ name: "time_zone", label: "Time zone", value: zone, hint: "Boundaries are local times of this zone." }),
    field({ name: "keep", label: "Closed periods kept", type: "number", value: "12", min: 0, hint: "Older ones go with their ranks." }),
    field({ name: "grace_s", label: "Grace in seconds", type: "number", value: "0", min: 0, hint: "How long an ended period takes scores that happened in it." }));
  const which = field({ name: "period", label: "Periods", options: SCHEDULES, hint: "In each period everybody starts anew; its ranks stay to be read." });
  which.querySelector("select").addEventListener("change", ({ target }) => {
    more.hidden = target.value === "";
    own.hidden = target.value !== "own";
  });
  const allTime = field({ name: "all_time", label: "Keep an order over all time too", type: "checkbox", value: true, hint: "Without it, a board needs a period." });
  return h("fieldset", {}, h("legend", {}, "Periods"), h("div", { class: "fields" }, which, allTime), own, more);
}

function periods({ period, period_name: name, schedule, time_zone: zone, keep, grace_s: grace }) {
  if (period === "") return [];
  const [known, ...cron] = period.split(" ");
  const what = period === "own" ? { name, schedule } : { name: known, schedule: cron.join(" ") };
  return [{ ...what, time_zone: zone || "UTC", keep: Number(keep), grace_s: Number(grace) }];
}

function create() {
  dialog("New leaderboard", (box) => {
    const send = async (values) => {
      if (await exists(values.board)) throw new Problem(0, { detail: "There is a leaderboard of this name. Choose another one." });
      const body = { ...definition(values), all_time: values.all_time, periods: periods(values), ...(values.reason && { reason: values.reason }) };
      await change("PUT", `/v1/leaderboards/${part(values.board)}`, body);
      box.close();
      toast("ok", `Leaderboard ${values.board} is there`);
      location.hash = link(values.board).slice(1);
    };
    return form([field(NAME), definitionFields(), periodFields(), reason()], "Create", send, { cancel: () => box.close() });
  }, { wide: true });
}

/** Whether the board exists: a PUT on an existing board would change its periods. */
async function exists(board) {
  try {
    await get(`/v1/leaderboards/${part(board)}`);
    return true;
  } catch (error) {
    if (error.status === 404) return false;
    throw error;
  }
}

/** The content for a board without players. */
export function noPlayers(board) {
  const example = `curl -X POST '${location.origin}/v1/leaderboards/${encodeURIComponent(board)}/scores' -H 'content-type: application/json' -d '{"player":"ada","score":1200}'`;
  return empty("No player here yet", "Import a file, or send a score:", h("code", { class: "name" }, example));
}
