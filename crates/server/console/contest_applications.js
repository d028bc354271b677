// Applications: chosen one by one or all of a page, accepted or rejected in one request.

import { change, get } from "./api.js";
import { careful, fees } from "./contest_acts.js";
import { confirmActs, failed, inline, toast } from "./dialog.js";
import { button, choice, empty, h, notice, playerLink, put, set } from "./dom.js";
import { when, zoneName } from "./format.js";
import { field, form } from "./form.js";
import { makeMember } from "./member_form.js";
import { memberAfter, memberOf } from "./members.js";
import { may } from "./rights.js";
import { list, table } from "./table.js";
import { t } from "./texts.js";

const LIMIT = 200;
/** The most rows of a request. */
const AT_ONCE = 1000;

/** Says that a player needs a member, with the way to make it; `done` is called when it is made. */
function noMember(player, done) {
  const make = may("members:write") && button(t("wallets.new"), () => makeMember({ player }, done), { kind: "small" });
  return notice("warn", h("p", { class: "strong" }, t("contest.no_member", { player })), h("p", { class: "small" }, t("contest.no_member_text")), make);
}

/** A card with the applications of a contest; `look` reloads the contest, `refresh` the list while no player is chosen. */
export function applications(contest, path, signal, look) {
  let state = "pending";
  const chosen = new Map();
  const said = h("div", { "aria-live": "polite" });
  const alone = h("div", { "aria-live": "polite" });
  const number = h("span", { class: "soft", "aria-live": "polite" });
  const everyone = h("input", { type: "checkbox", "aria-label": t("contest.choose_all"), change: ({ target }) => chooseAll(target.checked) });

  const box = (application) => {
    const { player } = application;
    const toggle = ({ target }) => {
      if (target.checked) chosen.set(player, application);
      else chosen.delete(player);
      tell();
    };
    return h("input", { type: "checkbox", "aria-label": t("contest.choose", { player }), "data-player": player, change: toggle });
  };
  const view = table(t("contest.applications"), [
    { label: t("contest.choose_head"), kind: "check", heading: everyone, cell: box },
    { label: t("contest.player"), cell: ({ player, applied_at: at }) => [playerLink(player), memberAfter(player), h("span", { class: "under narrow" }, when(at))] },
    { label: t("contest.applied_at", { zone: zoneName() }), kind: "wide num", cell: ({ applied_at: at }) => when(at) },
    { label: t("contest.fee_head"), kind: "wide num", cell: ({ hold_id: hold }) => (hold ? t("contest.held", { fee: fees(contest, 1) }) : h("span", { class: "soft" }, t("contest.none"))) },
  ], { key: ({ player }) => player });
  const all = list(view, (cursor) => get(`${path}/applications`, { state, limit: LIMIT, cursor }, signal), () => empty(t(`contest.none_are.${state}`), t(`contest.none_are_text.${state}`)));

  const act = (what, kind) => h("button", { type: "button", class: kind, click: () => sure(what).catch(failed) }, t(`contest.decision.${what}`));
  const accept = act("accept", "main small");
  const reject = act("reject", "small danger");
  let busy = false;
  const tell = () => {
    set(number, chosen.size > 0 ? t("contest.chosen", { n: chosen.size }) : t(state === "rejected" ? "contest.rejected_stay" : "contest.choose_hint"));
    accept.hidden = state !== "pending";
    reject.hidden = state === "rejected";
    accept.disabled = busy || chosen.size === 0;
    reject.disabled = busy || chosen.size === 0;
  };
  const chooseAll = (on) => {
    chosen.clear();
    view.element.querySelectorAll("[data-player]").forEach((input) => (input.checked = on));
    if (on) all.items().forEach((application) => chosen.set(application.player, application));
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
    const { counts, capacity } = await get(path, {}, signal);
    const held = [...chosen.values()].filter(({ hold_id: hold }) => hold).length;
    const free = counts.accepted === null ? null : capacity - counts.accepted;
    const consequences = what === "accept"
      ? [
        free !== null && t("contest.accepts_room", { n: free }),
        free !== null && free < chosen.size && careful(t("contest.accepts_over", { n: chosen.size - free })),
        contest.entry_fee && t("contest.accepts_fee"),
      ]
      : [
        held > 0 && t("contest.releases", { total: fees(contest, held) }),
        state === "accepted" && t("contest.rejects_accepted", { n: chosen.size }),
        careful(t("contest.rejects_final", { n: chosen.size })),
      ];
    const asked = await confirmActs(t(`contest.sure_all.${what}`, { n: chosen.size }), consequences, t(`contest.now.${what}`), { reason: true, danger: what === "reject" });
    if (!asked) return;
    busy = true;
    tell();
    try {
      await decide(what, asked.reason ? { reason: asked.reason } : {});
    } finally {
      busy = false;
      tell();
    }
  };
  const decide = async (what, why) => {
    const players = [...chosen.keys()];
    const bad = [];
    for (let from = 0; from < players.length; from += AT_ONCE) {
      const { results } = await change("POST", `${path}/applications/${what}`, { players: players.slice(from, from + AT_ONCE), ...why });
      bad.push(...results.filter(({ error }) => error));
    }
    const good = players.length - bad.length;
    if (good > 0) toast("ok", t(`contest.decided.${what}`, { n: good }));
    set(said, bad.length > 0 && notice("warn", h("p", { class: "strong" }, t(`contest.undecided.${what}`, { n: bad.length })), bad.slice(0, 20).map(({ player, error }) => h("p", { class: "small" }, playerLink(player), `: ${error.detail}`))));
    await Promise.all([reload(), look()]);
  };
  const apply = async ({ player }, made) => {
    set(alone);
    try {
      await change("POST", `${path}/applications`, { player });
    } catch (error) {
      // Without the right to read members, it is not known whether the player is one.
      if (error.code !== "wallet_not_found" || (await memberOf(player, signal)) !== null) throw error;
      set(alone, noMember(player, () => set(alone)));
      return alone.scrollIntoView({ block: "nearest" });
    }
    made.reset();
    await Promise.all([reload(), look()]);
  };

  const states = choice(t("contest.applications_that_are"), ["pending", "accepted", "rejected"].map((one) => [one, t(`contest.status.${one}`)]), state, (one) => {
    state = one;
    anew();
  });
  const add = form([field({ name: "player", label: t("contest.apply_for"), required: true, hint: contest.entry_fee ? t("contest.apply_hint", { fee: fees(contest, 1) }) : null })], t("contest.apply"), apply, { inline: true, kind: "" });
  const element = h("section", { class: "card" });
  put(element,
    h("div", { class: "top" }, h("h2", {}, t("contest.applications")), states), said, all.element,
    h("div", { class: "foot stick" }, number, h("div", { class: "row" }, accept, reject)),
    h("div", { class: "body stack" }, add, alone));
  tell();
  anew();
  return { element, refresh: () => chosen.size > 0 || all.refresh().catch((error) => inline(said, error)) };
}
