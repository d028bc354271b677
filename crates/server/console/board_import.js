// A CSV file into a board, as `tally import scores` does it: chunks with the file's digest, each line once.
//
// An interrupted import resumes with the same file and the same columns; a finished file is not imported again.

import { ask, get, part } from "./api.js";
import { csv, unescaped } from "./csv.js";
import { dialog, inline } from "./dialog.js";
import { button, facts, h, notice, set } from "./dom.js";
import { bytes, grouped } from "./format.js";
import { field, form } from "./form.js";
import { sha256 } from "./sha256.js";
import { table } from "./table.js";
import { t } from "./texts.js";

const CHUNK_ROWS = 2000;
const HEAD_BYTES = 64 * 1024;
const REFUSED_SHOWN = 100;

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const ENDLESS = /^[+-]?inf$/;
const DAY = /^\d{4}-\d\d-\d\d$/;
const INSTANT = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/** Asks for a file and its columns, and imports it; `done` is called at the end. */
export function importer(board, done) {
  const stop = new AbortController();
  const box = dialog(t("board.import_title", { board: board.board }), (made) => {
    const place = h("div", {});
    const choose = field({ name: "file", label: t("board.file"), type: "file", accept: ".csv,text/csv,text/plain", required: true, hint: t("board.file_about") });
    choose.querySelector("input").addEventListener("change", async ({ target }) => {
      try {
        await columns(board, target.files[0], place, { stop: stop.signal, close: () => made.close(), done });
      } catch (error) {
        inline(place, error);
      }
    });
    // The form of the columns has its own way out.
    const ends = h("div", { class: "ends" }, button(t("common.cancel"), () => made.close()));
    const hide = () => (ends.hidden = place.childElementCount > 0);
    new MutationObserver(hide).observe(place, { childList: true });
    return [choose, place, ends];
  }, { wide: true });
  box.addEventListener("close", () => stop.abort());
}

async function columns(board, file, place, { stop, close, done }) {
  const [head] = csv().push(await file.slice(0, HEAD_BYTES).text(), file.size <= HEAD_BYTES);
  if (!head || head.fields.length < 2) throw new Error(t("board.file_columns"));
  const names = head.fields.map((name, at) => [String(at), name.replace(/^\ufeff/, "")]);
  const like = (pattern, otherwise) => names.find(([, name]) => pattern.test(name))?.[0] ?? otherwise;
  const fields = h("div", { class: "fields" },
    field({ name: "player", label: t("board.player"), options: names, value: like(/player|user|name|id/i, "0") }),
    field({ name: "score", label: t("board.score"), options: names, value: like(/score|points|value/i, "1") }),
    field({ name: "at", label: t("board.when"), options: [["", t("board.now")], ...names], value: like(/^(at|date|time|when)/i, ""), hint: t("board.when_about") }));
  const send = async ({ player, score, at }) => {
    const chosen = { player: Number(player), score: Number(score), at: at === "" ? null : Number(at) };
    try {
      await run(board, file, chosen, place, stop);
      done();
    } catch (error) {
      // The form is no longer shown.
      inline(place, error);
    }
  };
  set(place, form([h("p", { class: "soft" }, `${file.name}, ${bytes(file.size)}`), fields], t("board.import"), send, { cancel: close }));
}

async function run(board, file, chosen, place, signal) {
  const bar = h("progress", { max: file.size || 1, value: 0, "aria-label": t("board.file_bytes") });
  const said = h("p", { class: "soft", "aria-live": "polite" }, t("board.file_reading"));
  const stop = button(t("board.stop"), () => place.closest("dialog").close());
  set(place, said, bar, h("div", { class: "ends" }, stop));
  const digest = await digestOf(file, chosen, (read) => (bar.value = read), signal);
  const before = await get(`/v1/imports/${part(board.board)}/${digest}`, {}, signal);
  if (before.finished) {
    set(place, notice("ok", h("p", { class: "strong" }, t("board.imported_before")), h("p", {}, t("board.imported_before_about", { n: before.taken }), before.refused > 0 && ` ${t("board.imported_refused", { n: before.refused })}.`)));
    return;
  }
  const chunks = makeChunks(board.board, digest, before, signal);
  const started = performance.now();
  const reader = csv();
  const decoder = new TextDecoder();
  let read = 0;
  const take = async (text, last) => {
    for (const row of reader.push(text, last)) await chunks.add(row, chosen);
  };
  for await (const piece of pieces(file, signal)) {
    await take(decoder.decode(piece, { stream: true }), false);
    read += piece.length;
    bar.value = read;
    const rate = chunks.rows() / Math.max(0.001, (performance.now() - started) / 1000);
    set(said, t("board.import_rate", { n: chunks.done().taken, rate: Math.round(rate) }));
  }
  await take(decoder.decode(), true);
  await chunks.end();
  report(place, chunks.done(), chunks.refused());
}

/** The digest of the file and of the chosen columns: other columns are another import. */
async function digestOf(file, chosen, progress, signal) {
  const digest = sha256();
  digest.update(new TextEncoder().encode(`console ${JSON.stringify(chosen)}\n`));
  let read = 0;
  for await (const piece of pieces(file, signal)) {
    digest.update(piece);
    read += piece.length;
    progress(read);
  }
  return digest.hex();
}

async function* pieces(file, signal) {
  const reader = file.stream().getReader();
  for (;;) {
    signal.throwIfAborted();
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

/** Collects rows and sends them in chunks. */
function makeChunks(board, digest, before, signal) {
  let done = before;
  let lines = [];
  let until = before.lines;
  let sent = 0;
  let wrong = 0;
  const refused = [];

  const refuse = (line, detail) => {
    wrong += 1;
    if (refused.length < REFUSED_SHOWN) refused.push({ line, detail });
  };
  const send = async (last) => {
    for (;;) {
      const head = JSON.stringify({ board, digest, lines_before: done.lines, lines_after: until, last });
      const body = [head, ...lines.map(({ text }) => text)].join("\n");
      try {
        done = await ask("POST", "/v1/imports", { body, type: "application/x-ndjson", signal });
        break;
      } catch (error) {
        // An unreadable row fails its chunk, so it is left out.
        const bad = new Map((error.fields ?? []).map(({ pointer, detail }) => [Number(/^\/(\d+)\//.exec(pointer)?.[1]) - 1, detail]));
        if (!lines.some((_, at) => bad.has(at))) throw error;
        bad.forEach((detail, at) => refuse(lines[at].line, detail));
        lines = lines.filter((_, at) => !bad.has(at));
      }
    }
    refused.push(...done.refused_rows.slice(0, REFUSED_SHOWN - refused.length));
    sent += lines.length;
    lines = [];
  };

  return {
    async add({ line, fields, until: end }, { player, score, at }) {
      if (end <= done.lines) return;
      until = end;
      if (line === 1) return;
      const number = (fields[score] ?? "").trim();
      const day = at === null ? "" : (fields[at] ?? "").trim();
      if (!fields[player]) return refuse(line, t("board.no_player"));
      if (!NUMBER.test(number) && !ENDLESS.test(number)) return refuse(line, t("board.no_number", { text: number.slice(0, 40) }));
      if (at !== null && !DAY.test(day) && !INSTANT.test(day)) return refuse(line, t("board.no_date", { text: day.slice(0, 40) }));
      const when = at === null ? "" : `,"at":${JSON.stringify(DAY.test(day) ? `${day}T00:00:00Z` : day)}`;
      const text = `{"line":${line},"player":${JSON.stringify(unescaped(fields[player]))},"score":${NUMBER.test(number) ? number : JSON.stringify(number)}${when}}`;
      lines.push({ line, text });
      if (lines.length >= CHUNK_ROWS) await send(false);
    },
    end: () => send(true),
    rows: () => sent,
    done: () => ({ ...done, refused: done.refused + wrong }),
    refused: () => refused,
  };
}

function report(place, done, refused) {
  const view = table(t("board.refused"), [
    { label: t("board.line"), kind: "num fit", cell: ({ line }) => grouped(line) },
    { label: t("board.why"), cell: ({ detail }) => detail },
  ], { key: ({ line }) => line });
  view.update(refused);
  set(place, h("div", { class: "stack" },
    outcome(done),
    facts([[t("board.rows_taken"), grouped(done.taken)], [t("board.rows_refused"), grouped(done.refused)]], "big"),
    refused.length > 0 && h("div", { class: "card" }, view.element),
    h("div", { class: "ends" }, button(t("board.close"), () => place.closest("dialog").close()))));
}

/** What became of the rows, in numbers. */
function outcome({ taken, refused }) {
  const imported = t("board.imported", { n: taken });
  const title = refused > 0 ? `${imported}, ${t("board.imported_refused", { n: refused })}` : imported;
  const text = refused > 0 ? t("board.refused_about") : t("board.imported_about");
  const kind = refused === 0 ? "ok" : taken > 0 ? "warn" : "bad";
  return notice(kind, h("p", { class: "strong" }, title), h("p", {}, text));
}
