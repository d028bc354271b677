// The overview: whether anything needs a person, what today brought, and what was done last.

import { get } from "./api.js";
import { actCell, actorOf, readNames, subjectOf } from "./acts.js";
import { contestLines, owedLines } from "./attention.js";
import { failed, inline } from "./dialog.js";
import { card, coded, facts, h, head, icon, notice, put, renew, set } from "./dom.js";
import { decimal, grouped, when, zoned, zoneName } from "./format.js";
import { every } from "./live.js";
import { may } from "./rights.js";
import { latest, minute, PAUSE, read } from "./samples.js";
import { table } from "./table.js";
import { named, t } from "./texts.js";
import { warnings } from "./warnings.js";

const STATES = ["draft", "open", "running", "finished", "settled", "cancelled"];
const ACTS_SHOWN = 8;
const LINES_SHOWN = 20;
/** Milliseconds between looks at contests, payments, the books and the audit log. */
const LOOK = 5000;
const GRAVEST = ["bad", "warn", "info"];

export const title = t("nav.overview");

export function render(root, { needs: wanted }, signal) {
  const wrong = h("div", {});
  const needs = h("div", { "aria-live": "polite" }, looking());
  const today = h("div", { hidden: true });
  const contests = h("div", { class: "body" });
  const acts = may("audit:read") && actTable();
  put(root, head(t("nav.overview")), h("div", { class: "stack" },
    wrong,
    card(t("overview.needs"), needs),
    today,
    h("div", { class: "two" }, acts ? acts.element : h("div", {}), card(t("nav.contests"), contests))));
  // What each read found: undefined until it has answered since the page was opened.
  const answers = {};
  const lost = new Map();
  const show = () => {
    if (latest) {
      showToday(today, latest.status.activity);
      showContests(contests, latest.status.contests.states);
    }
    const { server, owed, due, books } = answers;
    const found = [server && warnings(server, minute, books?.balanced), owed, due].filter(Boolean).flat().toSorted(([one], [other]) => GRAVEST.indexOf(one) - GRAVEST.indexOf(other));
    // All is well only after every read, and one reading has no latency.
    const all = server && minute && owed && due && books;
    renew(needs, [found, Boolean(all)], () => {
      if (found.length > 0) return lineList(found, wanted === "all");
      return all ? allWell() : looking();
    });
  };
  /** Shows an answer as soon as it is there. A read that fails leaves the others alone, and one that is refused ends. */
  const take = async (name, answer) => {
    try {
      answers[name] = await answer;
      lost.delete(name);
    } catch (error) {
      if (signal.aborted) return;
      delete answers[name];
      lost.set(name, error);
    }
    const [failure] = lost.values();
    if (failure) inline(wrong, failure);
    else set(wrong);
    show();
    if (lost.get(name)?.status === 403) throw lost.get(name);
  };
  show();
  every(PAUSE, signal, () => take("server", read(signal).then(() => latest)));
  every(LOOK, signal, () => take("owed", owedLines(signal)));
  every(LOOK, signal, () => take("due", contestLines(latest?.status.contests.states, signal)));
  every(LOOK, signal, () => take("books", may("money:read") ? get("/v1/ledger/trial-balance", {}, signal) : {}));
  if (acts) every(LOOK, signal, () => acts.read(signal), failed);
}

function looking() {
  return h("p", { class: "body soft" }, t("overview.looking"));
}

/** All that the caller may see: contests and payments need their scopes. */
function allWell() {
  const all = may("contests:manage") && may("money:read");
  return h("div", { class: "body" }, notice("ok", h("p", {}, t(all ? "overview.all_well" : "overview.well_as_seen"))));
}

/** A list of what needs attention: its first lines with a link to the whole list, or the whole list. */
export function lineList(found, whole) {
  const one = ([kind, name, text, link]) => h("li", { class: kind }, icon(kind === "info" ? "next" : "bad"), h("div", {}, h("a", { class: "strong name", href: link }, name), h("p", { class: "small soft name" }, coded(text))));
  const lines = whole ? found : found.slice(0, LINES_SHOWN);
  const more = lines.length < found.length && h("li", {}, h("a", { href: "#/?needs=all" }, t("overview.more", { n: found.length - lines.length })));
  return h("ul", { class: "needs" }, lines.map(one), more);
}

/** Scores, transfers and the money that moved today beside those of yesterday. Days are those of UTC, as the server counts them. */
function showToday(place, activity) {
  place.hidden = !activity;
  if (!activity) return;
  const { today, yesterday } = activity;
  renew(place, activity, () => {
    const beside = (now, before) => [now, h("div", { class: "small soft" }, yesterday ? before : t("overview.no_yesterday"))];
    const value = (name) => beside(grouped(today[name]), t("overview.yesterday", { n: yesterday?.[name] }));
    const sums = [today, yesterday].map((day) => new Map((day?.moved ?? []).map(({ currency, amount }) => [currency, amount])));
    const moved = [...new Set(sums.flatMap((of) => [...of.keys()]))].map((currency) => {
      const [now, before] = sums.map((of) => decimal(of.get(currency) ?? "0", currency));
      return [t("overview.moved", { currency }), beside(now, t("overview.money_yesterday", { sum: before }))];
    });
    const note = t("overview.since", { when: zoned(today.since) });
    return card(t("overview.today"), h("div", { class: "body" }, facts([[t("overview.scores"), value("scores")], may("money:read") && [t("overview.transfers"), value("transfers")], ...moved], "big")), { side: h("span", { class: "small soft" }, note) });
  });
}

function showContests(place, states) {
  renew(place, states, () => {
    if (!states) return h("p", { class: "soft" }, t("overview.uncounted"));
    return facts(STATES.map((name) => [named(`contest_state.${name}`), h("a", { href: `#/contests?state=${name}` }, grouped(states[name] ?? 0))]));
  });
}

/** The last acts of the audit log. */
function actTable() {
  const view = table(t("overview.acts"), [
    { label: t("audit.when", { zone: zoneName() }), kind: "wide fit", cell: ({ at }) => h("span", { class: "soft" }, when(at)) },
    { label: t("audit.act"), cell: actCell },
    { label: t("audit.on"), kind: "who", cell: subjectOf },
    { label: t("audit.by"), kind: "wide who", cell: ({ actor }) => actorOf(actor) },
  ], { key: ({ id }) => id });
  const nothing = h("p", { class: "body soft" }, t("overview.no_act"));
  const place = h("div", {});
  let ready = false;
  const look = async (signal) => {
    const [{ items }] = await Promise.all([get("/v1/audit", { limit: ACTS_SHOWN }, signal), ready || readNames(signal)]);
    ready = true;
    view.update(items);
    const content = items.length > 0 ? view.element : nothing;
    if (content.parentElement !== place) set(place, content);
  };
  return { element: card(t("overview.acts"), place, { side: h("a", { href: "#/audit" }, t("audit.title")) }), read: look };
}
