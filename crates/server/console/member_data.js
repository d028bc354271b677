// The data of a member: a copy as a file, and its erasure, with what that takes and what it leaves.

import { change, getText, part } from "./api.js";
import { save } from "./board_export.js";
import { confirmTyped, failed, toast } from "./dialog.js";
import { button, card, h, notice } from "./dom.js";
import { count } from "./format.js";

/** The card of a member's page. Both acts need a key of role admin; `reload` shows the page anew. */
export function data(member, reload) {
  const path = `/v1/members/${part(member.id)}`;
  const copy = async () => {
    const text = await whole(`${path}/export`);
    save(new Blob([text], { type: "application/json" }), `member-${member.id}.json`);
    toast("ok", "The data are saved", "The file has everything that is stored about the member, but its secrets.");
  };
  const erase = async () => {
    const found = JSON.parse(await whole(`${path}/export`));
    const sure = await confirmTyped("Erase this member?", consequences(found), member.login_id, "Erase", { audited: true });
    if (!sure) return;
    await change("POST", `${path}/erase`, sure.reason ? { reason: sure.reason } : {});
    toast("ok", "The member is erased");
    await reload();
  };
  const state = member.erasure === "running" && notice("warn", h("p", {}, "Rows that name the person are still being erased."));
  const acts = h("div", { class: "row" }, button("Export", copy, { kind: "small", failed }),
    member.erasure !== "done" && button("Erase", erase, { kind: "small danger", failed }));
  const about = "A copy of all that is stored, or its erasure for good. Both need a key of role admin.";
  return card("Data of the person", h("div", { class: "body stack" }, state, h("p", { class: "small soft" }, about), acts));
}

/** A document that was broken off is none. */
async function whole(path) {
  const text = await getText(path);
  if (!text.endsWith('"complete":true}')) throw new Error("the export was broken off: try again, or ask the server itself");
  return text;
}

/** What an erasure takes and leaves, in numbers. */
export function consequences({ leaderboards, contests, period_prizes: prizes, transactions, holds, audit }) {
  const scores = leaderboards.reduce((sum, { records }) => sum + records.length, 0);
  const words = (rows) => rows.filter((row) => row.reason || row.metadata || row.end_reason).length;
  const payouts = contests.reduce((sum, one) => sum + one.payouts.length, prizes.length);
  return `Gone for good: name, login, phone number, password and PIN, the profile and ${count(scores, "score")} of the player, and the reasons and metadata of ` +
    `${count(words(transactions), "transaction")} and ${count(words(holds), "hold")}. It stays under a pseudonym: ${count(transactions.length, "transaction")} and ` +
    `${count(holds.length, "hold")} with amounts and references, ${count(contests.length, "contest")}, ${count(payouts, "payout")} and ${count(audit.length, "row")} of the audit log.`;
}
