// One leaderboard: its ranks, a player among them, its periods with their prizes, and its actions.

import { change, get, part, withQuery } from "./api.js";
import { bans } from "./board_bans.js";
import { exporter } from "./board_export.js";
import { edit } from "./board_form.js";
import { importer } from "./board_import.js";
import { periods } from "./board_periods.js";
import { search } from "./board_player.js";
import { noPlayers } from "./boards.js";
import { marks } from "./definition.js";
import { confirmTyped, failed, inline, toast } from "./dialog.js";
import { button, h, head, put, set } from "./dom.js";
import { date, periodName } from "./format.js";
import { ranking } from "./ranking.js";
import { may } from "./rights.js";
import { t } from "./texts.js";
import { zoneOf } from "./zones.js";

export const title = ({ board }) => board;

export function render(root, { board: name, player, period }, signal) {
  const top = h("div", {}, head(name, { crumb: ["#/boards", t("boards.list")] }));
  const body = h("div", {});
  put(root, top, body);
  let stop = null;
  // A change of the leaderboard shows the page anew.
  const anew = () => {
    stop?.abort();
    stop = new AbortController();
    return show(top, body, { name, player, period, anew }, AbortSignal.any([signal, stop.signal])).catch((error) => inline(body, error));
  };
  anew();
}

async function show(top, body, { name, player, period, anew }, signal) {
  const path = `/v1/leaderboards/${part(name)}`;
  const board = await get(path, {}, signal);
  // The leaderboard of a contest is changed and deleted with it.
  const own = may("boards:admin") && !name.startsWith("contest:");
  const actions = [
    may("scores:write") && button(t("board.import"), () => importer(board, () => Promise.all([ranks.refresh(), history.refresh()])), { failed }),
    button(t("board.export"), () => exporter(name, parts.value), { failed }),
    own && mayEdit(board) && button(t("board.edit"), async () => edit(await get(path, {}, signal), anew), { failed }),
    own && button(t("board.delete"), async () => remove(await get(path, {}, signal)), { kind: "danger", failed }),
  ].filter(Boolean);
  set(top, head(name, { crumb: ["#/boards", t("boards.list")], marks: marks(board), about: t("board.made", { date: date(board.created_at) }), actions }));

  const chosen = period ?? null;
  const changed = () => Promise.all([ranks.refresh(), history.refresh(), hidden.refresh()]);
  const zone = () => zoneOf(board.periods, parts.value);
  const found = search(name, { period: () => parts.value, zone }, signal, changed);
  const parts = choose(board, (value) => {
    ranks.follow(value);
    found.again();
  });
  const ranks = ranking(name, signal, { nothing: () => noPlayers(name), tool: parts.element, zone });
  const history = periods(board, chosen, signal, (value) => {
    parts.add(value);
    // While the rows are away, the browser would keep the periods below them where they are.
    ranks.follow(value).then(() => ranks.element.scrollIntoView({ block: "start" }));
    found.again();
  });
  const left = h("div", { class: "stack" }, ranks.element, history.element);
  const hidden = bans(name, signal, () => Promise.all([ranks.refresh(), history.refresh(), found.again()]));
  set(body, h("div", { class: "two" }, left, h("div", { class: "stack" }, found.element, hidden.element)));
  if (chosen) {
    parts.add(chosen);
    ranks.follow(chosen);
  }
  if (player) found.find(player).then(() => seen(found.element));
}

/** Rules with prizes are sent whole, so they need the right to make money. */
function mayEdit({ periods: rules }) {
  return may("money:mint") || rules.every(({ prizes }) => !prizes);
}

/** The selector of the window: all time, the open periods, and closed ones that were chosen in the history. */
function choose(board, chosen) {
  const open = board.periods.map(({ name }) => [name, t("board.open_period", { name })]);
  const all = board.all_time ? [["all_time", t("board.all_time")]] : [];
  const options = [...all, ...open].map(([value, text]) => h("option", { value }, text));
  const element = h("select", { "aria-label": t("board.part"), change: () => chosen(element.value) }, options);
  return {
    element,
    get value() {
      return element.value;
    },
    add(value) {
      if (![...element.options].some((option) => option.value === value)) put(element, h("option", { value }, periodName(value)));
      element.value = value;
    },
  };
}

/** Scrolls to what was asked for, if it begins below the window. */
function seen(element) {
  if (element.getBoundingClientRect().top > window.innerHeight) element.scrollIntoView({ block: "start" });
}

async function remove({ board: name, counts, periods: rules }) {
  const paying = rules.filter(({ prizes }) => prizes).map((rule) => rule.name);
  const text = [
    t("board.delete_about"),
    t("board.delete_players", { n: Math.max(0, ...Object.values(counts)) }),
    paying.length > 0 && t("board.delete_prizes", { names: paying.join(", ") }),
  ];
  const sure = await confirmTyped(t("board.delete_title"), text.filter(Boolean).join(" "), name, t("board.delete"), { audited: true });
  if (!sure) return;
  await change("DELETE", withQuery(`/v1/leaderboards/${part(name)}`, sure));
  location.hash = "/boards";
  toast("ok", t("board.deleted", { board: name }));
}
