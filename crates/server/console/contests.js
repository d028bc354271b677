// Contests: the list by state, and creating one.

import { change, get } from "./api.js";
import { definition, definitionFields } from "./boards.js";
import { dialog, inline, toast } from "./dialog.js";
import { button, chip, choice, empty, h, head, put, set } from "./dom.js";
import { currencies, grouped, money, when } from "./format.js";
import { field, form } from "./form.js";
import { every } from "./live.js";
import { prizeRows } from "./prize_rows.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";

/** Milliseconds between refreshes. */
const PAUSE = 5000;

export const title = "Contests";

/** The states with the kind of their badge. */
export const STATES = { draft: "", open: "live", running: "ok", finished: "warn", settled: "", cancelled: "bad" };

/** The address of a contest's page. */
export function link(contest) {
  return `#/contests/${encodeURIComponent(contest)}`;
}

export function render(root, { state = "" }, signal) {
  let present = state;
  const view = table("Contests", [
    { label: "Contest", cell: ({ id, title: name }) => [h("a", { class: "name strong", href: link(id) }, name), h("span", { class: "under name" }, id)] },
    { label: "State", kind: "fit", cell: (contest) => chip(contest.state, STATES[contest.state]) },
    { label: "Players", kind: "num", cell: players },
    { label: "Fee", kind: "wide num", cell: ({ entry_fee: fee }) => (fee ? money(fee.amount, fee.currency) : h("span", { class: "soft" }, "none")) },
    { label: "Next", kind: "wide", cell: next },
  ], { key: ({ id }) => id });
  const make = () => may("contests:manage") && button("New contest", create, { kind: "main", icon: "plus" });
  const nothing = () => present === ""
    ? empty("No contest yet", "A contest takes applications, is played on a board of its own, and pays its prizes exactly once.", make())
    : empty(`No contest is ${present}`, "Choose another state, or look at all of them.");
  const all = list(view, (cursor) => get("/v1/contests", { state: present, limit: 50, cursor }, signal), nothing);
  const said = h("div", {});
  const failed = (error) => inline(said, error);
  const choices = [["", "All"], ...Object.keys(STATES).map((name) => [name, name])];
  const states = choice("State", choices, present, (chosen) => {
    present = chosen;
    all.reload().catch(failed);
  });
  const about = "From draft over applications and play to prizes. Every fee and every prize moves once.";
  put(root, head("Contests", { about, actions: [make()] }), h("div", { class: "stack" }, states, h("section", { class: "card" }, said, all.element)));
  every(PAUSE, signal, async () => {
    await all.refresh();
    set(said);
  }, failed);
}

function players({ state, counts, capacity }) {
  if (state === "open") return [grouped(counts.accepted), h("span", { class: "under" }, `${grouped(counts.pending)} waiting`)];
  return [grouped(counts.members), state === "draft" && h("span", { class: "under" }, `up to ${grouped(capacity)}`)];
}

/** The next step of the scheduler. */
function next({ state, opens_at: opens, starts_at: starts, ends_at: ends }) {
  const at = { draft: opens && `opens ${when(opens)}`, open: starts && `starts ${when(starts)}`, running: ends && `ends ${when(ends)}` }[state];
  return h("span", { class: "soft" }, at || "–");
}

const FIELDS = [
  { name: "title", label: "Title", required: true, maxlength: 200, placeholder: "Friday cup" },
  { name: "id", label: "Id", placeholder: "friday-cup", hint: "Letters, digits, . _ and -. Without one it gets one." },
  { name: "capacity", label: "Players at most", type: "number", min: 1, hint: "How many may be accepted. Without one, the bound of the server." },
  { name: "on_invalid", label: "A bad application at the start", options: [["reject", "Stops the start"], ["skip", "Is left out"]], hint: "Bad: its fee is not held any more, or the member was closed." },
  { name: "auto_accept", label: "Accept applications at once", type: "checkbox", hint: "While there is room; without it they wait." },
  { name: "members_min", label: "Players at least", type: "number", min: 1, hint: "For a start by the clock. Empty: any number." },
  { name: "below_min", label: "With fewer, the clock", options: [["cancel", "Calls it off"], ["start", "Starts it"]], hint: "Called off, what is held is released." },
  { name: "join_s", label: "Seconds to join after the start", type: "number", min: 1, hint: "Players become members at once then, without a decision. Empty: not at all." },
  { name: "attempts_max", label: "Scores of a player at most", type: "number", min: 1, hint: "Empty: any number." },
  { name: "staff", label: "Staff", placeholder: "ada, ben", hint: "Player ids with commas between. They may run it, and not take part." },
  { name: "division_size", label: "Players of a division", type: "number", min: 1, hint: "Members fill divisions in order, each with its ranks and prizes. Empty: none." },
];

const TIMES = [
  { name: "opens_at", label: "Opens at", type: "datetime-local", hint: "Empty: by hand." },
  { name: "starts_at", label: "Starts at", type: "datetime-local", hint: "By the clock bad applications are left out." },
  { name: "ends_at", label: "Ends at", type: "datetime-local", hint: "Empty: by hand." },
];

const REVIEW = { name: "review_s", label: "Seconds of review", type: "number", min: 0, hint: "So long after its end the clock pays the prizes. Empty: by hand." };

const moneyFields = () => [
  { name: "fee", label: "Entry fee", inputmode: "numeric", placeholder: "100", hint: "In the smallest unit. Held with the application, taken at the start." },
  { name: "currency", label: "Currency", options: currencies().map((code) => [code, code]), hint: "Of the fee." },
  { name: "rake", label: "Rake in per cent", type: "number", min: 0, max: 100, step: "0.01", hint: "What you keep of fees that are paid out." },
  { name: "pool_min", label: "At least to be won", inputmode: "numeric", hint: "What the fees lack is made. Empty: nothing is guaranteed." },
  { name: "prize_ties", label: "Who share a rank get", options: [["split", "Equal parts of their places"], ["each", "Each the prize of the rank"]] },
];

function create() {
  const prizes = prizeRows({ label: "Prizes", hint: "In the smallest unit, for each place." });
  const pool = prizeRows({ label: "Shares of the fees", hint: "Without a share, fees are not paid out.", shares: true });
  dialog("New contest", (box) => {
    const group = (label, fields) => h("fieldset", {}, h("legend", {}, label), h("div", { class: "fields" }, fields.map(field)));
    const rules = h("details", {}, h("summary", {}, "Rules of its leaderboard"), h("div", { class: "body" }, definitionFields()));
    const send = async (values) => {
      const made = await change("POST", "/v1/contests", body(values, prizes.read(), pool.read()));
      box.close();
      toast("ok", `Contest ${made.id} is a draft`, "Open it to let players apply.");
      location.hash = link(made.id).slice(1);
    };
    return form([h("div", { class: "fields" }, FIELDS.map(field)), group("Money", moneyFields()), prizes.element, pool.element, group("Times", [...TIMES, REVIEW]), rules], "Create", send, { cancel: () => box.close() });
  }, { wide: true });
}

/** The request body, without empty fields. */
function body(values, prizes, shares) {
  const made = { title: values.title };
  for (const name of ["on_invalid", "auto_accept", "below_min", "prize_ties"]) made[name] = values[name];
  if (values.id) made.id = values.id;
  for (const name of ["capacity", "members_min", "join_s", "attempts_max", "division_size", "review_s"]) if (values[name]) made[name] = Number(values[name]);
  const staff = values.staff.split(",").map((player) => player.trim()).filter(Boolean);
  if (staff.length > 0) made.staff = staff;
  for (const { name } of TIMES) if (values[name]) made[name] = new Date(values[name]).toISOString();
  if (values.fee) made.entry_fee = { currency: values.currency, amount: values.fee };
  if (prizes.length > 0) made.prizes = prizes;
  if (shares.length > 0) made.pool = { prizes: shares, rake: Math.round(Number(values.rake || 0) * 100), min: values.pool_min || null };
  const rules = definition(values);
  if (Object.keys(rules).length > 0) made.leaderboard = rules;
  return made;
}
