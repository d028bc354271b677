// The ranks of a player on every leaderboard, and the acts on them: a corrected score, a ban that asks nothing and can be undone.

import { change, part, withQuery } from "./api.js";
import { link as boardLink } from "./boards.js";
import { dialog, failed, toast } from "./dialog.js";
import { button, card, chip, empty, h, notice } from "./dom.js";
import { count, grouped, when } from "./format.js";
import { field, form, reason } from "./form.js";
import { may } from "./rights.js";
import { table } from "./table.js";

/** A card for the leaderboards of a player; `again` reads them anew. */
export function ranks(player, items, complete, again) {
  const why = may("boards:admin") && items.length > 0 && reason("The audit log keeps it with each ban and restore here.");
  const said = () => why?.querySelector("input").value.trim() ?? "";
  const acts = may("boards:admin") ? actsOf(player, said, again) : null;
  const rows = items.flatMap((item) => rowsOf(item));
  const view = table(`Leaderboards of ${player}`, [
    { label: "Leaderboard", cell: board },
    { label: "Rank", kind: "num", cell: ({ rank, total, banned }) => (banned ? h("span", { class: "soft" }, "hidden") : [h("span", { class: "strong" }, grouped(rank)), h("span", { class: "under" }, `of ${grouped(total)}`)]) },
    { label: "Score", kind: "num", cell: ({ score, subscore }) => [h("span", { class: "strong" }, grouped(score)), subscore !== undefined && h("span", { class: "under" }, grouped(subscore))] },
    { label: "Since", kind: "wide num", cell: ({ at }) => h("span", { class: "soft" }, when(at)) },
    ...(acts ? [{ label: "Actions", kind: "actions", cell: (row) => acts.buttons(row) }] : []),
  ], { key: ({ board: name, period }) => `${name} ${period}` });
  view.update(rows, { flash: false });
  const more = !complete && notice("warn", h("p", {}, `The first ${count(items.length, "leaderboard")} are shown: the player is on more.`));
  const none = empty("On no leaderboard", "Neither a score nor a ban of this player is there.");
  const top = why && h("div", { class: "body stack" }, why, acts.everywhere(items));
  return card("Leaderboards", h("div", {}, more, rows.length > 0 ? view.element : none, top));
}

/** A row for each window; a ban without a score has one too. */
function rowsOf({ board: name, banned, ranks: of }) {
  const windows = of.length > 0 ? of : [{ period: null }];
  return windows.map((window, at) => ({ ...window, board: name, banned, first: at === 0 }));
}

function board({ board: name, period, banned, first }) {
  const part = period && period !== "all_time" && h("span", { class: first ? "under name" : "name" }, period);
  if (!first) return part;
  return [h("a", { class: "name strong", href: boardLink(name) }, name), banned && [" ", chip("banned", "bad")], part];
}

function actsOf(player, said, again) {
  const path = (name) => `/v1/leaderboards/${part(name)}/players/${part(player)}`;
  /** Bans on these leaderboards, or restores; returns those that it was done on. One that refuses does not stop the others. */
  const each = async (names, what, why) => {
    const done = [];
    const not = [];
    for (const name of names) {
      try {
        await change("POST", withQuery(`${path(name)}/${what}`, { reason: why }), {});
        done.push(name);
      } catch (error) {
        if (names.length === 1) throw error;
        not.push(`${name}: ${error.message}`);
      }
    }
    if (not.length > 0) toast("bad", `${player} is not ${what === "ban" ? "banned" : "restored"} on ${count(not.length, "leaderboard")}`, not.join("; "));
    // An act may be undone from another page.
    await again().catch((error) => failed(error));
    return done;
  };
  const ban = async (names) => {
    const done = await each(names, "ban", said());
    if (done.length === 0) return;
    const undo = () => each(done, "restore", "undone");
    toast("ok", `${player} is banned on ${done.length === 1 ? done[0] : count(done.length, "leaderboard")}`, "It is in no rank until it is restored. Its scores are kept.", { label: "Undo", run: undo });
  };
  const restore = async (names) => {
    const done = await each(names, "restore", said());
    if (done.length > 0) toast("ok", `${player} is restored on ${done.length === 1 ? done[0] : count(done.length, "leaderboard")}`);
  };
  const small = { kind: "small", failed };
  const buttons = (row) => {
    const set = row.period && !row.board.startsWith("contest:") && button("Correct", () => correct(player, row, path, again), small);
    const hide = row.first && (row.banned ? button("Restore", () => restore([row.board]), small) : button("Ban", () => ban([row.board]), { kind: "small danger", failed }));
    return [set, " ", hide];
  };
  const everywhere = (items) => {
    const shown = items.filter((one) => !one.banned).map((one) => one.board);
    const banned = items.filter((one) => one.banned).map((one) => one.board);
    return h("div", { class: "row" },
      shown.length > 1 && button("Ban everywhere", () => ban(shown), { kind: "danger", failed }),
      banned.length > 1 && button("Restore everywhere", () => restore(banned), { failed }));
  };
  return { buttons, everywhere };
}

/** Sets a score, whatever the rule of the leaderboard says. */
function correct(player, { board: name, period, score, subscore }, path, again) {
  dialog(`Correct the score of ${player}`, (box) => {
    const send = async ({ score: now, subscore: second, reason: why }) => {
      const body = { score: now, ...(second && { subscore: second }), period, reason: why };
      const { rank } = await change("POST", `${path(name)}/correct`, body);
      box.close();
      toast("ok", `The score of ${player} is corrected`, rank === null ? null : `Its rank is ${grouped(rank)}.`);
      await again();
    };
    const content = [
      h("p", { class: "soft" }, `On ${name}, ${period === "all_time" ? "all time" : period}. It is set as it is given, also if it is worse; other windows keep their scores.`),
      field({ name: "score", label: "Score", required: true, inputmode: "decimal", value: score }),
      subscore !== undefined && field({ name: "subscore", label: "Subscore", required: true, inputmode: "numeric", value: subscore }),
      field({ name: "reason", label: "Reason", required: true, maxlength: 255, hint: "The audit log keeps it, with both scores." }),
    ];
    return form(content, "Correct", send, { cancel: () => box.close() });
  });
}
