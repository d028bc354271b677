// The data of a member: a copy as a file, and its erasure, with what that takes and what it leaves.

import { change, getText, part } from "./api.js";
import { save } from "./board_export.js";
import { confirmTyped, failed, toast } from "./dialog.js";
import { button, card, h, notice } from "./dom.js";
import { forget } from "./members.js";
import { t } from "./texts.js";

/** The card of a member's page. Both acts need a key of role admin; `reload` shows the page anew. */
export function data(member, reload) {
  const path = `/v1/members/${part(member.id)}`;
  const copy = async () => {
    const text = await whole(`${path}/export`);
    save(new Blob([text], { type: "application/json" }), `member-${member.id}.json`);
    toast("ok", t("wallet.saved"), t("wallet.saved_text"));
  };
  const erase = async () => {
    const found = JSON.parse(await whole(`${path}/export`));
    const sure = await confirmTyped(t("wallet.erase_ask"), consequences(found), member.login_id, t("wallet.erase"), { audited: true });
    if (!sure) return;
    await change("POST", `${path}/erase`, sure.reason ? { reason: sure.reason } : {});
    forget();
    toast("ok", t("wallet.erased_now"));
    await reload();
  };
  const state = member.erasure === "running" && notice("warn", h("p", {}, t("wallet.erasing")));
  const acts = h("div", { class: "row" }, button(t("wallet.export"), copy, { kind: "small", failed }),
    member.erasure !== "done" && button(t("wallet.erase"), erase, { kind: "small danger", failed }));
  return card(t("wallet.data"), h("div", { class: "body stack" }, state, h("p", { class: "small soft" }, t("wallet.data_text")), acts));
}

/** A document that was broken off is none. */
async function whole(path) {
  const text = await getText(path);
  if (!text.endsWith('"complete":true}')) throw new Error(t("wallet.broken_off"));
  return text;
}

/** What an erasure takes and leaves, in numbers. */
export function consequences({ leaderboards, contests, period_prizes: prizes, transactions, holds, audit }) {
  const scores = leaderboards.reduce((sum, { records }) => sum + records.length, 0);
  const words = (rows) => rows.filter((row) => row.reason || row.metadata || row.end_reason).length;
  const payouts = contests.reduce((sum, one) => sum + one.payouts.length, prizes.length);
  return t("wallet.erase_text", {
    scores: t("wallet.scores", { n: scores }),
    wordy: t("wallet.transfers", { n: words(transactions) }),
    wordy_holds: t("wallet.hold_count", { n: words(holds) }),
    transfers: t("wallet.transfers", { n: transactions.length }),
    holds: t("wallet.hold_count", { n: holds.length }),
    contests: t("wallet.contests", { n: contests.length }),
    payouts: t("wallet.payouts", { n: payouts }),
    rows: t("wallet.rows", { n: audit.length }),
  });
}
