// The players of a contest, by name: banned with one click and the way back, and corrected in the review.

import { banLines, explained } from "./acts.js";
import { change, get, part, withQuery } from "./api.js";
import { under, walletLink } from "./contest_payments.js";
import { dialog, failed, inline, toast } from "./dialog.js";
import { button, card, chip, empty, h, playerLink } from "./dom.js";
import { grouped } from "./format.js";
import { UNDONE, field, form, reason } from "./form.js";
import { list, table } from "./table.js";
import { t } from "./texts.js";

/** A card; `path` is that of the contest, `decides` whether the caller may act, and `changed` is called after an act. */
export function players(path, contest, signal, decides, changed = () => {}) {
  const { state, divisions, board, attempts_max: attempts } = contest;
  const acting = decides && ["running", "finished"].includes(state);
  const why = acting && reason(t("contest.ban_reason"));
  const act = async (player, what, given) => {
    await change("POST", withQuery(`${path}/players/${part(player)}/${what}`, { reason: given }), {});
    // It is done, whatever becomes of the page.
    await Promise.all([all.reload(), changed()]).catch(failed);
  };
  const said = () => why.querySelector("input").value.trim();
  const ban = async (player) => {
    await act(player, "ban", said());
    const undo = async () => {
      await act(player, "restore", UNDONE);
      toast("ok", t("contest.is_back", { player }));
    };
    toast("ok", t("contest.is_banned", { player }), t("contest.is_banned_text"), { label: t("contest.undo"), run: undo });
  };
  const restore = async (player) => {
    await act(player, "restore", said());
    toast("ok", t("contest.is_back", { player }));
  };
  const boardOf = (division) => divisions?.find((one) => one.division === division)?.board ?? board;
  const correct = async ({ player, division }) => {
    const name = boardOf(division);
    const now = await scoreOf(name, player, signal);
    dialog(t("contest.correct_title", { player }), (box) => {
      const send = async ({ score, reason: given }) => {
        await change("POST", `${path}/players/${part(player)}/correct`, { score, reason: given });
        box.close();
        toast("ok", t("contest.is_corrected", { player }));
        await changed();
      };
      const hint = now ? t("contest.score_now", { score: grouped(now.score), rank: grouped(now.rank) }) : t("contest.score_none");
      const fields = [field({ name: "score", label: t("contest.score"), required: true, hint }), reason(undefined, { required: true })];
      return form(fields, t("contest.correct"), send, { cancel: () => box.close() });
    });
  };
  const acts = (member) => [
    state === "finished" && button(t("contest.correct"), () => correct(member), { kind: "small", failed }),
    " ",
    member.banned
      ? button(t("contest.restore"), () => restore(member.player), { kind: "small", failed })
      : button(t("contest.ban"), () => ban(member.player), { kind: "small danger", failed }),
  ];
  const more = ({ player, division, attempts: used, member }) => under([
    division && t("contest.division", { n: division }),
    attempts !== null && used !== undefined && t("contest.attempts", { used: grouped(used), max: grouped(attempts) }),
    member && walletLink({ member, player }),
  ]);
  const view = table(t("contest.players_of"), [
    { label: t("contest.player"), cell: (member) => [playerLink(member.player), member.banned && [" ", chip(t("contest.banned"), "bad"), banLines(member.ban)], more(member)] },
    ...(acting ? [{ label: t("contest.actions"), kind: "actions", cell: acts }] : []),
  ], { key: ({ player }) => player });
  const explain = explained(signal);
  const load = async (cursor) => {
    const page = await get(`${path}/players`, { limit: 20, cursor }, signal);
    const banned = page.items.filter((one) => one.banned).map(({ player, division }) => ({ player, board: boardOf(division) }));
    const bans = new Map((await explain(banned, !cursor)).map(({ player, ban }) => [player, ban]));
    return { ...page, items: page.items.map((one) => ({ ...one, ban: bans.get(one.player) })) };
  };
  const all = list(view, load, () => empty(t("contest.no_players"), t("contest.no_players_text")));
  all.reload().catch((error) => inline(all.element, error));
  return card(t("contest.players"), h("div", {}, why && h("div", { class: "body" }, why), all.element));
}

/** The present score of a player with its rank, or `null`: banned, or none. */
async function scoreOf(board, player, signal) {
  try {
    return await get(`/v1/leaderboards/${part(board)}/players/${part(player)}`, {}, signal);
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}
