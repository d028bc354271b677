// Members made, changed and closed.

import { change, get, part } from "./api.js";
import { confirmTyped, dialog, failed, toast } from "./dialog.js";
import { h } from "./dom.js";
import { money } from "./format.js";
import { UNSAID, field, form, reason } from "./form.js";
import { forget, link } from "./members.js";
import { may } from "./rights.js";
import { t } from "./texts.js";

const secret = { type: "password", autocomplete: "new-password" };

/** A dialog for a new member; `given` has what is known of it, such as its `player`. Without `done` its page is shown afterwards. `about(member)` is said of it. */
export function makeMember(given = {}, done = ({ id }) => (location.hash = link(id).slice(1)), about = () => null) {
  const { player = "", name: known = player, login_id: login = player } = given;
  dialog(t("wallets.new"), (box) => {
    const content = [
      h("p", { class: "small soft" }, t("wallet.needed")),
      h("div", { class: "fields" },
        field({ name: "name", label: t("wallet.name"), required: true, value: known, hint: t("wallet.name_hint") }),
        field({ name: "login_id", label: t("wallet.login"), required: true, value: login, hint: t("wallet.login_hint") })),
      // Above what may be left out, so that a phone shows it.
      h("div", { class: "fields" },
        field({ name: "player", label: t("wallet.player"), value: player, hint: t("wallet.player_hint") }),
        reason()),
      field({ name: "phone_number", label: t("wallet.phone"), type: "tel", hint: t("wallet.phone_hint") }),
      h("div", { class: "fields" },
        field({ name: "password", label: t("wallet.password"), hint: t("wallet.password_hint"), ...secret }),
        field({ name: "pin", label: t("wallet.pin"), inputmode: "numeric", hint: t("wallet.pin_hint"), ...secret })),
    ];
    const send = async (values) => {
      const filled = { ...values, reason: values.reason || UNSAID };
      const body = Object.fromEntries(Object.entries(filled).filter(([, value]) => value !== ""));
      const member = await change("POST", "/v1/members", body);
      box.close();
      // The member is made, and the form that would say what fails from here on is gone. What is said belongs to the page that follows.
      const shown = (async () => done(member))();
      toast("ok", t("wallet.made", member), about(member));
      await shown.catch(failed);
    };
    return form(content, t("wallet.make"), send, { cancel: () => box.close() });
  }, { wide: true });
}

/** A dialog for the changes of a member; `done` is called after them. */
export function editMember(member, done) {
  dialog(t("wallet.edit_of", { name: member.name }), (box) => {
    const without = (name, label) => field({ name, label, type: "checkbox" });
    const content = [
      h("div", { class: "fields" },
        field({ name: "name", label: t("wallet.name"), required: true, value: member.name, hint: t("wallet.name_hint") }),
        field({ name: "player", label: t("wallet.player"), required: true, value: member.player, hint: t("wallet.player_edit") }),
        field({ name: "phone_number", label: t("wallet.phone"), type: "tel", value: member.phone_number ?? "", hint: t("wallet.phone_hint") })),
      h("div", { class: "fields" },
        field({ name: "password", label: t("wallet.password_new"), hint: t("wallet.password_edit"), ...secret }),
        field({ name: "pin", label: t("wallet.pin_new"), inputmode: "numeric", hint: t("wallet.pin_edit"), ...secret })),
      member.has_password && without("password_off", t("wallet.password_off")),
      member.has_pin && without("pin_off", t("wallet.pin_off")),
      reason(),
    ];
    const send = async (values) => {
      const body = changes(member, values);
      const isChanged = Object.keys(body).length > 0;
      if (isChanged) {
        await change("PATCH", `/v1/members/${part(member.id)}`, { ...body, ...(values.reason && { reason: values.reason }) });
        forget();
        toast("ok", t("wallet.changed", { name: values.name }));
      }
      box.close();
      if (isChanged) await done().catch(failed);
    };
    return form(content, t("wallet.save"), send, { cancel: () => box.close() });
  }, { wide: true });
}

/** What a form has changed of a member. An empty phone number takes it away; an empty secret stays as it is. */
function changes(member, { name, player, phone_number: phone, password, pin, password_off: noPassword, pin_off: noPin }) {
  const body = {};
  if (name !== member.name) body.name = name;
  if (player !== member.player) body.player = player;
  if (phone !== (member.phone_number ?? "")) body.phone_number = phone || null;
  if (password || noPassword) body.password = password || null;
  if (pin || noPin) body.pin = pin || null;
  return body;
}

/** Closes a member for good, after what it has is shown; `done` is called afterwards. */
export async function closeMember(member, done) {
  const { items: wallets } = may("money:read") ? await get(`/v1/wallets/${part(member.id)}`) : { items: [] };
  const sums = (name) => wallets.filter((wallet) => wallet[name] !== "0").map((wallet) => money(wallet[name], wallet.currency));
  const [left, held] = [sums("balance"), sums("held")];
  const text = [
    t("wallet.close_text"),
    left.length > 0 && t("wallet.close_money", { sums: left.join(", ") }),
    held.length > 0 && t("wallet.close_held", { sums: held.join(", ") }),
  ].filter(Boolean).join(" ");
  const sure = await confirmTyped(t("wallet.close_ask", { name: member.name }), text, member.login_id, t("wallet.close_go"), { audited: true });
  if (!sure) return;
  // Without the scope the console does not know what is left, and the server refuses a wallet that is not empty.
  const body = { ...(left.length > 0 && { force: true }), ...(sure.reason && { reason: sure.reason }) };
  await change("POST", `/v1/members/${part(member.id)}/close`, body);
  forget();
  toast("ok", t("wallet.closed_now", { name: member.name }));
  await done();
}
