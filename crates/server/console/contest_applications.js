// Applications: chosen one by one or all of a page, accepted or rejected in one request.

import { change, get } from "./api.js";
import { askReason, failed, inline, toast } from "./dialog.js";
import { button, choice, empty, h, notice, playerLink, put, set } from "./dom.js";
import { count, when } from "./format.js";
import { field, form } from "./form.js";
import { list, table } from "./table.js";

const LIMIT = 200;

const NOTHING = {
  pending: ["No pending applications", "Players apply with their sign-in, or your game server applies for them. You can add one here."],
  accepted: ["No accepted applications yet", "Accepted players become members when the contest starts."],
  rejected: ["No rejected applications", "A rejected player gets the held fee back and cannot apply again."],
};

/** A card with the applications of a contest; `look` reloads the contest, `refresh` the list while no player is chosen. */
export function applications(contest, path, signal, look) {
  let status = "pending";
  const chosen = new Set();
  const said = h("div", { "aria-live": "polite" });
  const number = h("span", { class: "soft", "aria-live": "polite" });
  const everyone = h("input", { type: "checkbox", "aria-label": "Choose all that are shown", change: ({ target }) => chooseAll(target.checked) });

  const box = ({ player }) => {
    const toggle = ({ target }) => {
      if (target.checked) chosen.add(player);
      else chosen.delete(player);
      tell();
    };
    return h("input", { type: "checkbox", "aria-label": `Choose ${player}`, "data-player": player, change: toggle });
  };
  const view = table("Applications", [
    { label: "Choose", kind: "check", heading: everyone, cell: box },
    { label: "Player", cell: ({ player }) => playerLink(player) },
    { label: "Applied", kind: "num", cell: ({ applied_at: at }) => when(at) },
    { label: "Hold", kind: "wide", cell: ({ hold_id: hold }) => (hold ? h("code", { class: "soft" }, hold) : h("span", { class: "soft" }, "no fee")) },
  ], { key: ({ player }) => player });
  const all = list(view, (cursor) => get(`${path}/applications`, { state: status, limit: LIMIT, cursor }, signal), () => empty(...NOTHING[status]));

  const accept = button("Accept", () => sure("accept"), { kind: "main small", failed });
  const reject = button("Reject", () => sure("reject"), { kind: "small danger", failed });
  const tell = () => {
    set(number, chosen.size > 0 ? `${chosen.size} chosen` : "");
    accept.hidden = chosen.size === 0 || status === "accepted";
    reject.hidden = chosen.size === 0 || status === "rejected";
    accept.disabled = false;
    reject.disabled = false;
  };
  const chooseAll = (on) => {
    chosen.clear();
    view.element.querySelectorAll("[data-player]").forEach((input) => {
      input.checked = on;
      if (on) chosen.add(input.dataset.player);
    });
    tell();
  };
  const reload = async () => {
    chosen.clear();
    everyone.checked = false;
    view.clear();
    await all.reload();
    tell();
  };
  let turn = 0;
  const anew = () => {
    set(said);
    turn += 1;
    const mine = turn;
    // An error of an earlier choice is outdated.
    return reload().catch((error) => mine === turn && inline(said, error));
  };
  const sure = async (what) => {
    const verb = what === "accept" ? "Accept" : "Reject";
    const asked = await askReason(`${verb} ${count(chosen.size, "application")}?`, `${verb} now`);
    if (asked) await decide(what, asked.reason ? { reason: asked.reason } : {});
  };
  const decide = async (what, why = {}) => {
    const players = [...chosen];
    const bad = [];
    for (let from = 0; from < players.length; from += 1000) {
      const { results } = await change("POST", `${path}/applications/${what}`, { players: players.slice(from, from + 1000), ...why });
      bad.push(...results.filter(({ error }) => error));
    }
    const good = players.length - bad.length;
    const done = what === "accept" ? "accepted" : "rejected";
    if (good > 0) toast("ok", `${count(good, "application")} ${done}`);
    set(said, bad.length > 0 && notice("warn", h("p", { class: "strong" }, `${count(bad.length, "application")} not ${done}`), bad.slice(0, 20).map(({ player, error }) => h("p", { class: "small" }, `${player}: ${error.detail}`))));
    await Promise.all([reload(), look()]);
  };
  const apply = async ({ player }, made) => {
    await change("POST", `${path}/applications`, { player });
    made.reset();
    await Promise.all([reload(), look()]);
  };

  const states = choice("Applications that are", [["pending", "Waiting"], ["accepted", "Accepted"], ["rejected", "Rejected"]], status, (state) => {
    status = state;
    anew();
  });
  const add = form([field({ name: "player", label: "Apply for a player", required: true, hint: contest.entry_fee ? "A member with enough money: the fee is held." : null })], "Apply", apply, { inline: true, kind: "" });
  const element = h("section", { class: "card" });
  put(element, h("div", { class: "top" }, h("h2", {}, "Applications"), h("div", { class: "row" }, number, accept, reject, states)), said, all.element, h("div", { class: "body" }, add));
  anew();
  return { element, reload: anew, refresh: () => chosen.size > 0 || all.refresh().catch((error) => inline(said, error)) };
}
