// A player on a board: found by its id, with its rank and its neighbours; banned, unbanned, removed.

import { change, get, part } from "./api.js";
import { confirmTyped, failed, inline, toast } from "./dialog.js";
import { button, facts, h, notice, playerLink, set } from "./dom.js";
import { grouped, when } from "./format.js";
import { field, form } from "./form.js";
import { columns } from "./ranking.js";
import { may } from "./rights.js";
import { table } from "./table.js";

const AROUND = 3;

/** A card that finds players. `period` returns the chosen window; `changed` is called after a ban, a restore or a removal. */
export function search(board, period, signal, changed) {
  const found = h("div", { class: "stack", "aria-live": "polite" });
  let present = null;
  const input = field({ name: "player", label: "Player id", type: "search", required: true, hint: "As it was submitted, letter by letter." });
  const look = form([input], "Find", ({ player }) => find(player), { inline: true });
  const body = h("div", { class: "body stack" }, look, found);
  const element = h("section", { class: "card" }, h("div", { class: "top" }, h("h2", {}, "Find a player")), body);

  const find = async (player) => {
    present = player;
    input.querySelector("input").value = player;
    const path = `/v1/leaderboards/${part(board)}/players/${part(player)}`;
    try {
      const query = { period: period() };
      const around = get(`${path}/around`, { ...query, above: AROUND, below: AROUND, expand: "player" }, signal);
      const [rank, others] = await Promise.all([get(path, query, signal), around]);
      if (present === player) set(found, shown(rank), among(rank, others), acts(player, true));
    } catch (error) {
      if (present !== player) return;
      if (error.code === "player_not_ranked") {
        const banned = await isBanned(player);
        if (present !== player) return;
        const text = banned ? "It is banned here. Its scores are kept, and it can be restored." : "It never scored here, or was removed.";
        set(found, notice("warn", h("p", { class: "strong" }, playerLink(player), " is not ranked"), h("p", { class: "small" }, text)), banned && acts(player, false));
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
    const view = table(`Ranks around ${player}`, columns().slice(0, 3), { key: (one) => one.player, mark: (one) => (one.player === player ? "self" : null) });
    view.update(entries);
    return view.element;
  };

  const acts = (player, ranked) => {
    const path = `/v1/leaderboards/${part(board)}/players/${part(player)}`;
    const after = (text) => {
      toast("ok", text);
      return Promise.all([find(player), changed()]);
    };
    const restore = async () => {
      await change("POST", `${path}/restore`, {});
      await after(`${player} is restored`);
    };
    const ban = async () => {
      await change("POST", `${path}/ban`, {});
      await Promise.all([find(player), changed()]);
      toast("ok", `${player} is banned`, "It is in no rank of this leaderboard until it is restored.", { label: "Undo", run: restore });
    };
    const remove = async () => {
      const text = "Its record goes from all time and the open periods of this leaderboard, for ever. Closed periods stay.";
      if (!(await confirmTyped("Remove this player?", text, player, "Remove"))) return;
      await change("DELETE", path);
      await after(`${player} is removed`);
    };
    const options = { kind: "small danger", failed };
    return h("div", { class: "row" },
      ranked && may("boards:admin") && button("Ban", ban, options),
      !ranked && may("boards:admin") && button("Restore", restore, { kind: "small", failed }),
      ranked && may("scores:write") && button("Remove", remove, options));
  };

  return { element, find, again: () => present && find(present) };
}

function shown({ player, rank, score, subscore, percentile, total, at }) {
  const share = `better than or equal to ${percentile} %`;
  return h("div", { class: "stack" },
    h("h3", {}, playerLink(player)),
    facts([
      ["Rank", rank === null ? "hidden" : `${grouped(rank)} of ${grouped(total)}`],
      ["Score", grouped(score)],
      subscore !== undefined && ["Subscore", grouped(subscore)],
      ["Percentile", h("abbr", { title: share }, `${percentile}`)],
      ["Since", when(at)],
    ]));
}
