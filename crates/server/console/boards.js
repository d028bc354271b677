// Leaderboards: the list, and making one.

import { get, key } from "./api.js";
import { edit } from "./board_form.js";
import { rule } from "./definition.js";
import { inline } from "./dialog.js";
import { button, empty, h, head, put, set } from "./dom.js";
import { date, grouped } from "./format.js";
import { every } from "./live.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";
import { t } from "./texts.js";

/** Milliseconds between refreshes. */
const PAUSE = 5000;

export const title = t("boards.list");

/** The address of a board's page. */
export function link(board) {
  return `#/boards/${encodeURIComponent(board)}`;
}

export function render(root, _parameters, signal) {
  const view = contestsLast(table(t("boards.list"), [
    { label: t("boards.board"), cell: row },
    { label: t("boards.rule"), kind: "wide", cell: (board) => rule(board) },
    { label: t("boards.players"), kind: "num", cell: ({ counts }) => grouped(Object.values(counts)[0] ?? 0) },
    { label: t("boards.made"), kind: "wide num", cell: ({ created_at: at }) => date(at) },
  ], { key: ({ board }) => board }));
  const make = () => may("boards:admin") && button(t("boards.new"), () => edit(null, (board) => (location.hash = link(board).slice(1))), { kind: "main", icon: "plus" });
  const all = list(view, (cursor) => get("/v1/leaderboards", { limit: 100, cursor }, signal), () =>
    empty(t("boards.none"), t("boards.none_about"), ...[make()].filter(Boolean)));
  const said = h("div", {});
  const place = h("section", { class: "card" }, said, all.element);
  put(root, head(t("boards.list"), { about: t("boards.about"), actions: [make()] }), place);
  every(PAUSE, signal, async () => {
    await all.refresh();
    set(said);
  }, (error) => inline(said, error));
}

function row({ board, counts, periods }) {
  const parts = periods.map(({ name }) => `${name} ${grouped(counts[name] ?? 0)}`).join(" · ");
  return [h("a", { class: "name strong", href: link(board) }, board), parts && h("span", { class: "under" }, parts)];
}

/** The same table with the leaderboards of contests below the others. */
function contestsLast(view) {
  const ofContest = ({ board }) => board.startsWith("contest:");
  const update = (rows, options) => view.update([...rows.filter((row) => !ofContest(row)), ...rows.filter(ofContest)], options);
  return { ...view, update };
}

/** The content for a board without players. */
export function noPlayers(board) {
  // The key itself is shown nowhere.
  const auth = key() ? ` -H "authorization: Bearer $TALLY_KEY"` : "";
  const example = `curl -X POST '${location.origin}/v1/leaderboards/${encodeURIComponent(board)}/scores'${auth} -H 'content-type: application/json' -d '{"player":"ada","score":1200}'`;
  return empty(t("boards.no_players"), t("boards.no_players_about"), h("code", { class: "name" }, example));
}
