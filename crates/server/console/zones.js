// Time zones: that of a leaderboard's window; clock times of a form in a named zone, and the instants that they are.

import { field } from "./form.js";
import { zones } from "./schedules.js";
import { t } from "./texts.js";

/** The field of a time zone. */
export function zoneField(present, label, hint) {
  const { own, options } = zones(present);
  return field({ name: "time_zone", label, hint, value: present ?? own, options });
}

/** The zone of a window of a board: that of its period rule, and for all time the one of all rules. Without one it is the reader's. */
export function zoneOf(rules, window) {
  const whole = !window || window === "all_time";
  const names = rules.filter(({ name }) => whole || name === window.split(":")[0]).map(({ time_zone: zone }) => zone);
  return new Set(names).size === 1 ? names[0] : undefined;
}

/** The clock of a zone at an instant, as if it were UTC, in milliseconds. */
function clock(zone, at) {
  const form = { timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" };
  const parts = Object.fromEntries(new Intl.DateTimeFormat("en", form).formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  return Date.UTC(parts.year, parts.month - 1, parts.day, parts.hour, parts.minute, parts.second);
}

/** The instant of a local time such as `2026-01-31T18:00`. A time that a change of clocks leaves out moves by an hour. */
export function toInstant(local, zone) {
  const wanted = Date.parse(`${local}Z`);
  if (Number.isNaN(wanted)) throw new Error(t("contests.no_time", { text: local }));
  let at = wanted;
  for (let round = 0; round < 2; round += 1) at += wanted - clock(zone, at);
  return new Date(at).toISOString();
}

/** The local time of an instant, to the minute. */
export function toLocal(instant, zone) {
  return instant ? new Date(clock(zone, Date.parse(instant))).toISOString().slice(0, 16) : "";
}
