// The search: every word of a query begins a word of a part of a page. Headings count more than text.

const HITS_MAX = 20;
const EXCERPT_BEFORE = 60;
const EXCERPT_LENGTH = 200;

const words = (query) => query.toLowerCase().split(/\s+/).filter(Boolean);

/** Where a word begins a word of the text behind `from`, or -1. */
function begins(text, word, from = 0) {
  for (let at = text.indexOf(word, from); at >= 0; at = text.indexOf(word, at + 1)) {
    if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1])) return at;
  }
  return -1;
}

/** A place of the text that has a word of the query. */
function excerpt(text, lower, wanted) {
  const places = wanted.map((word) => begins(lower, word)).filter((at) => at >= 0);
  const from = Math.max(0, Math.min(...places, text.length) - EXCERPT_BEFORE);
  const start = !places.length || from === 0 ? 0 : text.indexOf(" ", from) + 1 || from;
  const part = text.slice(start, start + EXCERPT_LENGTH).replace(/\s+/g, " ");
  return `${start > 0 ? "… " : ""}${part}${start + EXCERPT_LENGTH < text.length ? " …" : ""}`;
}

/** The best places of the pages for a query, and how many there are. */
export function find(pages, query) {
  const wanted = words(query);
  const hits = [];
  if (!wanted.length) return { hits, count: 0 };
  for (const [address, title, parts] of pages) {
    for (const [anchor, heading, text] of parts) {
      const [inTitle, inHeading, inText] = [title, heading, text].map((one) => one.toLowerCase());
      let score = 0;
      const fits = wanted.every((word) => {
        const points = (begins(inHeading, word) >= 0 ? 8 : 0) + (begins(inText, word) >= 0 ? 2 : 0);
        // A word of the title alone finds the beginning of the page and not each of its parts.
        const named = begins(inTitle, word) >= 0 ? 3 : 0;
        score += points + named;
        return points > 0 || (named > 0 && wanted.length > 1);
      });
      if (!fits) continue;
      const name = heading === title ? title : `${title} › ${heading}`;
      hits.push({ address, anchor, name, score, excerpt: excerpt(text, inText, wanted) });
    }
  }
  hits.sort((a, b) => b.score - a.score);
  return { hits: hits.slice(0, HITS_MAX), count: hits.length };
}

/** The text in pieces, each with whether the query finds it. */
export function pieces(text, query) {
  const lower = text.toLowerCase();
  const found = [];
  let at = 0;
  while (at < text.length) {
    const places = words(query).map((word) => [begins(lower, word, at), word.length]).filter(([place]) => place >= 0);
    if (!places.length) break;
    const [place, length] = places.reduce((best, one) => (one[0] < best[0] || (one[0] === best[0] && one[1] > best[1]) ? one : best));
    if (place > at) found.push([text.slice(at, place), false]);
    found.push([text.slice(place, place + length), true]);
    at = place + length;
  }
  if (at < text.length) found.push([text.slice(at), false]);
  return found;
}
