// A board as a file, best first: made in the browser from the pages of the interface.

import { walk, part } from "./api.js";
import { escaped } from "./csv.js";
import { dialog, inline, toast } from "./dialog.js";
import { button, h, set } from "./dom.js";
import { grouped } from "./format.js";
import { t } from "./texts.js";

/** Without it spreadsheets take UTF-8 for another encoding. */
const BOM = "\ufeff";
const COLUMNS = ["rank", "player", "score", "subscore", "at"];

/** Reads every page of one window of a board and saves a CSV file. */
export function exporter(board, period) {
  const stop = new AbortController();
  const bar = h("progress", { "aria-label": t("board.rows_read") });
  const said = h("p", { class: "soft", "aria-live": "polite" }, t("board.reading"));
  const wrong = h("div", {});
  const box = dialog(t("board.export_title", { board }), (made) => [said, bar, wrong, h("div", { class: "ends" }, button(t("common.cancel"), () => made.close()))]);
  box.addEventListener("close", () => stop.abort());
  run(board, period, stop.signal, (done, total) => {
    bar.max = total || 1;
    bar.value = done;
    set(said, t("board.rows_of", { done: grouped(done), total: grouped(total) }));
  }).then((rows) => {
    box.close();
    toast("ok", t("board.rows_saved", { n: rows }));
  }).catch((error) => inline(wrong, error));
}

async function run(board, period, signal, progress) {
  const parts = [`${BOM}${COLUMNS.join(",")}\r\n`];
  let rows = 0;
  await walk(`/v1/leaderboards/${part(board)}/scores`, { period }, "entries", (entries, page) => {
    parts.push(entries.map((entry) => `${COLUMNS.map((name) => quoted(name === "player" ? escaped(entry[name]) : entry[name])).join(",")}\r\n`).join(""));
    rows += entries.length;
    progress(rows, page.total);
  }, signal);
  save(new Blob(parts, { type: "text/csv" }), `${board.replace(/[^\w.-]+/g, "_")}.csv`);
  return rows;
}

function quoted(value) {
  const text = value === undefined || value === null ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Saves a file. */
export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = h("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}
