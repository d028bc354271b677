// More or less money for a member, with its reason, after the balance that it leaves is shown.

import { amountFields, steps } from "./amount.js";
import { change, get, part } from "./api.js";
import { failed, toast } from "./dialog.js";
import { h, notice, set } from "./dom.js";
import { money } from "./format.js";
import { UNDONE, field, form, reason } from "./form.js";
import { may } from "./rights.js";
import { t } from "./texts.js";

/** Transfers whose reasons are offered again. */
const READ = 100;
const OFFERED = 8;

/** What is in a wallet that a member does not have yet. */
const NOTHING = { balance: "0", held: "0", available: "0" };

/** Whether the caller may adjust a wallet at all. */
export function mayAdjust() {
  return may("money:mint") || may("money:move");
}

/** A form; `now()` returns the wallets of the member, `changed` is called with the currency of an adjustment. */
export function adjust(member, now, changed) {
  const ways = [may("money:mint") && ["deposits", t("wallet.give")], may("money:move") && ["withdrawals", t("wallet.take")]].filter(Boolean);
  const way = field({ name: "way", label: t("wallet.adjust"), options: ways });
  const select = way.querySelector("select");
  const after = h("div", { "aria-live": "polite" });
  let typed = [null, null];
  const show = () => set(after, consequences(now(), select.value === "deposits", ...typed));
  const sums = amountFields({ currency: now()[0]?.currency, changed: (...both) => {
    typed = both;
    show();
  } });
  const ends = field({ name: "expires_at", label: t("wallet.until"), type: "datetime-local", hint: t("wallet.until_hint") });
  const turn = () => {
    ends.hidden = select.value !== "deposits";
    show();
  };
  select.addEventListener("change", turn);
  const more = h("details", {}, h("summary", { class: "small" }, t("wallet.more_fields")), h("div", { class: "body fields" },
    field({ name: "reference", label: t("wallet.reference"), hint: t("wallet.reference_hint") }), ends));
  const content = [h("div", { class: "fields" }, way, sums.elements), whyField(), more, after];
  const again = async (currency) => {
    await changed(currency);
    show();
  };
  const go = async (values, filled) => {
    await send(member, values, again);
    // The direction and the currency stay. The rest is of one adjustment.
    filled.querySelectorAll("input").forEach((input) => (input.value = ""));
    sums.show();
    // It is done: what the page cannot read anew is no reason to send it again.
    await again(values.currency).catch(failed);
  };
  sums.show();
  turn();
  return form(content, t("wallet.adjust_go"), go);
}

/** The balance before and after, and what is missing. */
function consequences(wallets, gives, units, currency) {
  if (units === null || !may("money:read")) return null;
  const wallet = wallets.find((one) => one.currency === currency) ?? NOTHING;
  const moved = gives ? units : -units;
  const [balance, available] = [BigInt(wallet.balance), BigInt(wallet.available)];
  if (available + moved < 0n) return notice("warn", t("wallet.too_little", { available: money(available, currency) }));
  return steps(t("wallet.before_after"), [
    [t("wallet.balance"), balance, balance + moved],
    wallet.held !== "0" && [t("wallet.available"), available, available + moved],
  ].filter(Boolean), currency);
}

async function send(member, { way, amount, currency, reason: why, reference, expires_at: ends }, again) {
  const gives = way === "deposits";
  const until = gives && ends && new Date(ends).toISOString();
  const body = { [gives ? "to" : "from"]: member.id, amount, currency, reason: why, ...(reference && { reference }), ...(until && { expires_at: until }) };
  const { after, group_id: id } = await change("POST", `/v1/${way}`, body);
  const undo = may("money:move") && {
    label: t("wallet.undo"),
    run: async () => {
      await change("POST", `/v1/ledger/transactions/${part(id)}/reverse`, { reason: UNDONE });
      toast("ok", t("wallet.taken_back", { sum: money(amount, currency) }));
      // The button for it goes, whether or not the page can be read anew.
      await again(currency).catch(failed);
    },
  };
  const said = gives ? t("wallet.given", { sum: money(amount, currency) }) : t("wallet.taken", { sum: money(amount, currency) });
  toast("ok", said, t("wallet.balance_is", { balance: money(after, currency) }), undo || undefined);
}

/** The field of the reason, with those that were given often, and some to begin with. */
function whyField() {
  const first = [t("wallet.reason_outage"), t("wallet.reason_gift"), t("wallet.reason_purchase"), t("wallet.reason_mistake")];
  const why = reason(t("wallet.unseen"), { frequent: first, required: true });
  const input = why.querySelector("input");
  const read = async () => {
    const { items } = await get("/v1/ledger/transactions", { limit: READ });
    const all = new Set([...frequent(items), ...first]);
    set(why.querySelector("datalist"), [...all].map((text) => h("option", { value: text })));
  };
  // They are read when they are about to be needed.
  if (may("money:read")) input.addEventListener("focus", () => read().catch(() => {}), { once: true });
  return why;
}

function frequent(items) {
  const times = new Map();
  for (const { reason: why } of items) if (why) times.set(why, (times.get(why) ?? 0) + 1);
  return [...times].sort(([, one], [, other]) => other - one).slice(0, OFFERED).map(([why]) => why);
}
