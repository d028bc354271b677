// Numbers in groups of three. Numbers of 64 bits come as text and stay text.

/** Long numbers may be broken between groups where there is little space. */
export const LONG = 12;

/** A number or a text of digits, in groups of three. */
export function digits(value) {
  if (value === null || value === undefined) return "–";
  const [, sign, whole, rest] = /^(-?)(\d+)(.*)$/.exec(String(value)) ?? [];
  if (whole === undefined) return String(value);
  return (sign ? "−" : "") + whole.replace(/\B(?=(\d{3})+(?!\d))/g, whole.length > LONG ? "\u2009" : "\u202f") + rest;
}
