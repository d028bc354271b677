// The banned players of a board, with the way back. Nothing is shown while there are none.

import { banLines, explained } from "./acts.js";
import { get, part } from "./api.js";
import { place, restore, actsOn } from "./ban.js";
import { confirmActs, failed } from "./dialog.js";
import { button, card, chip, h, playerLink } from "./dom.js";
import { every } from "./live.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";
import { t } from "./texts.js";

/** Milliseconds between refreshes. */
const PAUSE = 5000;

/** A card; `changed` is called after a player is restored. */
export function bans(board, signal, changed) {
  const again = () => Promise.all([all.reload().then(show), changed()]);
  const back = async ({ player }) => {
    const asked = await confirmActs(t("board.sure_restore", { player, board }), [t("player.done_about.restore")], t("player.restore"), { reason: true });
    if (asked) await restore(player, [place(board, player)], asked.reason, again);
  };
  const explain = explained(signal);
  const load = async (cursor) => {
    const page = await get(`/v1/leaderboards/${part(board)}/bans`, { limit: 20, cursor }, signal);
    return { ...page, items: await explain(page.items.map(({ player }) => ({ player, board })), !cursor) };
  };
  const view = table(t("board.bans_of", { board }), [
    { label: t("board.player"), cell: ({ player, ban }) => [playerLink(player), " ", chip(t("player.banned"), "bad"), banLines(ban), h("span", { class: "under" }, actsOn(player))] },
    ...(may("boards:admin") ? [{ label: t("board.actions"), kind: "actions", cell: (one) => button(t("player.restore"), () => back(one), { kind: "small", failed }) }] : []),
  ], { key: ({ player }) => player });
  const all = list(view, load, () => h("div", {}));
  const element = card(t("board.bans"), all.element);
  element.hidden = true;
  const show = () => (element.hidden = all.items().length === 0);
  const refresh = every(PAUSE, signal, async () => {
    await all.refresh();
    show();
  });
  return { element, refresh };
}
