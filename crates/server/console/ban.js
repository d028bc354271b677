// A ban and its way back, wherever a player is shown: asked beside the button, done at once, undone as a whole.
//
// A place is `{name, path}`: a leaderboard or a contest, and the path of the player on it. One that refuses does not stop the others.

import { change, part, Problem, walk, withQuery } from "./api.js";
import { failed, toast } from "./dialog.js";
import { h } from "./dom.js";
import { UNDONE, reason } from "./form.js";
import { may } from "./rights.js";
import { t } from "./texts.js";

const REASONS = ["score", "bot", "client", "bug", "accounts", "collusion"];

/** A player on a leaderboard. */
export function place(board, player) {
  return { name: board, path: `/v1/leaderboards/${part(board)}/players/${part(player)}` };
}

/** The players that a leaderboard has banned, as far as some pages of them go. */
export async function bannedOn(board, pagesMax, signal) {
  const found = new Set();
  await walk(`/v1/leaderboards/${part(board)}/bans`, {}, "items", (items) => items.forEach(({ player }) => found.add(player)), signal, pagesMax);
  return found;
}

/** The field of the reason beside the buttons, with frequent ones to choose from; `said()` is what it has. */
export function why() {
  const element = reason(t("player.why_kept"), { frequent: REASONS.map((name) => t(`player.why.${name}`)) });
  return { element, said: () => element.querySelector("input").value.trim() };
}

/** The acts of the audit log on a player, or another subject, for callers that may read it. */
export function actsOn(subject) {
  return may("audit:read") && h("a", { href: `#${withQuery("/audit", { subject })}` }, t("player.to_acts"));
}

/** Bans on these places, with one undo for all of them. `changed()` is called when it was done, and when it was undone. */
export async function ban(player, places, given, changed) {
  let { done: left } = await each("ban", player, places, given, changed);
  const run = async () => {
    left = await restore(player, left, UNDONE, changed);
    return left.length === 0;
  };
  if (left.length > 0) say("ban", player, left, { label: t("player.undo"), run });
}

/** Restores on these places. Returns those that failed and may be tried again. */
export async function restore(player, places, given, changed) {
  const { done, left } = await each("restore", player, places, given, changed);
  if (done.length > 0) say("restore", player, done);
  return left;
}

function say(what, player, done, undo) {
  const link = actsOn(player);
  toast("ok", t(`player.done.${what}`, { player, where: where(done) }), [t(`player.done_about.${what}`), link && [" ", link]], undo);
}

/** Where it was done. */
function where(places) {
  return places.length === 1 ? places[0].name : t("player.places", { n: places.length });
}

/** Returns the places where it was `done`, and those `left` that failed. It says where it was not done. */
async function each(what, player, places, given, changed) {
  const done = [];
  const not = [];
  for (const one of places) {
    try {
      await change("POST", withQuery(`${one.path}/${what}`, { reason: given }), {});
      done.push(one);
    } catch (error) {
      if (places.length === 1) throw error;
      if (!(error instanceof Problem)) throw error;
      not.push({ one, error });
    }
  }
  const left = refused(what, player, not);
  // What failed to show itself may still be undone.
  await Promise.resolve(changed()).catch(failed);
  return { done, left };
}

/** Says where it was not done, and returns the places that failed. A contest that is over keeps its result, so that is no failure. */
function refused(what, player, not) {
  const over = not.filter(({ error }) => error.code === "contest_state");
  const bad = not.filter(({ error }) => error.code !== "contest_state");
  if (over.length > 0) toast("ok", t("player.over", { n: over.length }), over.map(({ one }) => one.name).join(", "));
  if (bad.length > 0) toast("bad", t(`player.not_done.${what}`, { player, n: bad.length }), bad.map(({ one, error }) => `${one.name}: ${error.message}`).join("; "));
  return bad.map(({ one }) => one);
}
