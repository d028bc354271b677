// The fields of an amount and its currency. The amount is whole, in the smallest unit, and is shown beside with its decimals.

import { h, set } from "./dom.js";
import { currencies, money } from "./format.js";
import { field } from "./form.js";
import { t } from "./texts.js";

/** A whole number that HTTP takes as an amount, or `null`. */
export function whole(text) {
  return /^[1-9]\d{0,15}$/.test(text) ? BigInt(text) : null;
}

/** An amount with a currency to choose; `changed` is called with both after each change. */
export function amountFields({ currency, changed = () => {} } = {}) {
  const sum = field({ name: "amount", label: t("wallet.amount"), inputmode: "numeric", required: true, placeholder: "1000", hint: t("wallet.unit") });
  const code = field({ name: "currency", label: t("wallet.currency"), value: currency, options: currencies().map((one) => [one, one]) });
  const input = sum.querySelector("input");
  const select = code.querySelector("select");
  const hint = sum.querySelector(".hint");
  const show = () => {
    const units = whole(input.value.trim());
    set(hint, units === null ? t("wallet.unit") : money(units, select.value));
    changed(units, select.value);
  };
  input.addEventListener("input", show);
  select.addEventListener("change", show);
  return { elements: [sum, code], show };
}

/** How amounts change: rows of `[name, before, after]` in one currency. */
export function steps(caption, rows, currency) {
  const row = ([name, before, after]) => h("tr", {},
    h("th", { scope: "row" }, name),
    h("td", { class: "num soft" }, money(before, currency)),
    h("td", { class: "num strong" }, money(after, currency)));
  const heads = [t("wallet.of"), t("wallet.before"), t("wallet.after")];
  const head = h("thead", {}, h("tr", {}, heads.map((text, at) => h("th", { scope: "col", class: at > 0 ? "num" : null }, text))));
  return h("table", {}, h("caption", { class: "unseen" }, caption), head, h("tbody", {}, rows.map(row)));
}
