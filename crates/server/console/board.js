// One leaderboard: its ranks, a player among them, its periods, and its actions.

import { change, get, part, withQuery } from "./api.js";
import { marks, noPlayers } from "./boards.js";
import { bans } from "./board_bans.js";
import { exporter } from "./board_export.js";
import { importer } from "./board_import.js";
import { periods } from "./board_periods.js";
import { search } from "./board_player.js";
import { confirmTyped, failed, inline, toast } from "./dialog.js";
import { button, h, head, put, set } from "./dom.js";
import { date } from "./format.js";
import { ranking } from "./ranking.js";
import { may } from "./rights.js";

export const title = ({ board }) => board;

export function render(root, { board: name, player, period }, signal) {
  const top = h("div", {}, head(name, { crumb: ["#/boards", "Leaderboards"] }));
  const body = h("div", {});
  put(root, top, body);
  show(top, body, { name, player, period }, signal).catch((error) => inline(body, error));
}

async function show(top, body, { name, player, period }, signal) {
  const board = await get(`/v1/leaderboards/${part(name)}`, {}, signal);
  const actions = [
    may("scores:write") && button("Import", () => importer(board, () => Promise.all([ranks.refresh(), history.refresh()])), { failed }),
    button("Export", () => exporter(name, parts.value), { failed }),
    may("boards:admin") && button("Delete", () => remove(name), { kind: "danger", failed }),
  ].filter(Boolean);
  set(top, head(name, { crumb: ["#/boards", "Leaderboards"], marks: marks(board), about: `Made on ${date(board.created_at)}`, actions }));

  const chosen = period ?? null;
  const found = search(name, () => parts.value, signal, () => Promise.all([ranks.refresh(), hidden.refresh()]));
  const parts = choose(board, (value) => {
    ranks.follow(value);
    found.again();
  });
  const ranks = ranking(name, signal, { nothing: () => noPlayers(name), tool: parts.element });
  const history = periods(board, signal, (value) => {
    parts.add(value);
    ranks.follow(value);
    found.again();
    ranks.element.scrollIntoView({ block: "nearest" });
  });
  const left = h("div", { class: "stack" }, ranks.element, history.element);
  const hidden = bans(name, signal, () => Promise.all([ranks.refresh(), history.refresh(), found.again()]));
  set(body, h("div", { class: "two" }, left, h("div", { class: "stack" }, found.element, hidden.element)));
  if (chosen) {
    parts.add(chosen);
    ranks.follow(chosen);
  }
  if (player) found.find(player);
}

/** The selector of the window: all time, the open periods, and closed ones that were chosen in the history. */
function choose(board, chosen) {
  const open = board.periods.map(({ name }) => [name, `${name}, the open one`]);
  const all = board.all_time ? [["all_time", "All time"]] : [];
  const options = [...all, ...open].map(([value, text]) => h("option", { value }, text));
  const element = h("select", { "aria-label": "Part of the leaderboard", change: () => chosen(element.value) }, options);
  return {
    element,
    get value() {
      return element.value;
    },
    add(value) {
      if (![...element.options].some((option) => option.value === value)) put(element, h("option", { value }, value));
      element.value = value;
    },
  };
}

async function remove(name) {
  const text = "The leaderboard goes with all its players and periods, at once and for ever.";
  const sure = await confirmTyped("Delete this leaderboard?", text, name, "Delete", { audited: true });
  if (!sure) return;
  await change("DELETE", withQuery(`/v1/leaderboards/${part(name)}`, sure));
  toast("ok", `Leaderboard ${name} is gone`);
  location.hash = "/boards";
}
