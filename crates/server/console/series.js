// Series, which make contests that recur: the list, and making one.

import { change, get } from "./api.js";
import { link, seriesLink, title as contests } from "./contests.js";
import { dialog, inline, toast } from "./dialog.js";
import { button, empty, h, head, put, set } from "./dom.js";
import { grouped } from "./format.js";
import { field, form } from "./form.js";
import { every } from "./live.js";
import { may } from "./rights.js";
import { says, seriesFields } from "./series_form.js";
import { list, table } from "./table.js";
import { t } from "./texts.js";

/** Milliseconds between refreshes. */
const PAUSE = 5000;

export const title = t("series.title");

export function render(root, _parameters, signal) {
  const view = table(title, [
    { label: t("series.one"), cell: ({ id, template }) => [h("a", { class: "name strong", href: seriesLink(id) }, template.title), h("span", { class: "under name" }, id)] },
    { label: t("series.starts"), cell: ({ start, time_zone: zone }) => says(start, zone) },
    { label: t("series.ahead"), kind: "wide num", cell: ({ ahead }) => grouped(ahead) },
    { label: t("series.last"), kind: "wide", cell: ({ last_contest: last }) => (last ? h("a", { class: "name", href: link(last) }, last) : "–") },
  ], { key: ({ id }) => id });
  const make = () => may("contests:manage") && button(t("series.new"), create, { kind: "main", icon: "plus" });
  const all = list(view, (cursor) => get("/v1/contest-series", { limit: 50, cursor }, signal), () => empty(t("series.none"), t("series.none_text"), make()));
  const said = h("div", {});
  put(root, head(title, { crumb: ["#/contests", contests], about: t("series.about"), actions: [make()].filter(Boolean) }), h("section", { class: "card" }, said, all.element));
  every(PAUSE, signal, async () => {
    await all.refresh();
    set(said);
  }, (error) => inline(said, error));
}

function create() {
  dialog(t("series.new"), (box) => {
    const id = field({ name: "id", label: t("contests.field.id"), placeholder: "daily-cup", hint: t("series.hint.id") });
    const fields = seriesFields(null, id);
    const send = async (values) => {
      const made = await change("POST", "/v1/contest-series", { ...(values.id && { id: values.id }), ...fields.read(values) });
      box.close();
      location.hash = seriesLink(made.id).slice(1);
      toast("ok", t("series.made", { title: made.template.title }));
    };
    return form(fields.elements, t("contests.create"), send, { cancel: () => box.close() });
  }, { wide: true });
}
