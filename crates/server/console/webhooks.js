// Webhooks: the receivers of events, and a new one.

import { change, get, part } from "./api.js";
import { dialog, failed, inline } from "./dialog.js";
import { button, chip, empty, h, head, put, set } from "./dom.js";
import { date } from "./format.js";
import { field, form, reason } from "./form.js";
import { shownOnce } from "./settings.js";
import { list, table } from "./table.js";
import { t } from "./texts.js";

export const title = t("webhooks.title");

/** The types of events that a webhook can get; of those of money there are many. */
const EVENTS = ["period_closed", "contest", "member_closed", "period_paid", "transfer", "reversal", "balance_below"];

const MONEY = ["transfer", "reversal", "balance_below"];

export function render(root, _parameters, signal) {
  const shown = h("div", { "aria-live": "polite" });
  const said = h("div", {});
  const view = table(t("webhooks.title"), [
    { label: t("webhooks.address"), cell: ({ id, url, disabled }) => [h("a", { class: "name", href: `#/webhooks/${part(id)}` }, url), disabled && h("span", { class: "under name" }, disabled.reason)] },
    { label: t("webhooks.events"), kind: "wide", cell: ({ events }) => events.join(", ") },
    { label: t("webhooks.state"), kind: "fit", cell: ({ enabled }) => state(enabled) },
    { label: t("webhooks.made"), kind: "wide fit", cell: ({ created_at: at }) => date(at) },
  ], { key: ({ id }) => id });
  const make = () => button(t("webhooks.new"), () => create(shown, all), { kind: "main small", icon: "plus", failed });
  const nothing = () => empty(t("webhooks.none"), t("webhooks.none_text"), make());
  const all = list(view, () => get("/v1/webhooks", {}, signal), nothing);
  put(root, head(t("webhooks.title"), { crumb: ["#/settings", t("nav.settings")], about: t("webhooks.about"), actions: [make()] }), h("section", { class: "card" }, shown, said, all.element));
  all.reload().catch((error) => inline(said, error));
}

/** Whether a webhook gets events. */
export function state(enabled) {
  return enabled ? chip(t("webhooks.enabled"), "live") : chip(t("webhooks.disabled"), "warn");
}

function create(shown, all) {
  dialog(t("webhooks.new"), (box) => {
    const ticks = EVENTS.map((name) => field({ name, label: name, type: "checkbox", value: !MONEY.includes(name), hint: t(`event.${name}`) }));
    const content = [
      field({ name: "url", label: t("webhooks.address"), required: true, maxlength: 1024, hint: t("webhooks.address_hint") }),
      h("fieldset", {}, h("legend", {}, t("webhooks.events")), h("div", { class: "fields" }, ticks)),
      field({ name: "marks", label: t("webhooks.marks"), placeholder: "KRW 1000, USD 500", hint: t("webhooks.marks_hint") }),
      reason(),
    ];
    const send = async (values) => {
      const events = EVENTS.filter((name) => values[name]);
      const made = await change("POST", "/v1/webhooks", { url: values.url, events, ...(values.marks && { balance_below: marks(values.marks) }), ...(values.reason && { reason: values.reason }) });
      box.close();
      set(shown, shownOnce(t("webhooks.secret"), made.secret));
      await all.reload();
    };
    return form(content, t("webhooks.create"), send, { cancel: () => box.close() });
  });
}

/** Marks as they are sent: `KRW 1000, USD 500`. */
function marks(text) {
  return Object.fromEntries(text.split(",").map((one) => one.trim().split(/\s+/)));
}
