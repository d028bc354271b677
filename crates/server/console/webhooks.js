// Webhooks: the receivers of events, and a new one.

import { change, get, part } from "./api.js";
import { dialog, failed, inline } from "./dialog.js";
import { button, chip, empty, h, head, put, set } from "./dom.js";
import { date } from "./format.js";
import { field, form, reason } from "./form.js";
import { shownOnce } from "./settings.js";
import { list, table } from "./table.js";

export const title = "Webhooks";

/** The types of events that a webhook can get; of those of money there are many. */
const EVENTS = [
  ["period_closed", "A period of a leaderboard is closed"],
  ["contest", "A contest is made, changed, or enters another state"],
  ["member_closed", "A member is closed"],
  ["period_paid", "The prizes of a period are paid"],
  ["transfer", "A line of a wallet"],
  ["reversal", "A line of a wallet that a reversal writes"],
  ["balance_below", "A line of a wallet that takes its balance below the mark"],
];

const MONEY = ["transfer", "reversal", "balance_below"];

export function render(root, _parameters, signal) {
  const shown = h("div", { "aria-live": "polite" });
  const said = h("div", {});
  const view = table("Webhooks", [
    { label: "Address", cell: ({ id, url, disabled }) => [h("a", { class: "name", href: `#/webhooks/${part(id)}` }, url), disabled && h("span", { class: "under name" }, disabled.why)] },
    { label: "Events", kind: "wide", cell: ({ events }) => events.join(", ") },
    { label: "State", kind: "fit", cell: ({ enabled }) => state(enabled) },
    { label: "Made", kind: "wide fit", cell: ({ created_at: at }) => date(at) },
  ], { key: ({ id }) => id });
  const make = () => button("New webhook", () => create(shown, all), { kind: "main small", icon: "plus", failed });
  const nothing = () => empty("No webhook", "A webhook sends closed periods, contests and movements of money to a service of yours.", make());
  const all = list(view, () => get("/v1/webhooks", {}, signal), nothing);
  const about = "Services that get events, signed and in order. An event that is not taken is sent again for three days; then its webhook is disabled.";
  put(root, head("Webhooks", { crumb: ["#/settings", "Settings"], about, actions: [make()] }), h("section", { class: "card" }, shown, said, all.element));
  all.reload().catch((error) => inline(said, error));
}

/** Whether a webhook gets events. */
export function state(enabled) {
  return enabled ? chip("enabled", "live") : chip("disabled", "warn");
}

function create(shown, all) {
  dialog("New webhook", (box) => {
    const ticks = EVENTS.map(([name, what]) => field({ name, label: name, type: "checkbox", value: !MONEY.includes(name), hint: what }));
    const content = [
      field({ name: "url", label: "Address", required: true, maxlength: 1024, hint: "It begins with https: and a public host." }),
      h("fieldset", {}, h("legend", {}, "Events"), h("div", { class: "fields" }, ticks)),
      field({ name: "marks", label: "Marks of balances", placeholder: "KRW 1000, USD 500", hint: "For balance_below: a currency and an amount in its smallest unit." }),
      reason(),
    ];
    const send = async (values) => {
      const events = EVENTS.map(([name]) => name).filter((name) => values[name]);
      const made = await change("POST", "/v1/webhooks", { url: values.url, events, ...(values.marks && { balance_below: marks(values.marks) }), ...(values.reason && { reason: values.reason }) });
      box.close();
      set(shown, shownOnce("The secret of its signatures", made.secret));
      await all.reload();
    };
    return form(content, "Create", send, { cancel: () => box.close() });
  });
}

/** Marks as they are sent: `KRW 1000, USD 500`. */
function marks(text) {
  return Object.fromEntries(text.split(",").map((one) => one.trim().split(/\s+/)));
}
