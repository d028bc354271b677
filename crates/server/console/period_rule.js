// One rule of periods in the form of a leaderboard: how often, from when, in which time zone, and the prizes.

import { button, h } from "./dom.js";
import { field, values } from "./form.js";
import { prizeRows } from "./prize_rows.js";
import { may } from "./rights.js";
import { KINDS, cron, days, read as readSchedule, zones } from "./schedules.js";
import { t } from "./texts.js";

const KEEP = 12;

let made = 0;

/**
 * A group of fields. `rule` is as the API answers it, or `null` for a new one, which gets the time zone `zone`. `taken()` are the names
 * of all rules. `read()` returns the rule as the API takes it; `input(name)` is the name of the input for a field of the API.
 */
export function periodRule(rule, { taken, zone, gone }) {
  made += 1;
  const no = made;
  const named = (name) => `${name}-${no}`;
  const { kind, day, time } = rule ? readSchedule(rule.schedule) : { kind: "weekly", day: 1, time: "00:00" };
  const { own, options } = zones(rule?.time_zone);
  const fields = {
    kind: field({ name: named("kind"), label: t("periods.field.kind"), value: kind, options: KINDS.map((one) => [one, t(`periods.kind.${one}`)]) }),
    day: field({ name: named("day"), label: t("periods.field.day"), value: String(day), options: days() }),
    time: field({ name: named("time"), label: t("periods.field.time"), type: "time", value: time, required: true }),
    schedule: field({ name: named("schedule"), label: t("periods.field.schedule"), value: rule?.schedule ?? "", placeholder: "0 0 * * mon", hint: t("periods.hint.schedule") }),
    time_zone: field({ name: named("time_zone"), label: t("periods.field.time_zone"), value: rule?.time_zone ?? zone ?? own, options, hint: t("periods.hint.time_zone") }),
    name: field({ name: named("name"), label: t("periods.field.name"), value: rule?.name ?? "", required: true, maxlength: 32, readonly: Boolean(rule), hint: rule ? t("periods.hint.name_fixed") : t("periods.hint.name") }),
    keep: field({ name: named("keep"), label: t("periods.field.keep"), type: "number", min: 0, value: String(rule?.keep ?? KEEP), required: true, hint: t("periods.hint.keep") }),
    grace_s: field({ name: named("grace_s"), label: t("periods.field.grace"), type: "number", min: 0, value: String(rule?.grace_s ?? 0), required: true, hint: t("periods.hint.grace") }),
  };
  const input = (name) => fields[name]?.querySelector("input, select");
  const rows = may("money:mint") && prizeRows({ label: t("periods.prizes"), hint: t("periods.hint.prizes"), value: rule?.prizes ?? [] });
  const ties = field({ name: named("prize_ties"), label: t("periods.field.ties"), value: rule?.prize_ties ?? "split", options: [["split", t("periods.ties.split")], ["each", t("periods.ties.each")]] });

  /** A new rule is named after its kind until it gets another name. */
  let suggested = "";
  const suggest = () => {
    if (rule || input("name").value !== suggested) return;
    const chosen = input("kind").value === "own" ? "season" : input("kind").value;
    const others = taken().filter((name) => name !== suggested);
    suggested = chosen;
    for (let at = 2; others.includes(suggested); at += 1) suggested = `${chosen}-${at}`;
    input("name").value = suggested;
  };
  const show = () => {
    const present = input("kind").value;
    fields.day.hidden = present !== "weekly";
    fields.time.hidden = present === "own";
    fields.schedule.hidden = present !== "own";
    suggest();
  };
  input("kind").addEventListener("change", show);
  show();

  const legend = rule ? rule.name : t("periods.new");
  const remove = button(rule ? t("periods.remove", { name: rule.name }) : t("periods.remove_new"), gone, { kind: "small danger" });
  const element = h("fieldset", {}, h("legend", {}, legend), h("div", { class: "fields" }, Object.values(fields)), rows && [rows.element, ties], h("div", { class: "row" }, remove));

  const read = () => {
    const given = Object.fromEntries(Object.entries(values(element)).map(([name, value]) => [name.slice(0, name.lastIndexOf("-")), value]));
    const unchanged = rule && given.kind === kind && given.kind !== "own" && given.time === time && Number(given.day) === day;
    const schedule = unchanged ? rule.schedule : given.kind === "own" ? given.schedule : cron(given);
    const prizes = rows ? rows.read() : [];
    const paid = prizes.length > 0 && { prizes, prize_ties: given.prize_ties };
    return { name: given.name, schedule, time_zone: given.time_zone, keep: Number(given.keep), grace_s: Number(given.grace_s), ...paid };
  };
  return { element, read, name: () => input("name").value, zone: () => input("time_zone").value, input: (name) => (fields[name] ? named(name) : name), focus: () => input("kind").focus() };
}
