// Prizes as rows of a form: from place, to place, amount; or shares of the fees in per cent. The total is shown below.

import { button, h, icon, put, set } from "./dom.js";
import { currencies, money, sumsOf } from "./format.js";
import { t } from "./texts.js";

/**
 * A group of rows under a label. `value` has prizes as the API answers them; with `shares` they have per cent in place of amounts.
 * `read()` returns them as the API takes them, and throws what is wrong.
 */
export function prizeRows({ label, hint, value = [], shares = false }) {
  const rows = [];
  const codes = [...new Set([...currencies(), ...value.map(({ currency }) => currency).filter(Boolean)])];
  const many = !shares && codes.length > 1;
  const names = [t("contests.row_from"), t("contests.row_to"), shares ? t("contests.row_share") : t("contests.row_amount"), t("contests.row_currency")];
  const body = h("tbody");
  const heading = (name) => h("th", { scope: "col" }, name);
  const view = h("table", {},
    h("caption", { class: "unseen" }, label),
    h("thead", {}, h("tr", {}, names.slice(0, 3).map(heading), h("th", { scope: "col" }, h("span", { class: "unseen" }, t("contests.row_remove_head"))))), body);
  const sum = h("p", { class: "small", "aria-live": "polite" });

  const show = () => {
    view.hidden = rows.length === 0;
    rows.forEach((row, at) => row.name(at + 1));
    set(sum, total(rows.map((row) => row.text()), shares));
  };
  const add = (one = {}) => {
    const made = rowOf({ codes, many, names, shares }, one, show, () => {
      rows.splice(rows.indexOf(made), 1);
      made.element.remove();
      show();
      more.focus();
    });
    rows.push(made);
    put(body, made.element);
    show();
    return made;
  };
  const more = button(t(shares ? "contests.row_add_share" : "contests.row_add"), () => {
    const before = rows.at(-1)?.text();
    add({ from: before ? Number(before.to || before.from) + 1 : 1, currency: before?.currency }).focus();
  }, { kind: "small", icon: "plus" });
  value.forEach(add);
  show();
  const about = hint && h("p", { class: "hint small soft" }, hint);
  const element = h("fieldset", {}, h("legend", {}, label), about, view, h("div", { class: "row spread" }, more, sum));
  return { element, read: () => rows.map((row, at) => read(row, at + 1, shares)).filter(Boolean) };
}

/** One row with its inputs. They have no names, so that a form does not read them by itself. */
function rowOf({ codes, many, names, shares }, one, changed, gone) {
  const number = (value) => h("input", { inputmode: "numeric", autocomplete: "off", value: value ?? "", input: changed });
  const amount = shares ? one.share && String(one.share / 100) : one.amount;
  const inputs = [number(one.from), number(one.to === one.from ? "" : one.to), number(amount)];
  const currency = one.currency ?? codes[0];
  if (many) inputs.push(h("select", { change: changed }, codes.map((code) => h("option", { value: code, selected: code === currency }, code))));
  const remove = h("button", { type: "button", class: "plain small", click: gone }, icon("close"));
  const [from, to, ...rest] = inputs;
  const element = h("tr", {}, h("td", {}, from), h("td", {}, to), h("td", {}, h("div", { class: "with" }, rest)), h("td", { class: "fit" }, remove));
  return {
    element,
    inputs,
    focus: () => inputs[inputs[0].value === "" ? 0 : 2].focus(),
    name: (n) => {
      // An empty last place is the first one.
      inputs[1].placeholder = inputs[0].value;
      inputs.forEach((input, at) => input.setAttribute("aria-label", t(shares ? "contests.row_input_share" : "contests.row_input", { name: names[at], n })));
      remove.setAttribute("aria-label", t(shares ? "contests.row_remove_share" : "contests.row_remove", { n }));
    },
    text: () => {
      const [from, to, given] = inputs.map((input) => input.value.replace(/[\s\u202f]/g, ""));
      return { from, to, amount: given.replace(/%$/, ""), currency: many ? inputs[3].value : currency };
    },
  };
}

const COUNT = /^[1-9]\d{0,9}$/;
const AMOUNT = /^[1-9]\d{0,15}$/;
const PERCENT = /^\d{1,3}(\.\d{1,2})?$/;

/** Per cent in parts of ten thousand. */
const parts = (percent) => Math.round(Number(percent) * 100);

/** A row as the API takes it; an empty one is left out. A place needs its amount: without one it would pay nothing. */
function read(row, n, shares) {
  const { from, to, amount, currency } = row.text();
  if (amount === "" && from === "" && to === "") return null;
  const wrong = (at, key) => {
    row.inputs[at].setAttribute("aria-invalid", "true");
    row.inputs[at].focus();
    throw new Error(t(key, { n }));
  };
  if (!COUNT.test(from)) wrong(0, "contests.row_wrong_from");
  if (to !== "" && (!COUNT.test(to) || Number(to) < Number(from))) wrong(1, "contests.row_wrong_to");
  if (!(shares ? PERCENT : AMOUNT).test(amount)) wrong(2, shares ? "contests.row_wrong_share" : "contests.row_wrong_amount");
  const places = { from: Number(from), to: Number(to || from) };
  return shares ? { ...places, share: parts(amount) } : { ...places, currency, amount };
}

/** What all rows are together, as far as they can be read. */
function total(rows, shares) {
  const places = ({ from, to }) => BigInt(to || from) - BigInt(from) + 1n;
  const legible = ({ from, to, amount }) => COUNT.test(from) && (to === "" || COUNT.test(to)) && (shares ? PERCENT : AMOUNT).test(amount);
  const counted = rows.filter((row) => legible(row) && places(row) > 0n);
  const sums = sumsOf(counted, (row) => places(row) * BigInt(shares ? parts(row.amount) : row.amount));
  if (sums.size === 0) return null;
  const all = [...sums].map(([currency, sum]) => (shares ? `${Number(sum) / 100} %` : money(sum, currency)));
  return t("contests.row_total", { total: all.join(" + ") });
}
