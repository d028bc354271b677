// Contests: the list by state, and creating one.

import { change, get, withQuery } from "./api.js";
import { contestFields } from "./contest_form.js";
import { dialog, inline, toast } from "./dialog.js";
import { button, chip, choice, empty, h, head, put, set } from "./dom.js";
import { grouped, money, when, zoneName } from "./format.js";
import { field, form } from "./form.js";
import { every } from "./live.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";
import { named, t } from "./texts.js";

/** Milliseconds between refreshes. */
const PAUSE = 5000;

export const title = t("nav.contests");

/** Numbers that follow a proposed id that is taken. */
const NUMBERS = [2, 3, 4, 5];

/** The states with the kind of their badge. */
const STATES = { draft: "", open: "live", running: "ok", finished: "warn", settled: "", cancelled: "bad" };

/** The badge of a state. */
export function stateChip(state) {
  return chip(named(`contest_state.${state}`), STATES[state]);
}

/** The address of a contest's page. */
export function link(contest) {
  return `#/contests/${encodeURIComponent(contest)}`;
}

/** The address of a series' page. */
export function seriesLink(series) {
  return `#/series/${encodeURIComponent(series)}`;
}

export function render(root, { state = "", q = "" }, signal) {
  const make = () => may("contests:manage") && button(t("contests.new"), create, { kind: "main", icon: "plus" });
  const nothing = () => empty(t("contests.none"), t("contests.none_text"), make());
  const toSeries = h("a", { class: "button", href: "#/series" }, t("contests.to_series"));
  put(root, head(title, { about: t("contests.about"), actions: [toSeries, make()].filter(Boolean) }), contestList(signal, { state, q, nothing }));
}

/** The contests, or those of one series, with a choice of the state; with a heading it is one card among others. `q` is a search. */
export function contestList(signal, { state = "", q = "", series, nothing, heading }) {
  let present = state;
  const view = table(title, [
    { label: t("contests.contest"), cell: (contest) => name(contest, series) },
    { label: t("contests.state_head"), kind: "fit", cell: (contest) => stateChip(contest.state) },
    { label: t("contests.players"), kind: "num", cell: players },
    { label: t("contests.fee"), kind: "wide num", cell: ({ entry_fee: fee }) => (fee ? money(fee.amount, fee.currency) : h("span", { class: "soft" }, t("contests.no_fee"))) },
    { label: t("contests.next", { zone: zoneName() }), kind: "wide", cell: next },
  ], { key: ({ id }) => id });
  const none = () => {
    if (q) return empty(t("contests.none_found", { text: q }), t("contests.none_found_text"));
    return present === "" ? nothing() : empty(t("contests.none_in", { state: t(`contest_state.${present}`) }), t("contests.none_in_text"));
  };
  const all = list(view, (cursor) => get("/v1/contests", { state: present, series, prefix: q, limit: 50, cursor }, signal), none);
  const said = h("div", {});
  const failed = (error) => inline(said, error);
  const choices = [["", t("contests.all")], ...Object.keys(STATES).map((one) => [one, t(`contest_state.${one}`)])];
  const states = choice(t("contests.state_head"), choices, present, (chosen) => {
    present = chosen;
    all.reload().catch(failed);
  });
  let found = false;
  every(PAUSE, signal, async () => {
    // A search may read many contests, so it is done once.
    if (!found) await all.refresh();
    found = q !== "";
    set(said);
  }, failed);
  const top = heading && h("div", { class: "top" }, h("h2", {}, heading), states);
  const card = h("section", { class: "card" }, top, said, all.element);
  return heading ? card : h("div", { class: "stack" }, search(q, () => present), states, card);
}

/** The search. It is in the address, so that what is found can be shared. */
function search(q, state) {
  const input = field({ name: "q", label: t("contests.find"), type: "search", value: q, hint: t("contests.find_hint") });
  const send = ({ q: text }) => (location.hash = withQuery("/contests", { state: state(), q: text }));
  return h("section", { class: "card" }, h("div", { class: "body" }, form([input], t("contests.find_go"), send, { inline: true })));
}

/** The cell of a contest: its title leads to its page. Below are the id, unless that is the title, and `more`. */
export function nameOf({ id, title: text }, more) {
  const below = [text && text !== id && id, more].filter(Boolean);
  const line = below.length > 0 && h("span", { class: "under name" }, below[0], below.length > 1 && [" · ", below[1]]);
  return [h("a", { class: "name strong", href: link(id) }, text ?? id), line];
}

function name(contest, of) {
  const { series } = contest;
  return nameOf(contest, series && series !== of && h("a", { href: seriesLink(series) }, t("contests.of_series", { series })));
}

function players({ state, counts, capacity }) {
  if (state === "open") return [grouped(counts.accepted), h("span", { class: "under" }, t("contests.waiting", { n: counts.pending ?? "–" }))];
  return [grouped(counts.players), state === "draft" && h("span", { class: "under" }, t("contests.up_to", { n: capacity }))];
}

/** The next step of the scheduler. */
function next({ state, opens_at: opens, starts_at: starts, ends_at: ends }) {
  const at = { draft: opens && t("contests.opens", { at: when(opens) }), open: starts && t("contests.starts", { at: when(starts) }), running: ends && t("contests.ends", { at: when(ends) }) }[state];
  return h("span", { class: "soft" }, at || "–");
}

/** Makes a contest. An id that was proposed, not typed, gets a number if there is a contest of it; after some, the server makes one. */
async function make(id, proposed, body) {
  const ids = proposed && id ? [id, ...NUMBERS.map((number) => `${id}-${number}`), null] : [id];
  for (const [at, one] of ids.entries()) {
    try {
      return await change("POST", "/v1/contests", { ...(one && { id: one }), ...body });
    } catch (error) {
      if (error.code !== "contest_exists" || at === ids.length - 1) throw error;
    }
  }
  return null;
}

function create() {
  dialog(t("contests.new"), (box) => {
    const id = field({ name: "id", label: t("contests.field.id"), placeholder: "friday-cup", hint: t("contests.hint.id") });
    const fields = contestFields(null, { id });
    const send = async (values) => {
      const made = await make(values.id, fields.proposed(), fields.read(values));
      box.close();
      location.hash = link(made.id).slice(1);
      toast("ok", t("contests.made", { title: made.title }), t("contests.made_text"));
    };
    return form(fields.elements, t("contests.create"), send, { cancel: () => box.close() });
  }, { wide: true });
}
