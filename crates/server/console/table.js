// Tables: made once, then updated row by row, so that focus stays and changes can be seen.

import { somePage } from "./api.js";
import { failed } from "./dialog.js";
import { button, empty, h, put, renew, set } from "./dom.js";
import { t } from "./texts.js";

/**
  * A table. `columns` are `{label, kind, cell}`: `cell` returns the content of its cell for a row; `kind` is one of `num`, `fit`,
 * `wide` (left out on a phone), `who` (room for a name), `actions`, `check`. `key` returns the identity of a row.
 */
export function table(caption, columns, { key = (row) => JSON.stringify(row), mark } = {}) {
  const headings = columns.map(({ label, kind, heading }) => {
    const hidden = kind?.includes("actions");
    const inside = heading ?? (hidden ? h("span", { class: "unseen" }, label) : label);
    return h("th", { scope: "col", class: kind ?? null }, inside);
  });
  const body = h("tbody");
  const made = h("table", {}, h("caption", { class: "unseen" }, caption), h("thead", {}, h("tr", {}, headings)), body);
  let shown = new Map();

  const update = (rows, { flash = true } = {}) => {
    const next = new Map();
    const first = shown.size === 0;
    const elements = rows.map((row) => {
      const name = String(key(row));
      const text = JSON.stringify(row);
      const before = shown.get(name);
      if (before?.text === text) {
        before.element.classList.remove("changed");
        next.set(name, before);
        return before.element;
      }
      const cells = columns.map(({ kind, cell }) => put(h("td", { class: kind ?? null }), cell(row)));
      const marks = [mark?.(row), flash && !first && "changed"].filter(Boolean).join(" ");
      const element = h("tr", { class: marks || null }, cells);
      next.set(name, { text, element });
      return element;
    });
    shown = next;
    const stays = elements.length === body.children.length && elements.every((one, at) => body.children[at] === one);
    if (!stays) body.replaceChildren(...elements);
  };
  const clear = () => {
    shown = new Map();
    body.replaceChildren();
  };
  return { element: made, update, clear };
}

/**
  * A paged list: a table, the content for an empty list (`nothing()`), and a button for more. `load(cursor)` returns
  * `{items, next_cursor}`. A search ends after some empty pages, says how far it came, and goes on by its button.
 */
export function list(view, load, nothing) {
  const place = h("div", {});
  const foot = h("div", { class: "foot", hidden: true });
  const element = h("div", {}, place, foot);
  let items = [];
  let searched = 0;

  const on = (next, label) => button(label, () => go(next, false), { kind: "small", failed });
  let bare = null;
  const show = (next, anew) => {
    view.update(items, { flash: false });
    // The end of the list, or how far an empty search came.
    const state = items.length > 0 ? null : JSON.stringify(next ?? null);
    if (state === null && view.element.parentElement !== place) set(place, view.element);
    else if (state !== null && (anew || state !== bare)) set(place, next ? empty(t("common.none_so_far"), t("common.none_so_far_text", { n: searched }), on(next, t("common.search_further"))) : nothing());
    bare = state;
    foot.hidden = items.length === 0 || (!next && items.length < 20);
    renew(foot, [items.length, next], () => [h("span", {}, t("common.shown", { n: items.length })), next && on(next, t("common.more"))]);
  };
  let paged = false;
  let [asked, shown] = [0, 0];
  const go = async (cursor, anew) => {
    asked += 1;
    const turn = asked;
    // No refresh begins while a later page is on its way.
    const before = paged;
    paged = Boolean(cursor);
    const answer = await somePage(load, cursor).catch((error) => {
      paged = before;
      throw error;
    });
    // An older answer may come after a newer one.
    if (turn < shown) return;
    shown = turn;
    items = cursor ? items.concat(answer.items) : answer.items;
    searched = answer.searched + (cursor ? searched : 0);
    show(answer.next_cursor, anew || Boolean(cursor));
  };
  // A refresh leaves a list alone once later pages are loaded.
  const refresh = async () => paged || go(null, false);
  return { element, reload: () => go(null, true), refresh, items: () => items };
}
