// Numbers in groups of three. Numbers of 64 bits come as text and stay text.

import { language } from "./texts.js";

/** Long numbers may be broken between groups where there is little space. */
export const LONG = 12;

/** A number or a text of digits, in groups of three. */
export function digits(value) {
  if (value === null || value === undefined) return "–";
  const [, sign, whole, rest] = /^(-?)(\d+)(.*)$/.exec(String(value)) ?? [];
  if (whole === undefined) return String(value);
  // Korean has commas.
  const [between, breaks] = language === "ko" ? [",", ",\u200b"] : ["\u202f", "\u2009"];
  return (sign ? "−" : "") + whole.replace(/\B(?=(\d{3})+(?!\d))/g, whole.length > LONG ? breaks : between) + rest;
}
