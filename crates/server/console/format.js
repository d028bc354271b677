// The format of numbers and times. Numbers of 64 bits come as text and stay text.

import { LONG, digits as grouped } from "./digits.js";
import { language } from "./texts.js";

export { grouped };

/** The form of dates: that of Britain in English, because a month in words cannot be mistaken. */
const LOCALE = language === "en" ? "en-GB" : language;

const clock = new Intl.DateTimeFormat(LOCALE, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "short", year: "numeric" });
const minute = new Intl.DateTimeFormat(LOCALE, {
  day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit",
});

/** Minor digits of the currencies. */
const digitsOf = new Map();

/** Sets the currencies that the server has. */
export function useCurrencies(currencies) {
  currencies.forEach(({ currency, digits }) => digitsOf.set(currency, digits));
}

/** An amount of the currency's smallest unit, with its decimals. */
export function decimal(amount, currency) {
  const minor = digitsOf.get(currency) ?? 0;
  const [, sign, units] = /^(-?)(\d+)$/.exec(String(amount)) ?? [];
  if (units === undefined || minor === 0) return grouped(amount);
  const padded = units.padStart(minor + 1, "0");
  return grouped(`${sign}${padded.slice(0, -minor)}.${padded.slice(-minor)}`);
}

/** The same with the code. */
export function money(amount, currency) {
  const space = String(amount).length > LONG ? " " : "\u00a0";
  return currency ? `${decimal(amount, currency)}${space}${currency}` : grouped(amount);
}

/** Three significant digits, with a letter for thousands. */
export function brief(value) {
  if (value === null || !Number.isFinite(value)) return "–";
  for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (value >= size) return `${digits(value / (letter === "k" ? 1e3 : size))} ${letter}`;
  }
  return grouped(digits(value));
}

function digits(value) {
  if (value === 0 || value >= 100) return String(Math.round(value));
  return String(Number(value.toFixed(value >= 0.1 ? 1 : 2)));
}

/** Bytes. */
export function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let left = value;
  while (left >= 1024 && at < units.length - 1) {
    left /= 1024;
    at += 1;
  }
  return `${at === 0 ? left : digits(left)} ${units[at]}`;
}

/** Seconds, as short as a latency or as long as an uptime. */
export function seconds(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === Infinity) return "> 10 s";
  if (value < 1e-3) return `${Math.round(value * 1e6)} µs`;
  if (value < 1) return `${digits(value * 1e3)} ms`;
  if (value < 60) return `${Number.isInteger(value) ? value : digits(value)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min ${Math.floor(value % 60)} s`;
  if (value < 86400) return `${Math.floor(value / 3600)} h ${Math.floor((value % 3600) / 60)} min`;
  return `${Math.floor(value / 86400)} d ${Math.floor((value % 86400) / 3600)} h`;
}

/** A share of one. */
export function percent(value) {
  return value === null || Number.isNaN(value) ? "–" : `${(value * 100).toFixed(value > 0.995 && value < 1 ? 2 : 1)} %`;
}

/** An instant in the reader's zone, to the minute. Years before 1900 and the like are fine. */
export function when(text) {
  return text ? minute.format(new Date(text)) : "–";
}

/** The day of an instant. */
export function date(text) {
  return text ? day.format(new Date(text)) : "–";
}

/** The time of day of an instant in milliseconds. */
export function time(milliseconds) {
  return clock.format(new Date(milliseconds));
}

/** `1 player`, `2 players`. */
export function count(number, one, many = `${one}s`) {
  return `${grouped(number)} ${Number(number) === 1 ? one : many}`;
}
