// The definition of a leaderboard, which never changes: its words, and its fields in a form.

import { chip, h } from "./dom.js";
import { field } from "./form.js";
import { t } from "./texts.js";

/** The rule of a board in a few words. */
export function rule({ order, update, ranking }) {
  return [t(`boards.update.${update}`), t(`boards.order.${order}`), t(`boards.ranks.${ranking}`)].join(", ");
}

/** The definition as badges. */
export function marks(board) {
  return [
    chip(t(`boards.order.${board.order}`)),
    chip(t(`boards.update.${board.update}`)),
    chip(t(`boards.ranks.${board.ranking}`)),
    chip(t("boards.ties", { how: t(`boards.tie.${board.ties}`) })),
    board.score !== "int64" && chip(t("boards.decimals")),
    board.subscore !== "none" && chip(t(`boards.subscore.${board.subscore}`)),
  ];
}

/** The fields of a definition that never change, each with its values; the first one is the standard. */
const OPTIONS = {
  order: ["descending", "ascending"],
  update: ["best", "latest", "sum"],
  ranking: ["ordinal", "competition", "dense"],
  ties: ["first", "last", "player", "player_reversed"],
  score: ["int64", "float64"],
  subscore: ["none", "descending", "ascending"],
};

/** The fields of a definition, for a new leaderboard and for that of a contest. */
export function definitionFields() {
  const one = ([name, values]) => field({
    name,
    label: t(`boards.field.${name}`),
    hint: t(`boards.hint.${name}`),
    options: values.map((value) => [value, t(`boards.option.${name}_${value}`)]),
  });
  return h("div", { class: "fields" }, Object.entries(OPTIONS).map(one));
}

/** The chosen values, without defaults. */
export function definition(values) {
  const chosen = Object.entries(OPTIONS).filter(([name, [standard]]) => values[name] !== undefined && values[name] !== standard);
  return Object.fromEntries(chosen.map(([name]) => [name, values[name]]));
}
