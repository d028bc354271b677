// The schedule of periods in plain words: every day, every week from a day, every month, every year, or cron as it is.

import { language, t } from "./texts.js";

/** How often a period begins, as a form offers it. */
export const KINDS = ["daily", "weekly", "monthly", "yearly", "own"];

const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const CLOCK = /^\d{1,2}$/;

/** What a schedule of five fields says: `{kind, day, time}`; another one is `{kind: "own"}`. */
export function read(schedule) {
  const [minute, hour, dom, month, dow, ...more] = schedule.trim().toLowerCase().split(/\s+/);
  const own = { kind: "own", day: 1, time: "00:00" };
  if (dow === undefined || more.length > 0 || !CLOCK.test(minute) || !CLOCK.test(hour)) return own;
  const time = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  const named = DAYS.indexOf(dow);
  const day = named >= 0 ? named : /^[0-7]$/.test(dow) ? Number(dow) % 7 : null;
  if (month === "*" && dom === "*" && dow === "*") return { ...own, kind: "daily", time };
  if (month === "*" && dom === "*" && day !== null) return { kind: "weekly", day, time };
  if (month === "*" && dom === "1" && dow === "*") return { ...own, kind: "monthly", time };
  if ((month === "1" || month === "jan") && dom === "1" && dow === "*") return { ...own, kind: "yearly", time };
  return own;
}

/** The schedule of a choice. */
export function cron({ kind, day, time }) {
  const [hour, minute] = (time || "00:00").split(":").map(Number);
  const rest = { daily: "* * *", weekly: `* * ${day}`, monthly: "1 * *", yearly: "1 1 *" }[kind];
  return `${minute} ${hour} ${rest}`;
}

/** A schedule in a few words, with its time zone. */
export function words({ schedule, time_zone: zone }) {
  const { kind, day, time } = read(schedule);
  return t(`periods.words.${kind}`, { day: dayName(day), time, schedule, zone });
}

/** The days of a week from Monday: `[number, name]`. */
export function days() {
  return [1, 2, 3, 4, 5, 6, 0].map((day) => [String(day), dayName(day)]);
}

/** The name of a day: the fourth of January 1970 was a Sunday. */
function dayName(day) {
  return new Intl.DateTimeFormat(language, { weekday: "long", timeZone: "UTC" }).format(new Date(Date.UTC(1970, 0, 4 + Number(day))));
}

/** The time zones to choose from: that of the reader and UTC first, and `present` in any case. */
export function zones(present) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";
  const all = new Set([present, own, "UTC", ...Intl.supportedValuesOf("timeZone")].filter(Boolean));
  return { own, options: [...all].map((zone) => [zone, zone]) };
}
