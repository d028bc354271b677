// A chart of recent readings: one or two lines over time, their present values, and a cross-hair for earlier ones.

import { h, set, svg } from "./dom.js";
import { percent, time } from "./format.js";
import { t } from "./texts.js";

const WIDTH = 300;
const HEIGHT = 90;
/** Room above the highest value, so that a line never touches the top. */
const AIR = 1.12;
/** The time shown, in milliseconds: the available history, from one minute to five. */
const SPANS = [60, 120, 300].map((seconds) => seconds * 1000);

/**
  * A chart. `lines` are `{label, of, other}`: `of` returns the value of a point, or null. `shown` formats a value.
  * `now` returns the words beside the heading from the last point. A share ends at the whole.
 */
export function chart(title, lines, shown, now) {
  const limit = shown === percent ? 1 : Infinity;
  const heading = h("h2", {}, title);
  const values = h("div", { class: "now" });
  const top = h("span", { class: "top-value", "aria-hidden": "true" });
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
  const from = h("span", {});
  const to = h("span", {}, t("chart.now"));
  const plot = h("div", { class: "plot" }, drawing, top);
  const element = h("section", { class: "card chart" }, heading, values, plot, h("div", { class: "span", "aria-hidden": "true" }, from, to));
  let points = [];
  let crossed = null;

  const span = (end) => SPANS.find((one) => end - (points[0]?.at ?? end) <= one) ?? SPANS.at(-1);
  const x = (at, end) => WIDTH - ((end - at) / span(end)) * WIDTH;

  const draw = () => {
    const end = points.at(-1)?.at ?? Date.now();
    const seen = points.filter((point) => end - point.at <= span(end));
    const finite = seen.flatMap((point) => (point.gap ? [] : lines.map((line) => line.of(point)))).filter(Number.isFinite);
    const most = Math.min(limit, round(Math.max(...finite, 0) * AIR));
    const y = (value) => HEIGHT - (Math.min(value, most) / (most || 1)) * HEIGHT;
    const grid = [0, 0.5, 1].map((share) => {
      const at = HEIGHT * share;
      return svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: at, y2: at });
    });
    const drawn = lines.flatMap((line) => {
      return pieces(seen, line.of).flatMap((piece) => {
        const path = piece.map(([at, value], index) => `${index ? "L" : "M"}${x(at, end).toFixed(2)} ${y(value).toFixed(2)}`).join("");
        const [first, last] = [x(piece[0][0], end), x(piece.at(-1)[0], end)];
        const area = !line.other && svg("path", { class: "area", d: `${path}L${last.toFixed(2)} ${HEIGHT}L${first.toFixed(2)} ${HEIGHT}Z` });
        return [area, svg("path", { class: line.other ? "line other" : "line", d: path })];
      });
    });
    const shownPoint = crossed ?? points.at(-1);
    const cross = crossed && svg("line", { class: "cross", x1: x(crossed.at, end), x2: x(crossed.at, end), y1: 0, y2: HEIGHT });
    set(drawing, grid, drawn, cross);
    set(top, finite.length > 0 && most > 0 ? shown(most) : "");
    set(from, crossed ? time(crossed.at) : t("chart.ago", { minutes: span(end) / 60000 }));
    const said = shownPoint && !shownPoint.gap ? now(shownPoint) : [];
    set(values, said.length > 0 ? said : h("span", {}, t("chart.one_reading")));
    drawing.setAttribute("aria-label", t("chart.words", { title, now: values.textContent, most: shown(finite.length ? Math.max(...finite) : null) }));
  };

  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    const end = points.at(-1)?.at ?? 0;
    const at = end - (1 - (event.clientX - box.left) / box.width) * span(end);
    const near = points.filter((point) => !point.gap && end - point.at <= span(end));
    crossed = near.reduce((best, point) => (!best || Math.abs(point.at - at) < Math.abs(best.at - at) ? point : best), null);
    draw();
  });
  plot.addEventListener("pointerleave", () => {
    crossed = null;
    draw();
  });

  const update = (all) => {
    points = all;
    draw();
  };
  update([]);
  return { element, update };
}

/** The parts of a line without a gap, as `[at, value]`. */
function pieces(points, of) {
  const all = [[]];
  for (const point of points) {
    const value = point.gap ? null : of(point);
    if (Number.isFinite(value)) all.at(-1).push([point.at, value]);
    else if (all.at(-1).length > 0) all.push([]);
  }
  return all.filter((piece) => piece.length > 0).map((piece) => (piece.length > 1 ? piece : [piece[0], [piece[0][0] + 1, piece[0][1]]]));
}

/** The next number that begins with 1, 2 or 5. */
function round(value) {
  if (value <= 0) return 0;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * size).find((step) => step >= value);
}

/** The legend of a line, beside its value. */
export function legend(label, value, other) {
  return h("span", { class: "key" }, h("i", { class: other ? "other" : null, "aria-hidden": "true" }), `${label} ${value}`);
}
