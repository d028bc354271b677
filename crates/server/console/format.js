// The format of numbers and times. Numbers of 64 bits come as text and stay text.

import { LONG, digits as grouped } from "./digits.js";
import { language, t } from "./texts.js";

export { grouped };

/** The form of dates: that of Britain in English, because a month in words cannot be mistaken. */
const LOCALE = language === "en" ? "en-GB" : language;

const DAY = { day: "numeric", month: "short", year: "numeric" };
const MINUTE = { ...DAY, hour: "2-digit", minute: "2-digit", hourCycle: "h23" };

const clock = new Intl.DateTimeFormat(LOCALE, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(LOCALE, DAY);

/** The reader's zone. */
const HERE = day.resolvedOptions().timeZone;

/** Minor digits of the currencies. */
const digitsOf = new Map();

/** Sets the currencies that the server has. */
export function useCurrencies(currencies) {
  const defaultFirst = [...currencies].sort((one, other) => Number(other.default) - Number(one.default));
  defaultFirst.forEach(({ currency, digits }) => digitsOf.set(currency, digits));
}

/** The codes of the currencies, the default one first. */
export function currencies() {
  return [...digitsOf.keys()];
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

/** The places of a prize: `1`, or `2–3`. */
export function placesOf({ from, to }) {
  return from === to ? t("unit.place", { from }) : t("unit.places", { from, to });
}

/** The sums of rows by currency: of their amounts, or of what `of` returns. */
export function sumsOf(rows, of = ({ amount }) => amount) {
  const sums = new Map();
  for (const row of rows) sums.set(row.currency, (sums.get(row.currency) ?? 0n) + BigInt(of(row)));
  return sums;
}

/** The same in words. */
export function totalOf(rows, of) {
  return [...sumsOf(rows, of)].map(([currency, sum]) => money(sum, currency)).join(" + ");
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
  return `${at === 0 ? left : digits(left)}\u00a0${units[at]}`;
}

/** Seconds, as short as a latency or as long as an uptime. */
export function seconds(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === Infinity) return t("unit.longest");
  if (value < 1e-3) return `${Math.round(value * 1e6)} µs`;
  if (value < 1) return `${digits(value * 1e3)} ms`;
  if (value < 60) return t("unit.seconds", { seconds: Number.isInteger(value) ? value : digits(value) });
  if (value < 3600) return t("unit.minutes", { minutes: Math.floor(value / 60), seconds: Math.floor(value % 60) });
  if (value < 86400) return t("unit.hours", { hours: Math.floor(value / 3600), minutes: Math.floor((value % 3600) / 60) });
  return t("unit.days", { days: Math.floor(value / 86400), hours: Math.floor((value % 86400) / 3600) });
}

/** A share of one. */
export function percent(value) {
  return value === null || Number.isNaN(value) ? "–" : `${(value * 100).toFixed(value > 0.995 && value < 1 ? 2 : 1)} %`;
}

/** An instant to the minute in a zone that the page names once: the reader's, if none is given. */
export function when(text, zone = HERE) {
  return text ? inZone(zone).minute.format(new Date(text)) : "–";
}

/** The same with the short name that the zone has at that instant, such as `GMT+9`. */
export function zoned(text, zone = HERE) {
  return text ? inZone(zone).named.format(new Date(text)) : "–";
}

/** The name of a zone, such as `Asia/Seoul`, which holds in summer and winter. */
export function zoneName(zone = HERE) {
  return inZone(zone).name;
}

const zones = new Map();

function inZone(zone) {
  if (!zones.has(zone)) zones.set(zone, formats(zone));
  return zones.get(zone);
}

function formats(timeZone) {
  const form = (of) => ({
    minute: new Intl.DateTimeFormat(LOCALE, { ...MINUTE, ...of }),
    named: new Intl.DateTimeFormat(LOCALE, { ...MINUTE, ...of, timeZoneName: "short" }),
  });
  try {
    return { name: timeZone, ...form({ timeZone }) };
  } catch {
    // The server knows a zone that the browser does not.
    return { name: HERE, ...form({}) };
  }
}

/** The day of an instant. */
export function date(text) {
  return text ? day.format(new Date(text)) : "–";
}

/** Rules of periods whose names say how long a period is. */
const LENGTHS = new Set(["daily", "weekly", "monthly", "yearly"]);
const PERIOD = /^([a-z0-9_-]+):(\d{4}-\d\d-\d\d)(T\d\d:\d\d)?$/;

const wholeDay = new Intl.DateTimeFormat(LOCALE, { ...DAY, timeZone: "UTC" });

/**
 * A window by its public name, such as `weekly:2026-11-21T18:29`. The name has the beginning on the clocks of its own zone already;
 * `written` writes it with a time of day.
 */
export function periodName(name, written = (local) => when(`${local}Z`, "UTC")) {
  if (name === "all_time") return t("board.all_time");
  const [, rule, date, clock] = PERIOD.exec(name) ?? [];
  if (rule === undefined) return name;
  const start = clock ? written(`${date}${clock}`) : wholeDay.format(new Date(`${date}T00:00Z`));
  return t(`periods.name.${LENGTHS.has(rule) ? rule : "other"}`, { rule, start });
}

/** Whether the name of a window has a time of day. */
export const hasClock = (name) => PERIOD.exec(name)?.[3] !== undefined;

/** A period with its leaderboard. */
export function periodOf(board, period, written) {
  return t("periods.name.of", { board, period: periodName(period, written) });
}

/** What the reference of a prize names: `arcade/weekly:2026-11-23` is `{board, period}`, and `contest:cup` is `{contest}`; another one is nothing. */
export function sourceOf(reference) {
  const [, board, period] = /^(.+)\/([^/]+)$/s.exec(reference) ?? [];
  if (PERIOD.test(period ?? "")) return { board, period };
  return reference.startsWith("contest:") ? { contest: reference.slice("contest:".length) } : null;
}

/** The reference of a movement as it is read: that of a prize names a period. */
export function referenceOf({ type, reference }) {
  const { board, period } = (type.startsWith("prize") && sourceOf(reference)) || {};
  return period ? periodOf(board, period) : reference;
}

/** The time of day of an instant in milliseconds. */
export function time(milliseconds) {
  return clock.format(new Date(milliseconds));
}
