// The audit log: administrative acts with their actors, filtered by actor, act, subject and days.

import { get, key, withQuery } from "./api.js";
import { ACTS, act, actCell, actorChoices, actorNamed, actorOf, readNames, subjectOf, typedActor } from "./acts.js";
import { inline } from "./dialog.js";
import { empty, h, head, put, set } from "./dom.js";
import { field, form } from "./form.js";
import { when, zoneName } from "./format.js";
import { every } from "./live.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";
import { t } from "./texts.js";

/** Milliseconds between refreshes of the whole log. A filter may read many rows, so its list waits for an act of this page. */
const PAUSE = 5000;
const FILTERS = ["actor", "action", "subject", "subject_prefix", "from", "until"];

export const title = t("audit.title");

export function render(root, parameters, signal) {
  const filter = Object.fromEntries(FILTERS.map((name) => [name, parameters[name] ?? ""]));
  const view = table(t("audit.acts"), [
    { label: t("audit.when", { zone: zoneName() }), kind: "wide fit", cell: ({ at }) => when(at) },
    { label: t("audit.act"), cell: actCell },
    { label: t("audit.on"), kind: "who", cell: subjectOf },
    { label: t("audit.by"), kind: "wide who", cell: ({ actor }) => actorOf(actor) },
  ], { key: ({ id }) => id });
  const isFiltered = Object.values(filter).some(Boolean);
  const nothing = () => empty(t("audit.none"), isFiltered ? t("audit.no_match") : t("audit.none_text"));
  const all = list(view, (cursor) => page(filter, cursor, signal), nothing);
  const place = h("div", {});
  const said = h("div", { "aria-live": "polite" });
  put(root, head(t("audit.title"), { crumb: ["#/settings", t("nav.settings")], about: [t("audit.about"), may("audit:read") && !key() && [" ", t("audit.no_key")]] }),
    h("div", { class: "stack" }, may("audit:read") && h("section", { class: "card" }, h("div", { class: "body" }, place)), h("section", { class: "card" }, said, all.element)));
  const wrong = (error) => inline(said, error);
  const show = async () => {
    await readNames(signal);
    if (!place.firstChild) put(place, filterForm(filter, all));
    await all.reload();
    set(said);
  };
  let shown = false;
  every(PAUSE, signal, async () => {
    if (!shown) await show();
    else if (!isFiltered) await all.refresh().then(() => set(said));
    shown = true;
  }, wrong);
  // Such as one that was taken back by a message.
  if (may("audit:read")) window.addEventListener("tally:changed", () => show().catch(wrong), { signal });
}

/** The filters. They are in the address, so that what is found can be shared. */
function filterForm(filter, all) {
  const content = [
    field({ name: "actor", label: t("audit.by"), value: typedActor(filter.actor), placeholder: t("audit.by_hint"), frequent: actorChoices() }),
    field({ name: "action", label: t("audit.act"), value: filter.action, options: [["", t("audit.any")], ...ACTS.map((name) => [name, act(name)])] }),
    field({ name: "on", label: t("audit.on"), value: filter.subject || filter.subject_prefix, placeholder: t("audit.on_hint") }),
    field({ name: "whole", label: t("audit.whole"), type: "checkbox", value: filter.subject }),
    field({ name: "from", label: t("audit.from"), type: "date", value: filter.from }),
    field({ name: "until", label: t("audit.until"), type: "date", value: filter.until }),
  ];
  const send = async ({ on, whole, actor, ...values }) => {
    const address = withQuery("#/audit", { ...values, actor: await actorNamed(actor), [whole ? "subject" : "subject_prefix"]: on });
    if (address === location.hash) await all.reload();
    else location.hash = address;
  };
  return form(content, t("audit.show"), send, { inline: true });
}

/** The beginning of a day in the reader's zone, `after` days later. */
function instant(text, after = 0) {
  if (!text) return null;
  const [year, month, day] = text.split("-").map(Number);
  return new Date(year, month - 1, day + after).toISOString();
}

/** A page of the acts that pass the filter. */
function page({ from, until, ...filter }, cursor, signal) {
  const query = { ...filter, from: instant(from), until: instant(until, 1) };
  return get("/v1/audit", { ...query, limit: 50, cursor }, signal);
}
