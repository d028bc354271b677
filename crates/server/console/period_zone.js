// The name of a period beside times of other zones: one with a time of day says its zone, as the page of its leaderboard does.

import { kept, part } from "./api.js";
import { h, set } from "./dom.js";
import { hasClock, periodName, periodOf, zoned } from "./format.js";
import { toInstant, zoneOf } from "./zones.js";

const boards = kept();

/** How local times of a period are written, with its zone. Nothing without a time of day, an answer, or a rule. */
async function clockOf(board, period) {
  if (!hasClock(period)) return undefined;
  try {
    const { periods } = await boards.read(`/v1/leaderboards/${part(board)}`);
    const zone = zoneOf(periods, period);
    return zone && ((local) => zoned(toInstant(local, zone), zone));
  } catch {
    return undefined;
  }
}

/** A period with its leaderboard, and its zone. */
export async function zonedPeriodOf(board, period) {
  return periodOf(board, period, await clockOf(board, period));
}

/** A period as an element, which gets its zone once that is read; `name` writes it. */
export function periodLine(board, period, name = periodName) {
  const made = h("span", {}, name(period));
  clockOf(board, period).then((clock) => clock && set(made, name(period, clock)));
  return made;
}

/** The same with its leaderboard. */
export function periodOfLine(board, period) {
  return periodLine(board, period, (name, clock) => periodOf(board, name, clock));
}
