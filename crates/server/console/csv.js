// CSV from any source: rows with the line they begin in. Quotes may hold separators, quotes (doubled) and line breaks.

/** A reader; `push(text, last)` returns the complete rows, as `{line, fields, until}`. */
export function csv() {
  let rest = "";
  let line = 1;

  /** One row from `at`, or null when it is incomplete. */
  const row = (text, at, last) => {
    const fields = [];
    let breaks = 0;
    for (;;) {
      let field = "";
      if (text[at] === '"') {
        at += 1;
        for (;;) {
          const quote = text.indexOf('"', at);
          if (quote < 0 || (quote + 1 === text.length && !last)) return null;
          field += text.slice(at, quote);
          at = quote + 1;
          if (text[at] !== '"') break;
          field += '"';
          at += 1;
        }
        breaks += field.split("\n").length - 1;
      }
      const end = ends(text, at);
      if (end < 0 && !last) return null;
      field += text.slice(at, end < 0 ? text.length : end);
      if (end >= 0 && text[end] === ",") {
        fields.push(field);
        at = end + 1;
        continue;
      }
      fields.push(field.endsWith("\r") ? field.slice(0, -1) : field);
      return { fields, breaks, next: end < 0 ? text.length : end + 1 };
    }
  };

  return {
    push(text, last = false) {
      rest += text;
      const rows = [];
      let at = 0;
      while (at < rest.length) {
        const found = row(rest, at, last);
        if (!found) break;
        const until = line + found.breaks;
        if (found.fields.length > 1 || found.fields[0] !== "") rows.push({ line, fields: found.fields, until });
        line = until + 1;
        at = found.next;
      }
      rest = rest.slice(at);
      return rows;
    },
  };
}

// A text that a spreadsheet would take for a formula, with any number of apostrophes in front of it.
const FORMULA = /^'*[=+\-@\t\r]/;

/** A text for export: a formula gets an apostrophe in front. */
export const escaped = (text) => (FORMULA.test(text) ? `'${text}` : text);

/** The original text of an exported one. */
export const unescaped = (text) => (/^'/.test(text) && FORMULA.test(text) ? text.slice(1) : text);

/** The end of a field: at a separator or the end of its line. */
function ends(text, at) {
  const [comma, line] = [text.indexOf(",", at), text.indexOf("\n", at)];
  if (comma < 0) return line;
  return line < 0 ? comma : Math.min(comma, line);
}
