// What a contest is, or what the contests of a series will be: names with their values.

import { facts, h, playerLink } from "./dom.js";
import { grouped, money, placesOf, seconds, zoned } from "./format.js";
import { seriesLink } from "./contests.js";
import { t } from "./texts.js";

/** A card of facts. */
export function factsCard(pairs) {
  return h("section", { class: "card" }, h("div", { class: "body" }, facts(pairs)));
}

/** The facts of a contest. */
export function contestFacts(contest) {
  const { counts, state, series } = contest;
  const at = (name) => contest[name] && [t(`contest.fact.${name}`), zoned(contest[name])];
  const here = state === "open" ? counts.accepted : counts.players;
  return [
    [t("contest.fact.players"), t("contest.of_capacity", { n: here ?? "–", capacity: contest.capacity })],
    state === "open" && [t("contest.fact.waiting"), grouped(counts.pending)],
    series && [t("contest.fact.series"), h("a", { class: "name", href: seriesLink(series) }, series)],
    ...rules(contest),
    at("opens_at"),
    at("starts_at"),
    at("ends_at"),
    contest.review_s !== null && [t("contest.fact.review"), t("contest.after_end", { time: seconds(contest.review_s) })],
    at("updated_at"),
  ];
}

/** The facts that a contest has from the template of its series, too. */
export function rules(contest) {
  const { entry_fee: fee, prizes, pool, pool_account: account, staff } = contest;
  const won = account && [money(account.to_win, fee.currency), t("contest.of_fees", { fees: money(account.fees, fee.currency) })];
  if (account?.rake) won.push(t("contest.pool_result", { rake: money(account.rake, fee.currency), made: money(account.top_up, fee.currency) }));
  return [
    contest.auto_accept && [t("contest.fact.applications"), t("contest.auto_accept")],
    contest.players_min !== null && [t("contest.fact.players_min"), t(`contest.below.${contest.below_min}`, { n: contest.players_min })],
    contest.join_s !== null && [t("contest.fact.join"), t("contest.after_start", { time: seconds(contest.join_s) })],
    contest.attempts_max !== null && [t("contest.fact.attempts"), t("contest.at_most", { n: contest.attempts_max })],
    contest.division_size !== null && [t("contest.fact.division_size"), grouped(contest.division_size)],
    [t("contest.fact.fee"), fee ? money(fee.amount, fee.currency) : t("contest.none")],
    [t("contest.fact.prizes"), prizes.length > 0 ? prizes.map((one) => h("span", {}, `${placesOf(one)}: ${money(one.amount, one.currency)}`)) : t("contest.none")],
    pool && [t("contest.fact.shares"), pool.prizes.map((one) => h("span", {}, `${placesOf(one)}: ${percent(one.share)}`))],
    pool && [t("contest.fact.rake"), percent(pool.rake)],
    pool?.min && [t("contest.fact.pool_min"), money(pool.min, fee.currency)],
    won && [t("contest.fact.to_win"), won.join(" ")],
    [t("contest.fact.staff"), staff.length > 0 ? staff.map((player) => h("span", {}, playerLink(player))) : t("contest.none")],
  ];
}

const percent = (parts) => `${parts / 100} %`;
