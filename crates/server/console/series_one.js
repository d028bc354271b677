// One series: when its contests take place, what they are, and those that it made.

import { change, get, part, walk, withQuery } from "./api.js";
import { someChange } from "./contest_form.js";
import { contestList, link } from "./contests.js";
import { factsCard, rules } from "./contest_facts.js";
import { confirmActs, dialog, failed, inline, toast } from "./dialog.js";
import { button, empty, h, head, put, set } from "./dom.js";
import { grouped, seconds, zoned } from "./format.js";
import { form, reason } from "./form.js";
import { every } from "./live.js";
import { may } from "./rights.js";
import { title as allSeries } from "./series.js";
import { says, seriesFields } from "./series_form.js";
import { t } from "./texts.js";

/** Milliseconds between refreshes. */
const PAUSE = 5000;

export const title = ({ series }) => series;

export function render(root, { series: id }, signal) {
  const crumb = ["#/series", allSeries];
  const top = h("div", {}, head(id, { crumb }));
  const wrong = h("div", {});
  const about = h("div", {});
  const path = `/v1/contest-series/${part(id)}`;
  const nothing = () => empty(t("series.no_contest"), t("series.no_contest_text"));
  put(root, top, h("div", { class: "stack" }, wrong, about, contestList(signal, { series: id, nothing, heading: t("series.contests") })));
  let seen = null;
  const show = (series) => {
    const text = JSON.stringify(series);
    if (text === seen) return;
    seen = text;
    const acts = may("contests:manage") ? [
      button(t("contest.edit"), () => edit(series, path, show), { failed }),
      button(t("series.end"), () => end(series, path, signal), { kind: "danger", failed }),
    ] : [];
    set(top, head(series.template.title, { crumb, marks: [h("code", { class: "soft" }, id)], actions: acts }));
    set(about, factsCard(factsOf(series)));
  };
  every(PAUSE, signal, async () => {
    show(await get(path, {}, signal));
    set(wrong);
  }, (error) => inline(wrong, error));
}

function factsOf(series) {
  const { template, time_zone: zone, ahead, last_contest: last, updated_at: changed } = series;
  const at = (name) => [t(`series.fact.${name}`), says(series[name], zone)];
  return [
    at("open"),
    at("start"),
    at("end"),
    [t("series.ahead"), grouped(ahead)],
    [t("series.last"), last ? h("a", { class: "name", href: link(last) }, last) : t("contest.none")],
    [t("contest.fact.capacity"), grouped(template.capacity)],
    ...rules(template),
    [t("contest.fact.review"), template.review_s ? t("contest.after_end", { time: seconds(template.review_s) }) : t("series.at_once")],
    [t("contest.fact.updated_at"), zoned(changed)],
  ];
}

function edit(series, path, done) {
  dialog(t("contest.edit_title", { title: series.template.title }), (box) => {
    const fields = seriesFields(series);
    const send = async (values) => {
      const body = someChange(fields.read(values));
      const changed = await change("PATCH", path, values.reason ? { ...body, reason: values.reason } : body);
      box.close();
      toast("ok", t("series.changed"));
      done(changed);
    };
    return [h("p", { class: "soft" }, t("series.edit_text")), form([...fields.elements, reason()], t("contest.save"), send, { cancel: () => box.close() })];
  }, { wide: true });
}

async function end({ id, template }, path, signal) {
  const [drafts, open, running] = await Promise.all(["draft", "open", "running"].map((state) => number(id, state, signal)));
  const consequences = [
    t("series.ends_making"),
    t("series.ends_others", { drafts, open, running }),
    t("series.ends_kept"),
  ];
  const sure = await confirmActs(t("series.sure_end", { title: template.title }), consequences, t("series.end_now"), { reason: true, danger: true });
  if (!sure) return;
  await change("DELETE", withQuery(path, sure));
  location.hash = "/series";
  toast("ok", t("series.ended", { title: template.title }));
}

/** How many contests of a series are in a state. */
async function number(series, state, signal) {
  let found = 0;
  await walk("/v1/contests", { series, state }, "items", (items) => (found += items.length), signal);
  return found;
}
