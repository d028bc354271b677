// The ranks of a player on every leaderboard, and the acts on them: a ban that asks nothing, a corrected score, both undone.

import { change, withQuery } from "./api.js";
import { ban, place, restore, actsOn, why } from "./ban.js";
import { link as boardLink } from "./boards.js";
import { link as contestLink } from "./contests.js";
import { dialog, failed, toast } from "./dialog.js";
import { button, card, chip, empty, h, notice, renew } from "./dom.js";
import { grouped, periodName, zoned } from "./format.js";
import { UNDONE, field, form, reason } from "./form.js";
import { may } from "./rights.js";
import { table } from "./table.js";
import { t } from "./texts.js";
import { zoneOf } from "./zones.js";

/** A card for the leaderboards of a player: `update` shows them, of which some are `final` and some have period `rules`, and the contests it has `applied` to; `again` reads them anew. */
export function ranks(player, again) {
  const asked = may("boards:admin") && why();
  const acted = () => {
    // A reason is of one act.
    asked.element.querySelector("input").value = "";
    return again();
  };
  const view = table(t("player.boards_of", { player }), [
    { label: t("boards.board"), cell: (row) => board(player, row) },
    { label: t("board.rank"), kind: "num", cell: ({ rank, total, banned }) => (banned || !rank ? h("span", { class: "soft" }, t(banned ? "player.banned" : "player.only_closed")) : [h("span", { class: "strong" }, grouped(rank)), h("span", { class: "under" }, t("player.of", { n: total }))]) },
    { label: t("board.score"), kind: "num", cell: ({ score, subscore }) => [h("span", { class: "strong" }, grouped(score)), subscore !== undefined && h("span", { class: "under" }, grouped(subscore))] },
    { label: t("player.scored_at"), kind: "wide num", cell: ({ at, zone }) => h("span", { class: "soft" }, zoned(at, zone)) },
    ...(asked ? [{ label: t("board.actions"), kind: "actions", cell: (row) => acts(player, row, asked, acted) }] : []),
  ], { key: ({ board: name, period }) => `${name} ${period}` });
  const [top, more, place] = [h("div", {}), h("div", {}), h("div", {})];
  const update = (items, complete, applied) => {
    view.update(items.flatMap((item) => rowsOf(item)), { flash: false });
    const places = items.map(({ board: name, banned, final }) => ({ board: name, banned, final }));
    const waits = applied.map(({ id, title }) => [id, title]);
    renew(top, [places, waits], () => asked && places.length > 0 && h("div", { class: "body" },
      places.some(({ banned, final }) => !banned && !final) && h("p", { class: "small soft" }, t("player.ban_about")),
      waits.length > 0 && h("p", { class: "small soft" }, t("player.applied_about"), " ", waits.map(([id, title], index) => [index > 0 && ", ", h("a", { href: contestLink(id) }, title ?? id)])),
      h("div", { class: "inline" }, asked.element, everywhere(player, places, asked, acted))));
    renew(more, [complete, items.length], () => !complete && notice("warn", h("p", {}, t("player.first_boards", { n: items.length }))));
    renew(place, items.length > 0, () => (items.length > 0 ? view.element : empty(t("player.no_board"), t("player.no_board_about"))));
  };
  return { element: card(t("boards.list"), h("div", {}, top, more, place)), update };
}

/** A row for each window, in its time zone; a ban without a score, and a score in closed periods alone, have one too. */
function rowsOf({ board: name, banned, final, rules, ranks: of }) {
  const windows = of.length > 0 ? of : [{ period: null }];
  return windows.map((window, at) => ({ ...window, zone: zoneOf(rules, window.period), board: name, banned, final, first: at === 0 }));
}

/** A leaderboard, with the player on it: its page has what else can be done. One that has it in closed periods alone would not find it. */
function board(player, { board: name, period, banned, first }) {
  const part = period && period !== "all_time" && h("span", { class: first ? "under name" : "name" }, periodName(period));
  if (!first) return part;
  return [h("a", { class: "name strong", href: withQuery(boardLink(name), { player: period || banned ? player : null }) }, name), banned && [" ", chip(t("player.banned"), "bad")], part];
}

/** One button for all leaderboards, those of contests too, and one for the way back. */
function everywhere(player, items, asked, again) {
  const places = (banned) => items.filter((one) => one.banned === banned && !one.final).map((one) => place(one.board, player));
  const [open, banned] = [places(false), places(true)];
  return h("div", { class: "row" },
    open.length > 0 && button(t("player.ban_everywhere"), () => ban(player, open, asked.said(), again), { kind: "main danger", failed }),
    banned.length > 0 && button(t("player.restore_everywhere"), () => restore(player, banned, asked.said(), again), { failed }));
}

function acts(player, row, asked, again) {
  const here = [place(row.board, player)];
  const set = row.period && !row.board.startsWith("contest:") && button(t("player.correct"), () => correct(player, row, again), { kind: "small", failed });
  const hide = row.first && !row.final && (row.banned
    ? button(t("player.restore"), () => restore(player, here, asked.said(), again), { kind: "small", failed })
    : button(t("player.ban"), () => ban(player, here, asked.said(), again), { kind: "small danger", failed }));
  return [set, " ", hide];
}

const REASONS = ["twice", "wrong", "bug", "review"];

/** Sets a score, whatever the rule of the leaderboard says; it can be set back. */
function correct(player, { board: name, period, score, subscore }, again) {
  const path = `${place(name, player).path}/correct`;
  dialog(t("player.correct_title", { player }), (box) => {
    const send = async ({ score: now, subscore: second, reason: given }) => {
      const body = { score: now, ...(second && { subscore: second }), period, reason: given };
      const { rank } = await change("POST", path, body);
      box.close();
      const undo = async () => {
        await change("POST", path, { score, ...(subscore !== undefined && { subscore }), period, reason: UNDONE });
        // The button for it goes, whether or not the page can be read anew.
        await again().catch(failed);
      };
      const link = actsOn(player);
      toast("ok", t("player.corrected", { player }), [rank === null ? null : t("player.rank_now", { rank: grouped(rank) }), link && [" ", link]], { label: t("player.undo"), run: undo });
      await again().catch(failed);
    };
    const content = [
      h("p", { class: "soft" }, t("player.correct_about", { board: name, part: periodName(period) })),
      field({ name: "score", label: t("board.score"), required: true, inputmode: "decimal", value: score }),
      subscore !== undefined && field({ name: "subscore", label: t("board.subscore"), required: true, inputmode: "numeric", value: subscore }),
      reason(t("player.correct_reason"), { required: true, frequent: REASONS.map((one) => t(`player.wrong.${one}`)) }),
    ];
    return form(content, t("player.correct"), send, { cancel: () => box.close() });
  });
}
