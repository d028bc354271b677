// One webhook: its state, its secret, and the last delivery of each topic.

import { change, get, part, withQuery } from "./api.js";
import { confirmTyped, failed, inline, toast } from "./dialog.js";
import { button, card, chip, empty, facts, h, head, put, set } from "./dom.js";
import { when, zoned, zoneName } from "./format.js";
import { shownOnce } from "./settings.js";
import { list, table } from "./table.js";
import { named, t } from "./texts.js";
import { state } from "./webhooks.js";

export const title = t("webhook.title");

export function render(root, { webhook: id }, signal) {
  const path = `/v1/webhooks/${part(id)}`;
  const [shown, place, said] = [h("div", { "aria-live": "polite" }), h("div", {}), h("div", {})];
  const view = table(t("webhook.deliveries"), [
    { label: t("webhook.topic"), cell: ({ topic, number, error }) => [h("span", { class: "strong name" }, topic), h("span", { class: "under name" }, t("webhook.event", { number: String(number) })), error && h("span", { class: "under name" }, error)] },
    { label: t("webhooks.state"), kind: "fit", cell: ({ state: now, status }) => [chip(named(`delivery.${now}`), now === "failing" ? "bad" : "live"), status && h("span", { class: "under" }, String(status))] },
    { label: t("webhook.last_attempt", { zone: zoneName() }), kind: "wide", cell: ({ at, attempts, next_attempt_at: next }) => [when(at), attempts && h("span", { class: "under" }, t("webhook.attempts", { n: attempts, next: when(next) }))] },
    { label: t("keys.actions"), kind: "actions", cell: (one) => button(t("webhook.send_again"), () => send(one), { kind: "small", failed }) },
  ], { key: ({ topic }) => topic });
  const failing = h("input", { type: "checkbox", id: "failing" });
  const nothing = () => empty(t("webhook.no_delivery"), failing.checked ? t("webhook.none_fails") : t("webhook.none_yet"));
  const all = list(view, (cursor) => get(`${path}/deliveries`, { state: failing.checked ? "failing" : null, limit: 50, cursor }, signal), nothing);
  failing.addEventListener("input", () => all.reload().catch(failed));

  const look = async () => {
    const hook = await get(path, {}, signal);
    const turn = button(hook.enabled ? t("webhook.disable") : t("webhook.enable"), () => act("PATCH", path, { enabled: !hook.enabled }), { failed });
    const pairs = [[t("webhooks.state"), h("span", {}, state(hook.enabled))], [t("webhooks.events"), hook.events.join(", ")], Object.keys(hook.balance_below).length > 0 && [t("webhooks.marks"), Object.entries(hook.balance_below).map((one) => one.join(" ")).join(", ")], [t("webhooks.made"), zoned(hook.created_at)], hook.disabled && [t("webhooks.disabled"), `${zoned(hook.disabled.at)}: ${hook.disabled.reason}`]];
    set(place, head(t("webhook.title"), { crumb: ["#/webhooks", t("webhooks.title")], about: hook.url, actions: [turn, button(t("webhook.new_secret"), rotate, { failed }), button(t("webhook.delete"), () => remove(hook), { kind: "danger", failed })] }), h("section", { class: "card" }, shown, h("div", { class: "body" }, facts(pairs))));
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
    set(shown, shownOnce(t("webhook.secret"), made.secret));
  };
  const remove = async ({ url }) => {
    const sure = await confirmTyped(t("webhook.delete_sure"), t("webhook.delete_text"), url, t("webhook.delete"), { audited: true });
    if (!sure) return;
    await change("DELETE", withQuery(path, { reason: sure.reason }));
    location.hash = "#/webhooks";
    toast("ok", t("webhook.deleted"));
  };
  const send = async (one) => {
    const { state, error } = await change("POST", `${path}/deliveries/${part(one.id)}/send`);
    const taken = state === "delivered";
    toast(taken ? "ok" : "bad", taken ? t("webhook.taken") : t("webhook.not_taken"), error);
    await reload();
  };

  const tick = h("span", { class: "tick small" }, failing, h("label", { for: "failing" }, t("webhook.only_failing")));
  put(root, h("div", { class: "stack" }, place, card(t("webhook.deliveries"), h("div", {}, said, all.element), { side: h("div", { class: "row" }, tick, button(t("webhook.look_again"), reload, { kind: "small", failed })) })));
  reload().catch((error) => inline(said, error));
}
