// One webhook: its state, its secret, and the last delivery of each topic.

import { change, get, part, withQuery } from "./api.js";
import { confirmTyped, failed, inline, toast } from "./dialog.js";
import { button, card, chip, empty, facts, h, head, put, set } from "./dom.js";
import { when } from "./format.js";
import { shownOnce } from "./settings.js";
import { list, table } from "./table.js";
import { state } from "./webhooks.js";

export const title = "Webhook";

export function render(root, { webhook: id }, signal) {
  const path = `/v1/webhooks/${part(id)}`;
  const [shown, place, said] = [h("div", { "aria-live": "polite" }), h("div", {}), h("div", {})];
  const view = table("Deliveries", [
    { label: "Topic", cell: ({ topic, number, error }) => [h("span", { class: "strong name" }, topic), h("span", { class: "under name" }, `event ${number}`), error && h("span", { class: "under name" }, error)] },
    { label: "State", kind: "fit", cell: ({ state: now, status }) => [chip(now, now === "failing" ? "bad" : "live"), status && h("span", { class: "under" }, String(status))] },
    { label: "Last attempt", kind: "wide", cell: ({ at, attempts, next_attempt_at: next }) => [when(at), attempts && h("span", { class: "under" }, `${attempts} failed, next ${when(next)}`)] },
    { label: "Actions", kind: "actions", cell: (one) => button("Send again", () => send(one), { kind: "small", failed }) },
  ], { key: ({ topic }) => topic });
  const failing = h("input", { type: "checkbox", id: "failing" });
  const nothing = () => empty("No delivery", failing.checked ? "Every event was taken at its last attempt." : "Events that are stored from now on appear here.");
  const all = list(view, (cursor) => page(`${path}/deliveries`, { state: failing.checked ? "failing" : null, cursor }, signal), nothing);
  failing.addEventListener("input", () => all.reload().catch(failed));

  const look = async () => {
    const hook = await get(path, {}, signal);
    const turn = button(hook.enabled ? "Disable" : "Enable", () => act("PATCH", path, { enabled: !hook.enabled }), { failed });
    const pairs = [["State", h("span", {}, state(hook.enabled))], ["Events", hook.events.join(", ")], Object.keys(hook.balance_below).length > 0 && ["Marks of balances", Object.entries(hook.balance_below).map((one) => one.join(" ")).join(", ")], ["Made", when(hook.created_at)], hook.disabled && ["Disabled", `${when(hook.disabled.at)}: ${hook.disabled.why}`]];
    set(place, head("Webhook", { crumb: ["#/webhooks", "Webhooks"], about: hook.url, actions: [turn, button("New secret", rotate, { failed }), button("Delete", () => remove(hook), { kind: "danger", failed })] }), h("section", { class: "card" }, shown, h("div", { class: "body" }, facts(pairs))));
  };
  const reload = async () => {
    await look();
    await all.reload();
  };
  const act = async (method, target, body) => {
    await change(method, target, body);
    await reload();
  };
  const rotate = async () => {
    const made = await change("POST", `${path}/secret`);
    set(shown, shownOnce("The new secret; the one before signs for 24 hours, too", made.secret));
  };
  const remove = async ({ url }) => {
    const sure = await confirmTyped("Delete this webhook?", "It gets nothing any more.", url, "Delete", { audited: true });
    if (!sure) return;
    await change("DELETE", withQuery(path, { reason: sure.reason }));
    toast("ok", "The webhook is deleted");
    location.hash = "#/webhooks";
  };
  const send = async (one) => {
    const { delivered, error } = await change("POST", `${path}/deliveries/${part(one.id)}/send`);
    toast(delivered ? "ok" : "bad", delivered ? "The receiver has taken it" : "The receiver has not taken it", error);
    await reload();
  };

  const tick = h("span", { class: "tick small" }, failing, h("label", { for: "failing" }, "Only what fails"));
  put(root, h("div", { class: "stack" }, place, card("Deliveries", h("div", {}, said, all.element), { side: h("div", { class: "row" }, tick, button("Look again", reload, { kind: "small", failed })) })));
  reload().catch((error) => inline(said, error));
}

/** The next page with items: the rows read for a page are bounded, so a page may be empty. */
async function page(path, query, signal) {
  let answer;
  let { cursor } = query;
  do {
    answer = await get(path, { ...query, limit: 50, cursor }, signal);
    cursor = answer.next_cursor;
  } while (answer.items.length === 0 && cursor);
  return answer;
}
