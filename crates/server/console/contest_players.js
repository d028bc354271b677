// The players of a contest, by name: banned with one click and the way back, and corrected in the review.

import { change, get, part, withQuery } from "./api.js";
import { dialog, failed, inline, toast } from "./dialog.js";
import { button, card, chip, empty, h, playerLink } from "./dom.js";
import { field, form, reason } from "./form.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";

/** A card; `path` is that of the contest, `state` its state. */
export function players(path, { state }, signal) {
  const acting = ["running", "finished"].includes(state) && may("contests:manage");
  const why = acting && reason("The audit log keeps it with each ban and restore here.");
  const act = async (player, what, given) => {
    await change("POST", withQuery(`${path}/players/${part(player)}/${what}`, { reason: given }), {});
    await all.reload();
  };
  const said = () => why.querySelector("input").value.trim();
  const ban = async (player) => {
    await act(player, "ban", said());
    const undo = async () => {
      await act(player, "restore", "undone");
      toast("ok", `${player} is back`);
    };
    toast("ok", `${player} is out of ranks and prizes`, "Its score is kept, and it can be restored until the contest is settled.", { label: "Undo", run: undo });
  };
  const restore = async (player) => {
    await act(player, "restore", said());
    toast("ok", `${player} is back`);
  };
  const correct = (player) => dialog(`Correct the score of ${player}`, (box) => {
    const send = async ({ score, reason: given }) => {
      await change("POST", `${path}/players/${part(player)}/correct`, { score, reason: given });
      box.close();
      toast("ok", `The score of ${player} is corrected`);
    };
    const fields = [field({ name: "score", label: "Score", required: true }), field({ name: "reason", label: "Reason", required: true, maxlength: 255 })];
    return form(fields, "Correct", send, { cancel: () => box.close() });
  });
  const acts = ({ player, banned }) => [
    state === "finished" && button("Correct", () => correct(player), { kind: "small", failed }),
    " ",
    banned
      ? button("Restore", () => restore(player), { kind: "small", failed })
      : button("Ban", () => ban(player), { kind: "small danger", failed }),
  ];
  const view = table("Players of the contest", [
    { label: "Player", cell: ({ player, banned }) => [playerLink(player), banned && [" ", chip("banned", "bad")]] },
    ...(acting ? [{ label: "Actions", kind: "actions", cell: acts }] : []),
  ], { key: ({ player }) => player });
  const all = list(view, (cursor) => get(`${path}/players`, { limit: 20, cursor }, signal), () => empty("No players", "No player was enrolled."));
  all.reload().catch((error) => inline(all.element, error));
  return card("Players", h("div", {}, why && h("div", { class: "body" }, why), all.element));
}
