// What a change of a leaderboard's periods does, in sentences.

import { h } from "./dom.js";
import { money, placesOf } from "./format.js";
import { words } from "./schedules.js";
import { t } from "./texts.js";

/**
 * Compares rules as the API answers them with wanted ones: `said` is one sentence for each change, `loses` whether ranks go.
 * `closed` has for each rule's name how many closed periods have scores.
 */
export function changes(before, after, closed) {
  const was = new Map(before.map((rule) => [rule.name, rule]));
  const is = new Map(after.map((rule) => [rule.name, rule]));
  const gone = before.filter(({ name }) => !is.has(name)).map((rule) => t("periods.change.removed", named(rule)));
  const added = after.filter(({ name }) => !was.has(name)).map((rule) => t("periods.change.added", { ...named(rule), prizes: prizes(rule) }));
  const stays = after.filter(({ name }) => was.has(name)).map((rule) => [was.get(rule.name), rule, closed.get(rule.name) ?? 0]);
  const kept = stays.flatMap((one) => differences(...one));
  return { said: [...gone, ...kept, ...added], loses: gone.length > 0 || stays.some((one) => lost(...one) > 0) };
}

/** Whether a rule keeps fewer closed periods than before. */
export function keepsFewer(before, after) {
  return after.some(({ name, keep }) => before.some((rule) => rule.name === name && rule.keep > keep));
}

/** How many closed periods go because the rule keeps fewer. */
function lost(before, after, closed) {
  return Math.max(0, Math.min(closed, before.keep) - after.keep);
}

const named = (rule) => ({ name: rule.name, words: words(rule) });

function differences(before, after, closed) {
  const { name } = after;
  const said = [];
  if (before.schedule !== after.schedule || before.time_zone !== after.time_zone) said.push(t("periods.change.schedule", { name, before: words(before), after: words(after) }));
  if (before.keep !== after.keep) {
    const n = lost(before, after, closed);
    const kept = t(after.keep > before.keep ? "periods.change.keep_more" : "periods.change.keep_less", { name, before: before.keep, after: after.keep });
    said.push([kept, n > 0 && [" ", h("span", { class: "strong" }, t("periods.change.keep_gone", { n }))]]);
  }
  if (before.grace_s !== after.grace_s) said.push(t("periods.change.grace", { name, before: before.grace_s, after: after.grace_s }));
  if (prizes(before) !== prizes(after)) said.push([t("periods.change.prizes", { name, before: prizes(before), after: prizes(after) }), " ", h("span", { class: "strong" }, t("periods.change.prizes_about"))]);
  return said;
}

/** The prizes of a rule in one line: `1: 500 KRW, 2–3: 50 KRW`. */
export function prizes({ prizes: rows = [], prize_ties: ties = "split" }) {
  if (rows.length === 0) return t("periods.no_prizes");
  const one = (row) => `${placesOf(row)}: ${money(row.amount, row.currency)}`;
  return [...rows.map(one), ties === "each" && t("periods.ties_each")].filter(Boolean).join(", ");
}
