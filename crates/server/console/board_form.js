// A leaderboard is made and changed in one form. A change says first what it does, and asks once more.

import { change, get, part, Problem, walk } from "./api.js";
import { changes, keepsFewer } from "./board_changes.js";
import { definition, definitionFields } from "./definition.js";
import { confirmActs, confirmTyped, dialog, toast } from "./dialog.js";
import { button, h, put } from "./dom.js";
import { field, form, reason } from "./form.js";
import { periodRule } from "./period_rule.js";
import { t } from "./texts.js";

const RULES_MAX = 16;

/** Opens the form of a new leaderboard (`null`), or of `board` as the API answers it. `done(name)` is called when it is saved. */
export function edit(board, done) {
  dialog(board ? t("boards.edit_title", { board: board.board }) : t("boards.new"), (box) => {
    const rules = ruleList(board?.periods ?? []);
    const close = () => box.close();
    const saved = (name, text) => {
      close();
      done(name);
      toast("ok", text);
    };
    const send = (values) => placed(rules, async () => {
      const periods = rules.read();
      if (board) return (await save(board, periods)) && saved(board.board, t("boards.saved", { board: board.board }));
      await create(values, periods);
      return saved(values.board, t("boards.created", { board: values.board }));
    });
    const content = board ? [h("p", { class: "soft" }, t("boards.fixed")), rules.element] : [nameField(), definitionFields(), allTime(), rules.element, reason()];
    return form(content, board ? t("boards.save") : t("boards.create"), send, { cancel: close });
  }, { wide: true });
}

function nameField() {
  return field({ name: "board", label: t("boards.field.name"), required: true, maxlength: 128, placeholder: "arcade", hint: t("boards.hint.name") });
}

function allTime() {
  return field({ name: "all_time", label: t("boards.field.all_time"), type: "checkbox", value: true, hint: t("boards.hint.all_time") });
}

/** The rules of the periods, one below the other. */
function ruleList(present) {
  const rules = [];
  const place = h("div", { class: "stack" });
  const more = button(t("periods.add"), () => add(null).focus(), { kind: "small", icon: "plus" });
  const count = () => (more.hidden = rules.length >= RULES_MAX);
  const add = (rule) => {
    const taken = () => rules.map((one) => one.name());
    const made = periodRule(rule, { taken, zone: rules.at(-1)?.zone(), gone: () => {
      rules.splice(rules.indexOf(made), 1);
      made.element.remove();
      count();
      more.focus();
    } });
    rules.push(made);
    put(place, made.element);
    count();
    return made;
  };
  present.forEach(add);
  const element = h("div", { class: "stack" }, h("h3", {}, t("periods.title")), h("p", { class: "small soft" }, t("periods.about")), place, h("div", { class: "row" }, more));
  return { element, read: () => rules.map((one) => one.read()), at: (index) => rules[index] };
}

/** An error of a rule is shown at its field: each rule has names of its own. */
async function placed(rules, send) {
  try {
    await send();
  } catch (error) {
    for (const one of error.fields ?? []) {
      const [, index, name] = /^\/periods\/(\d+)\/(\w+)/.exec(one.pointer ?? "") ?? [];
      const rule = index && rules.at(Number(index));
      if (rule) one.pointer = `/${rule.input(name)}`;
    }
    throw error;
  }
}

async function create(values, periods) {
  if (await exists(values.board)) throw new Problem(0, { detail: t("boards.exists") });
  const body = { ...definition(values), all_time: values.all_time, periods, ...(values.reason && { reason: values.reason }) };
  await change("PUT", `/v1/leaderboards/${part(values.board)}`, body);
}

/** Whether the board exists: a PUT on an existing board would change its periods. */
async function exists(board) {
  try {
    await get(`/v1/leaderboards/${part(board)}`);
    return true;
  } catch (error) {
    if (error.status === 404) return false;
    throw error;
  }
}

/** How many closed periods with scores each rule has. */
async function closedPeriods(board) {
  const closed = new Map();
  await walk(`/v1/leaderboards/${part(board)}/periods`, {}, "items", (items) => {
    for (const { name, state } of items) if (state === "closed") closed.set(name, (closed.get(name) ?? 0) + 1);
  });
  return closed;
}

/** Says what is changed and what that does, and changes it. Resolves to whether it was done. */
async function save({ board, periods: before }, periods) {
  const closed = keepsFewer(before, periods) ? await closedPeriods(board) : new Map();
  const { said, loses } = changes(before, periods, closed);
  if (said.length === 0) throw new Problem(0, { detail: t("boards.unchanged") });
  const ask = t("boards.change_title", { board });
  const sure = loses
    ? await confirmTyped(ask, h("ul", { class: "acts" }, said.map((one) => h("li", {}, one))), board, t("boards.save"), { audited: true })
    : await confirmActs(ask, said, t("boards.save"), { reason: true });
  if (!sure) return false;
  const confirmed = loses ? "?remove_periods=true" : "";
  await change("PUT", `/v1/leaderboards/${part(board)}${confirmed}`, { periods, ...(sure.reason && { reason: sure.reason }) });
  return true;
}
