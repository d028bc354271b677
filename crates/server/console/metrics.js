// Parses the text of `/metrics` in the browser, and compares two readings of a histogram.

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** Samples by name: lists of `{labels, value}`. */
export function parse(text) {
  const families = new Map();
  for (const line of text.split("\n")) {
    if (line === "" || line[0] === "#") continue;
    const [, name, labels, value] = LINE.exec(line) ?? [];
    if (name === undefined) continue;
    const sample = { labels: labels ? readLabels(labels) : {}, value: Number(value.replace("Inf", "Infinity")) };
    const family = families.get(name);
    if (family) family.push(sample);
    else families.set(name, [sample]);
  }
  return families;
}

function readLabels(text) {
  const labels = {};
  for (const [, name, value] of text.matchAll(LABEL)) labels[name] = value.replace(/\\(.)/g, (_, escaped) => (escaped === "n" ? "\n" : escaped));
  return labels;
}

/** The sum of the samples of a name that pass the filter `meant`. */
export function sum(families, name, meant = () => true) {
  const samples = families.get(name) ?? [];
  return samples.reduce((total, { labels, value }) => (meant(labels) ? total + value : total), 0);
}

/** A histogram: cumulative counts by bound, summed over the samples of `name` that pass the filter `meant`. */
export function histogram(families, name, meant = () => true) {
  const counts = new Map();
  for (const { labels, value } of families.get(`${name}_bucket`) ?? []) {
    if (!meant(labels)) continue;
    const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
    counts.set(bound, (counts.get(bound) ?? 0) + value);
  }
  return [...counts].sort(([one], [other]) => one - other);
}

/** The histograms of a name that have counts, by the name that `named` gives their labels. */
export function histograms(families, name, named) {
  const all = new Map();
  for (const sample of families.get(`${name}_count`) ?? []) {
    if (sample.value > 0) all.set(named(sample.labels), new Map());
  }
  for (const { labels, value } of families.get(`${name}_bucket`) ?? []) {
    const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
    all.get(named(labels))?.set(bound, value);
  }
  return new Map([...all].map(([one, counts]) => [one, [...counts].sort(([a], [b]) => a - b)]));
}

/** The difference between two readings of a histogram. */
export function between(before, now) {
  const old = new Map(before);
  return now.map(([bound, count]) => [bound, Math.max(0, count - (old.get(bound) ?? 0))]);
}

/** A quantile of a histogram, interpolated within its bucket; null for an empty histogram. */
export function quantile(counts, share) {
  const total = counts.at(-1)?.[1] ?? 0;
  if (total === 0) return null;
  const wanted = total * share;
  let [low, below] = [0, 0];
  for (const [bound, count] of counts) {
    if (count >= wanted) {
      if (bound === Infinity) return Infinity;
      return count === below ? bound : low + ((bound - low) * (wanted - below)) / (count - below);
    }
    [low, below] = [bound, count];
  }
  return Infinity;
}
