// A player on a board: found by its id, with its rank and its neighbours; banned, restored, removed.

import { change, get, part, withQuery } from "./api.js";
import { ban, place, restore, actsOn, why } from "./ban.js";
import { confirmTyped, failed, inline, toast } from "./dialog.js";
import { button, facts, h, notice, playerLink, set } from "./dom.js";
import { grouped, when, zoneName } from "./format.js";
import { UNSAID, field, form } from "./form.js";
import { columns } from "./ranking.js";
import { isAdmin, may } from "./rights.js";
import { table } from "./table.js";
import { t } from "./texts.js";

const AROUND = 3;

/** A card that finds players. `period` and `zone` return the chosen window and its time zone; `changed` is called after a ban, a restore or a removal. */
export function search(board, { period, zone }, signal, changed) {
  const found = h("div", { class: "stack", "aria-live": "polite" });
  let present = null;
  const input = field({ name: "player", label: t("board.player_id"), type: "search", required: true, hint: t("board.player_id_about") });
  const addressOf = (player) => `#${withQuery(`/boards/${part(board)}`, { player, period: period()?.includes(":") ? period() : null })}`;
  const send = ({ player }) => {
    // The address has the player, so it can be shared and gone back to. The page stays as it is.
    const address = addressOf(player);
    if (address !== location.hash) history.pushState(null, "", address);
    return find(player);
  };
  const look = form([input], t("board.find"), send, { inline: true });
  const body = h("div", { class: "body stack" }, look, found);
  const element = h("section", { class: "card" }, h("div", { class: "top" }, h("h2", {}, t("board.find_player"))), body);

  const find = async (player) => {
    present = player;
    input.querySelector("input").value = player;
    const { path } = place(board, player);
    try {
      const query = { period: period() };
      const around = get(`${path}/around`, { ...query, above: AROUND, below: AROUND, expand: "player" }, signal);
      const [rank, others] = await Promise.all([get(path, query, signal), around]);
      if (present === player) set(found, shown(rank, zone()), among(rank, others), acts(player, true));
    } catch (error) {
      if (present !== player) return;
      if (error.code === "player_not_ranked") {
        const banned = await isBanned(player);
        if (present !== player) return;
        const text = [banned ? t("board.banned_here") : t("board.never_here"), banned && [" ", actsOn(player)]];
        set(found, notice("warn", h("p", { class: "strong" }, playerLink(player), " ", t("board.not_ranked")), h("p", { class: "small" }, text)), banned && acts(player, false));
      } else {
        inline(found, error);
      }
    }
  };

  const isBanned = async (player) => {
    const { items } = await get(`/v1/players/${part(player)}/ranks`, { limit: 1000 }, signal);
    return items.some((one) => one.board === board && one.banned);
  };

  const among = ({ player }, { entries }) => {
    const view = table(t("board.around", { player }), columns(), { key: (one) => one.player, mark: (one) => (one.player === player ? "self" : null) });
    view.update(entries);
    return view.element;
  };

  const acts = (player, ranked) => {
    const here = [place(board, player)];
    const again = () => Promise.all([find(player), changed()]);
    const asked = may("boards:admin") && why();
    const remove = async () => {
      // What a key of a game removes is no act of the log.
      const audited = isAdmin();
      const about = [t("board.remove_about"), t(audited ? "board.remove_kept" : "board.remove_unkept")].join(" ");
      const sure = await confirmTyped(t("board.remove_title"), about, player, t("board.remove"), { audited });
      if (!sure) return;
      await change("DELETE", withQuery(here[0].path, audited ? { reason: sure.reason || UNSAID } : {}));
      toast("ok", t("board.removed", { player, board }));
      // What was asked for has no rank any more, and is not what the address leads to.
      present = null;
      if (!signal.aborted) history.replaceState(null, "", addressOf(null));
      set(found);
      await changed();
    };
    const danger = { kind: "small danger", failed };
    const banned = asked && h("div", { class: "inline" }, asked.element, h("div", { class: "row" }, ranked
      ? button(t("player.ban"), () => ban(player, here, asked.said(), again), danger)
      : button(t("player.restore"), () => restore(player, here, asked.said(), again), { kind: "small", failed })));
    const about = (text) => h("p", { class: "small soft" }, text);
    // Apart from the reason of a ban: a removal asks for its own.
    const removes = ranked && may("scores:write") && [about(t("board.remove_or")), h("div", { class: "row" }, button(t("board.remove"), remove, danger))];
    return [banned && ranked && about(t("player.ban_about")), banned, removes];
  };

  return { element, find, again: () => present && find(present) };
}

function shown({ player, rank, score, subscore, percentile, total, at }, zone) {
  return h("div", { class: "stack" },
    h("h3", {}, playerLink(player)),
    facts([
      [t("board.rank"), rank === null ? t("player.banned") : t("board.of", { rank: grouped(rank), total: grouped(total) })],
      [t("board.score"), grouped(score)],
      subscore !== undefined && [t("board.subscore"), grouped(subscore)],
      [t("board.percentile"), h("abbr", { title: t("board.percentile_about", { percentile }) }, `${percentile}`)],
      [t("board.scored_at", { zone: zoneName(zone) }), when(at, zone)],
    ]));
}
