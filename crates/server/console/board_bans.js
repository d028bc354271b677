// The banned players of a board, with the way back. Nothing is shown while there are none.

import { change, get, part } from "./api.js";
import { failed, toast } from "./dialog.js";
import { button, card, chip, h, playerLink } from "./dom.js";
import { every } from "./live.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";

/** Milliseconds between refreshes. */
const PAUSE = 5000;

/** A card; `changed` is called after a player is restored. */
export function bans(board, signal, changed) {
  const path = `/v1/leaderboards/${part(board)}`;
  const restore = async ({ player }) => {
    await change("POST", `${path}/players/${part(player)}/restore`, {});
    toast("ok", `${player} is restored`);
    await Promise.all([all.reload().then(show), changed()]);
  };
  const view = table(`Banned players of ${board}`, [
    { label: "Player", cell: ({ player }) => [playerLink(player), " ", chip("banned", "bad")] },
    ...(may("boards:admin") ? [{ label: "Actions", kind: "actions", cell: (one) => button("Restore", () => restore(one), { kind: "small", failed }) }] : []),
  ], { key: ({ player }) => player });
  const all = list(view, (cursor) => get(`${path}/bans`, { limit: 20, cursor }, signal), () => h("div", {}));
  const element = card("Banned players", all.element);
  element.hidden = true;
  const show = () => (element.hidden = all.items().length === 0);
  const refresh = every(PAUSE, signal, async () => {
    await all.refresh();
    show();
  });
  return { element, refresh };
}
