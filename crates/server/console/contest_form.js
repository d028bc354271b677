// The form of a contest, and of the template of a series: all fields of a new one, and of an existing one those that may change.

import { definition, definitionFields } from "./definition.js";
import { h } from "./dom.js";
import { currencies } from "./format.js";
import { field } from "./form.js";
import { idOf } from "./ids.js";
import { prizeRows } from "./prize_rows.js";
import { may } from "./rights.js";
import { t } from "./texts.js";
import { toInstant, toLocal, zoneField } from "./zones.js";

const STATES = ["draft", "open", "running", "finished"];

/** The last state in which a field may change. */
const UNTIL = {
  title: "finished", staff: "finished", capacity: "open", on_invalid: "open", auto_accept: "open", players_min: "open", below_min: "open",
  join_s: "running", attempts_max: "draft", entry_fee: "draft", leaderboard: "draft", prizes: "draft", prize_ties: "draft", pool: "draft",
  division_size: "open", opens_at: "draft", starts_at: "open", ends_at: "running", review_s: "finished",
};

const TIMES = ["opens_at", "starts_at", "ends_at"];
const NUMBERS = ["capacity", "players_min", "attempts_max", "division_size"];
const PLAIN = ["on_invalid", "auto_accept", "below_min", "prize_ties"];
const UNITS = [["1", "seconds"], ["60", "minutes"], ["3600", "hours"], ["86400", "days"]];

/** Whether anything of a contest may still change. */
export function mayChange({ state }) {
  return STATES.includes(state) && may("contests:manage");
}

/**
 * The fields of a contest; without `present` those of a new one, with `times` also when it happens. `id` is the field of its id.
 * `read(values)` returns the request: of a new one what is not its default, of a present one what changed. `proposed()` is whether the
 * id was made from the title.
 */
export function contestFields(present, { times = true, id } = {}) {
  const state = present?.state ?? "draft";
  const open = (name) => STATES.indexOf(state) <= STATES.indexOf(UNTIL[name]);
  const mints = may("money:mint");
  const input = (name, more = {}) => open(name) && field({ name, label: t(`contests.field.${name}`), hint: t(`contests.hint.${name}`), value: present?.[name] ?? "", ...more });
  const number = (name, more) => input(name, { type: "number", min: 1, ...more });
  const select = (name, values) => input(name, { options: values.map((value) => [value, t(`contests.option.${name}_${value}`)]) });

  const zone = times && TIMES.some(open) && zoneField(null, t("contests.field.time_zone"), t("contests.hint.time_zone"));
  const here = zone && zone.querySelector("select").value;
  const time = (name) => times && input(name, { type: "datetime-local", value: toLocal(present?.[name], here) });
  const prizes = open("prizes") && mints && prizeRows({ label: t("contests.prizes"), hint: t("contests.hint.prizes"), value: present?.prizes });
  const shares = open("pool") && prizeRows({ label: t("contests.shares"), hint: t("contests.hint.shares"), value: present?.pool?.prizes, shares: true });
  const rules = open("leaderboard") && rulesOf(present?.leaderboard);
  const review = open("review_s") && duration("review_s", 0, present);

  const title = input("title", { required: true, maxlength: 200, hint: null, placeholder: t("contests.example") });
  const proposed = id && propose(id, title);

  const groups = [
    ["", [
      title,
      id,
      number("capacity"),
      input("staff", { value: present?.staff.join(", ") ?? "", placeholder: "ada, ben" }),
      !times && review,
    ]],
    ["taking_part", [
      input("auto_accept", { type: "checkbox" }),
      select("on_invalid", ["reject", "skip"]),
      number("players_min"),
      select("below_min", ["cancel", "start"]),
      open("join_s") && duration("join_s", 1, present),
      number("attempts_max"),
      number("division_size"),
    ]],
    ["money", open("entry_fee") ? moneyFields(present, mints, select) : []],
    [null, [prizes?.element, shares?.element]],
    ["times", times ? [zone, ...TIMES.map(time), review] : []],
  ];
  return {
    proposed,
    elements: [...groups.map(([name, fields]) => group(name, fields.filter(Boolean))), rules?.element].filter(Boolean),
    read: (values) => {
      const wanted = { ...plain(values), ...money(values, prizes, shares, present), ...timesOf(values) };
      return present ? changed(present, { ...wanted, ...rules?.changed(values) }) : filled({ ...wanted, ...rules?.chosen(values) });
    },
  };
}

/** Fills in an id made from the title, as long as none was typed; returns whether none was. */
function propose(id, title) {
  const [to, from] = [id, title].map((made) => made.querySelector("input"));
  let typed = false;
  to.addEventListener("input", () => (typed = to.value !== ""));
  from.addEventListener("input", () => {
    if (!typed) to.value = idOf(from.value);
  });
  return () => !typed;
}

function group(name, fields) {
  if (fields.length === 0) return null;
  if (name === null) return fields;
  const grid = h("div", { class: "fields" }, fields);
  return name === "" ? grid : h("fieldset", {}, h("legend", {}, t(`contests.group.${name}`)), grid);
}

function moneyFields(present, mints, select) {
  const codes = [...new Set([present?.entry_fee?.currency, ...currencies()].filter(Boolean))];
  const own = (name, more) => field({ name, label: t(`contests.field.${name}`), hint: t(`contests.hint.${name}`), ...more });
  return [
    own("fee", { inputmode: "numeric", placeholder: "100", value: present?.entry_fee?.amount ?? "" }),
    codes.length > 1 && own("currency", { options: codes.map((code) => [code, code]) }),
    select("prize_ties", ["split", "each"]),
    own("rake", { type: "number", min: 0, max: 100, step: "0.01", value: present?.pool ? present.pool.rake / 100 : "" }),
    mints && own("pool_min", { inputmode: "numeric", value: present?.pool?.min ?? "" }),
  ];
}

/** A number of seconds, in a unit of choice. */
function duration(name, min, present) {
  const given = present?.[name] ?? null;
  const [unit] = given ? UNITS.findLast(([size]) => given % Number(size) === 0) : UNITS[1];
  const label = t(`contests.field.${name}`);
  const made = field({ name, label, hint: t(`contests.hint.${name}`), type: "number", min, value: given === null ? "" : given / Number(unit) });
  const options = UNITS.map(([size, text]) => h("option", { value: size, selected: size === unit }, t(`contests.unit.${text}`)));
  beside(made, h("select", { name: `${name}_unit`, "aria-label": t("contests.unit_of", { label }) }, options));
  return made;
}

/** Puts a choice beside the input of a field. */
export function beside(made, select) {
  const input = made.querySelector("input");
  const both = h("div", { class: "with" });
  input.replaceWith(both);
  both.append(input, select);
}

/** The rules of the leaderboard: of a present one only what differs is sent. */
function rulesOf(present) {
  const fields = definitionFields();
  const inputs = [...fields.querySelectorAll("[name]")];
  if (present) inputs.forEach((input) => (input.value = present[input.name]));
  const element = h("details", {}, h("summary", {}, t("contests.rules")), h("div", { class: "body" }, fields));
  return {
    element,
    chosen: (values) => ({ leaderboard: definition(values) }),
    changed: (values) => {
      const other = inputs.filter(({ name }) => values[name] !== String(present[name])).map(({ name }) => [name, values[name]]);
      return other.length > 0 ? { leaderboard: Object.fromEntries(other) } : {};
    },
  };
}

/** A field that was cleared is `null`; one that the form does not have is left out. */
function plain(values) {
  const made = {};
  for (const name of ["title", ...PLAIN]) if (name in values) made[name] = values[name];
  for (const name of NUMBERS) if (name in values) made[name] = values[name] === "" ? null : Number(values[name]);
  for (const name of ["join_s", "review_s"]) {
    if (name in values) made[name] = values[name] === "" ? null : Math.round(Number(values[name]) * Number(values[`${name}_unit`]));
  }
  if ("staff" in values) made.staff = values.staff.split(",").map((player) => player.trim()).filter(Boolean);
  return made;
}

function money(values, prizes, shares, present) {
  const made = {};
  if ("fee" in values) made.entry_fee = values.fee === "" ? null : { currency: values.currency ?? currencies()[0], amount: values.fee };
  if (prizes) made.prizes = prizes.read();
  const rows = shares ? shares.read() : [];
  // A key that makes no money has no field of the guaranteed minimum.
  const min = "pool_min" in values ? values.pool_min || null : present?.pool?.min ?? null;
  if (shares) made.pool = rows.length > 0 ? { prizes: rows, rake: Math.round(Number(values.rake || 0) * 100), min } : null;
  return made;
}

function timesOf(values) {
  const given = TIMES.filter((name) => name in values);
  return Object.fromEntries(given.map((name) => [name, values[name] === "" ? null : toInstant(values[name], values.time_zone)]));
}

/** What is not its default. */
function filled(made) {
  const empty = (value) => value === null || (typeof value === "object" && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(made).filter(([, value]) => !empty(value)));
}

/** What differs from a present contest. Times count to the minute, as the form shows them. */
function changed(present, made) {
  const text = (name, value) => (TIMES.includes(name) && value ? Math.floor(Date.parse(value) / 60000) : ordered(value));
  const differs = ([name, value]) => text(name, value) !== text(name, present[name]) && !(name === "capacity" && value === null);
  return Object.fromEntries(Object.entries(made).filter(differs));
}

/** Refuses a change of nothing. */
export function someChange(body) {
  if (Object.keys(body).length === 0) throw new Error(t("contests.nothing_changed"));
  return body;
}

/** JSON with the fields in order of their names. */
function ordered(value) {
  const sorted = (_, one) => (one && typeof one === "object" && !Array.isArray(one) ? Object.fromEntries(Object.entries(one).sort()) : one);
  return JSON.stringify(value, sorted);
}
