// SHA-256 of a stream. The browser's own takes a whole file into memory, and is there in secure contexts only.

const K = new Uint32Array(64);
const START = new Uint32Array(8);
for (let number = 2, found = 0; found < 64; number += 1) {
  let prime = true;
  for (let factor = 2; factor * factor <= number; factor += 1) if (number % factor === 0) prime = false;
  if (!prime) continue;
  const fraction = (root) => Math.floor((root - Math.floor(root)) * 2 ** 32);
  if (found < 8) START[found] = fraction(Math.sqrt(number));
  K[found] = fraction(Math.cbrt(number));
  found += 1;
}

/** A digest that takes bytes in pieces; `hex` ends it. */
export function sha256() {
  const state = START.slice();
  const words = new Uint32Array(64);
  const block = new Uint8Array(64);
  const view = new DataView(block.buffer);
  let filled = 0;
  let length = 0;

  const compress = () => {
    for (let at = 0; at < 16; at += 1) words[at] = view.getUint32(at * 4);
    for (let at = 16; at < 64; at += 1) {
      const [x, y] = [words[at - 15], words[at - 2]];
      const one = (rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3)) >>> 0;
      const two = (rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10)) >>> 0;
      words[at] = words[at - 16] + one + words[at - 7] + two;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let at = 0; at < 64; at += 1) {
      const one = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const first = (h + one + ((e & f) ^ (~e & g)) + K[at] + words[at]) | 0;
      const two = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const second = (two + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((value, at) => (state[at] += value));
  };

  const update = (bytes) => {
    length += bytes.length;
    for (let from = 0; from < bytes.length; ) {
      const taken = Math.min(64 - filled, bytes.length - from);
      block.set(bytes.subarray(from, from + taken), filled);
      filled += taken;
      from += taken;
      if (filled === 64) {
        compress();
        filled = 0;
      }
    }
  };

  const hex = () => {
    const bits = length * 8;
    update(Uint8Array.of(0x80));
    while (filled !== 56) update(Uint8Array.of(0));
    view.setUint32(56, Math.floor(bits / 2 ** 32));
    view.setUint32(60, bits >>> 0);
    compress();
    return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("");
  };

  return { update, hex };
}

function rotate(value, by) {
  return ((value >>> by) | (value << (32 - by))) >>> 0;
}
