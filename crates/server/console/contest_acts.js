// The acts of a contest. Each says before it is done what it does: players, fees, prizes, in numbers.

import { change, get } from "./api.js";
import { contestFields, someChange } from "./contest_form.js";
import { confirmActs, dialog, inline, toast } from "./dialog.js";
import { button, card, h, playerLink, set } from "./dom.js";
import { grouped, money, seconds, totalOf, zoned } from "./format.js";
import { form, reason } from "./form.js";
import { table } from "./table.js";
import { t } from "./texts.js";

/** The winners that are named before the prizes are paid. */
const NAMED = 10;

/** The acts of each state, the usual next one first. */
export const ACTS = { draft: ["open", "cancel"], open: ["start", "cancel"], running: ["finish", "cancel"], finished: ["settle", "cancel"] };

/** Asks whether an act shall be done, as the contest is now. Resolves to `null`, or to `{reason, before}` with that contest. */
export async function confirmAct(name, path, signal) {
  const contest = await get(path, {}, signal);
  const won = name === "settle" ? await preview(path, signal).catch(() => null) : null;
  const says = { open: opens, start: starts, finish: finishes, settle: () => settles(won), cancel: cancels }[name];
  const label = won?.totals.prizes === 0 ? t("contest.do.settle_none") : t(`contest.do.${name}`);
  const sure = await confirmActs(t(`contest.sure.${name}`, { title: contest.title }), says(contest), label, { reason: true, ...(name === "cancel" && { danger: true, keep: t("contest.keep") }) });
  return sure && { ...sure, before: contest };
}

/** So many fees. */
export function fees(contest, number) {
  const { amount, currency } = contest.entry_fee;
  return money(BigInt(amount) * BigInt(number), currency);
}

/** A consequence that needs a second look. */
export function careful(text) {
  return h("strong", {}, text);
}

const final = () => careful(t("contest.final"));

function opens(contest) {
  return [
    t("contest.opens_applications"),
    contest.entry_fee && t("contest.opens_fee", { fee: fees(contest, 1) }),
    t("contest.opens_fixed"),
  ];
}

function starts(contest) {
  const { accepted, pending } = contest.counts;
  if (accepted === null) return [careful(t("contest.counts_unknown")), final()];
  const fee = contest.entry_fee;
  return [
    accepted === 0 ? careful(t("contest.starts_empty")) : t("contest.starts_players", { n: accepted }),
    accepted > 0 && (fee ? t("contest.starts_fees", { total: fees(contest, accepted), fee: fees(contest, 1) }) : t("contest.starts_no_fee")),
    pending > 0 && t("contest.starts_waiting", { n: pending }),
    pending > 0 && fee && t("contest.releases", { total: fees(contest, pending) }),
    t("contest.starts_undo"),
  ];
}

function finishes(contest) {
  const { ends_at: ends, review_s: review, series, counts } = contest;
  const early = ends && Date.parse(ends) > Date.now();
  const atOnce = review === 0 || (review === null && series);
  const byClock = atOnce ? t("contest.finishes_at_once") : review !== null && t("contest.finishes_clock", { time: seconds(review) });
  return [
    t("contest.finishes_scores", { n: counts.players }),
    early && t("contest.finishes_early", { at: zoned(ends) }),
    byClock || t("contest.finishes_review"),
    final(),
  ];
}

/** The prizes that a settlement would pay now: the first of them, and the totals of all. */
const preview = (path, signal) => get(`${path}/prizes`, { preview: true, limit: NAMED }, signal);

function settles(won) {
  const { said, rows, more } = won ? winners(won) : { said: careful(t("contest.settles_unknown")) };
  return [[said, rows], more, t("contest.settles_ranks"), final()];
}

/**
  * A card of the prizes that a settlement would pay now, for a caller that may settle. The server computes all of them for each
  * answer, so they are read when the card is shown and after `refresh`, and not again and again.
 */
export function prizePreview(path, signal) {
  const place = h("div", { "aria-live": "polite" });
  const refresh = async () => {
    try {
      const { said, rows, more } = winners(await preview(path, signal));
      set(place, h("p", { class: "body" }, said), rows, more && h("p", { class: "foot" }, more));
    } catch (error) {
      inline(place, error);
    }
  };
  refresh();
  return { element: card(t("contest.preview"), place, { side: button(t("contest.preview_again"), refresh, { kind: "small" }) }), refresh };
}

function winners({ items, totals }) {
  if (totals.prizes === 0) return { said: careful(t("contest.settles_nothing")) };
  const view = table(t("contest.winners"), [
    { label: t("contest.rank"), kind: "num fit", cell: ({ rank }) => grouped(rank) },
    { label: t("contest.player"), cell: ({ player, division }) => [playerLink(player), division && h("span", { class: "under" }, t("contest.division", { n: division }))] },
    { label: t("contest.amount"), kind: "num", cell: ({ amount, currency, pool }) => [money(amount, currency), pool && h("span", { class: "under" }, t("contest.of_pool"))] },
  ]);
  view.update(items);
  return {
    said: t("contest.settles_prizes", { n: totals.players, total: totalOf(totals.amounts) }),
    rows: view.element,
    more: totals.prizes > items.length && t("contest.settles_others", { n: totals.prizes - items.length }),
  };
}

/** What goes, and what is paid back, when a contest is cancelled: sentences. */
export function cancelled(contest) {
  const { counts, entry_fee: fee, pool_account: account } = contest;
  const applied = applicationsOf(contest);
  const back = account ? money(account.fees, fee.currency) : fee && fees(contest, counts.players);
  return [
    applied > 0 && t("contest.cancels_applications", { n: applied }),
    applied > 0 && fee && t("contest.releases", { total: fees(contest, applied) }),
    isPlayed(contest) && fee && t("contest.cancels_fees", { n: counts.players, total: back }),
  ].filter(Boolean);
}

/** The applications of an open contest; null if they cannot be counted. No other contest has any. */
function applicationsOf({ state, counts: { pending, accepted } }) {
  if (state !== "open") return undefined;
  return pending === null ? null : pending + accepted;
}

const isPlayed = ({ state }) => ["running", "finished"].includes(state);

function cancels(contest) {
  const applied = applicationsOf(contest);
  return [
    applied === null && careful(t("contest.counts_unknown")),
    applied === 0 && t("contest.cancels_applications", { n: 0 }),
    ...cancelled(contest),
    isPlayed(contest) && t("contest.cancels_prizes"),
    final(),
  ];
}

/** The form of what may still change; `done` is called with the changed contest. */
export function edit(contest, path, done) {
  dialog(t("contest.edit_title", { title: contest.title }), (box) => {
    const fields = contestFields(contest);
    const send = async (values) => {
      const body = someChange(fields.read(values));
      const changed = await change("PATCH", path, values.reason ? { ...body, reason: values.reason } : body);
      box.close();
      toast("ok", t("contest.changed"));
      done(changed);
    };
    const about = contest.state !== "draft" && h("p", { class: "soft" }, t("contest.edit_fixed"));
    return [about, form([...fields.elements, reason()], t("contest.save"), send, { cancel: () => box.close() })];
  }, { wide: true });
}
