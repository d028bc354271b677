// Holds: listed, made, and ended by a capture or a void after their consequences in numbers.

import { amountFields, steps, whole } from "./amount.js";
import { change, get, part } from "./api.js";
import { confirmActs, dialog, failed, inline, toast } from "./dialog.js";
import { button, chip, empty, h, notice, set } from "./dom.js";
import { money, when } from "./format.js";
import { field, form, reason } from "./form.js";
import { findMember, memberLink, playerOf } from "./members.js";
import { entered, feeOf, withContests } from "./player_contests.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";
import { named, t } from "./texts.js";

const PAGE = 5;
const STATES = { open: "live", captured: "ok", voided: "", expired: "warn" };

/**
  * The list of holds, newest first: of a member, or of all. `query` returns `{member, state}`. `changed` is called once a hold has
  * ended, and reads the list again; without it the list does. Holds name the contests whose fees they are; `player` is that of the member.
  */
export function holds(query, signal, changed, player) {
  const ended = () => (changed ?? reload)();
  const ofOne = Boolean(query().member);
  const acts = (hold) => hold.state === "open" && [
    button(t("wallet.capture"), () => end(hold, ended, true), { kind: "small", failed }), " ",
    button(t("wallet.void"), () => end(hold, ended, false), { kind: "small", failed }),
  ];
  const about = ({ created_at: at, reason: why, contest }) => [h("span", { class: "under" }, when(at)), why && h("span", { class: "under name" }, `“${why}”`), contest && h("span", { class: "under name" }, feeOf(contest))];
  const columns = [
    ofOne
      ? { label: t("wallet.hold"), cell: (hold) => [chip(named(`wallet.hold.${hold.state}`), STATES[hold.state]), about(hold)] }
      : { label: t("wallets.member"), cell: (hold) => [memberLink(hold.member), about(hold)] },
    { label: t("wallet.amount"), kind: "num", cell: sumOf },
    may("money:move") && { label: t("wallet.acts"), kind: "actions", cell: acts },
  ].filter(Boolean);
  const view = table(t("wallet.holds"), columns, { key: ({ id }) => id });
  const nothing = () => empty(t("wallet.no_hold"), t("wallet.no_hold_text"));
  const load = async (cursor) => {
    const page = await get("/v1/holds", { limit: PAGE, cursor, ...query() }, signal);
    return { ...page, items: withContests(page.items, await contestsOf(page.items, player, signal)) };
  };
  const all = list(view, load, nothing);
  const said = h("div", {});
  const reload = () => all.reload().catch((error) => inline(said, error));
  reload();
  return { element: h("div", {}, said, all.element), reload };
}

/** The contests that the members of holds have applied to: of `player`, or of each. */
async function contestsOf(items, player, signal) {
  if (items.length === 0) return [];
  const players = player ? [player] : await Promise.all([...new Set(items.map(({ member }) => member))].map(playerOf));
  const all = await Promise.all(players.filter(Boolean).map((one) => entered(one, signal)));
  return all.flatMap(({ found }) => [...found.values()]);
}

function sumOf({ state, amount, captured, currency, expires_at: ends }) {
  return [
    h("span", { class: "strong" }, money(amount, currency)),
    captured && captured !== amount && h("span", { class: "under" }, t("wallet.captured", { sum: money(captured, currency) })),
    state === "open" && ends && h("span", { class: "under" }, t("wallet.ends", { at: when(ends) })),
  ];
}

/** Asks for the end of a hold with what it does to the wallet, and ends it. */
async function end(hold, ended, captures) {
  const wallet = may("money:read") ? await walletOf(hold) : null;
  if (captures) capture(hold, wallet, ended);
  else await release(hold, wallet, ended);
}

async function release(hold, wallet, ended) {
  const title = t("wallet.void_ask", { sum: money(hold.amount, hold.currency) });
  const sure = await confirmActs(title, effects(hold, wallet, 0n), t("wallet.void"), { reason: { kept: t("wallet.unseen") } });
  if (!sure) return;
  await change("POST", `/v1/holds/${part(hold.id)}/void`, sure.reason ? { reason: sure.reason } : {});
  toast("ok", t("wallet.voided_now"));
  await ended();
}

/** The dialog of a capture: the whole hold or a part, to the house or to a member. */
function capture(hold, wallet, ended) {
  dialog(t("wallet.capture_ask", { sum: money(hold.amount, hold.currency) }), (box) => {
    const send = async (values) => {
      await change("POST", `/v1/holds/${part(hold.id)}/capture`, await captured(hold, values));
      box.close();
      toast("ok", t("wallet.captured_now"));
      await ended().catch(failed);
    };
    return form([...captureFields(hold, wallet), reason(t("wallet.unseen"))], t("wallet.capture"), send, { cancel: () => box.close() });
  });
}

async function captured({ amount: all }, { amount, to, reason: why }) {
  const body = { ...(amount !== all && { amount }), ...(why && { reason: why }) };
  if (!to) return body;
  const member = await findMember(to);
  if (!member) throw new Error(t("wallet.no_receiver", { what: to }));
  return { ...body, to: member.id };
}

async function walletOf({ member, currency }) {
  const { items: wallets } = await get(`/v1/wallets/${part(member)}`);
  return wallets.find((one) => one.currency === currency) ?? null;
}

function captureFields(hold, wallet) {
  const sum = field({ name: "amount", label: t("wallet.amount"), inputmode: "numeric", required: true, value: hold.amount, hint: t("wallet.capture_hint", { most: money(hold.amount, hold.currency) }) });
  const to = field({ name: "to", label: t("wallet.capture_to"), hint: t("wallet.capture_to_hint") });
  const place = h("div", { "aria-live": "polite" });
  const input = sum.querySelector("input");
  const show = () => {
    const units = whole(input.value.trim());
    if (units === null || units > BigInt(hold.amount)) set(place, notice("warn", t("wallet.capture_most", { most: money(hold.amount, hold.currency) })));
    else set(place, effects(hold, wallet, units).map((one) => (typeof one === "string" ? h("p", { class: "small" }, one) : one)));
  };
  input.addEventListener("input", show);
  show();
  return [h("div", { class: "fields" }, sum, to), place];
}

/** What an end that captures `taken` does: sentences, and the wallet before and after. */
function effects(hold, wallet, taken) {
  const { currency } = hold;
  const held = BigInt(hold.amount);
  const rest = held - taken;
  const by = (name, value, units) => [name, value, BigInt(value) + units];
  return [
    taken > 0n && t("wallet.leaves", { sum: money(taken, currency) }),
    rest > 0n && t("wallet.is_free", { sum: money(rest, currency) }),
    wallet && steps(t("wallet.before_after"), [
      by(t("wallet.balance"), wallet.balance, -taken),
      by(t("wallet.held"), wallet.held, -held),
      by(t("wallet.available"), wallet.available, rest),
    ], currency),
  ];
}

/** A dialog for a new hold; `done` is called once it is made. */
export function makeHold(member, wallets, done) {
  dialog(t("wallet.hold_of", { name: member.name }), (box) => {
    const ends = field({ name: "expires_at", label: t("wallet.ends_at"), type: "datetime-local", hint: t("wallet.ends_hint") });
    const send = async ({ amount, currency, expires_at: at, reason: why }) => {
      await change("POST", "/v1/holds", { member: member.id, amount, currency, ...(at && { expires_at: new Date(at).toISOString() }), ...(why && { reason: why }) });
      box.close();
      toast("ok", t("wallet.held_now", { sum: money(amount, currency) }));
      await done().catch(failed);
    };
    const content = [h("p", { class: "soft" }, t("wallet.hold_text")), h("div", { class: "fields" }, amountFields({ currency: wallets[0]?.currency }).elements), ends, reason(t("wallet.unseen"))];
    return form(content, t("wallet.hold_go"), send, { cancel: () => box.close() });
  });
}
