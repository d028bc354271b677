// The tutorial: a weekly board in Seoul, scores, friends, wallets, and a contest with fees and prizes.
//
//   TALLY_KEYS_REQUIRED=false tally serve          in another terminal, on a new data directory
//   node tutorial.mjs [http://127.0.0.1:8420]

import { Tally, TallyError } from "tally-client";

const tally = new Tally({ url: process.argv[2] ?? "http://127.0.0.1:8420", key: process.env["TALLY_KEY"] });

// A board keeps the best score of each player: for all time, and for each week, which begins on Monday in Seoul.
// Repeat this at every start of your game server: an equal board is left as it is.
await tally.putBoard("arcade", {
  update: "best",
  periods: [{ name: "weekly", schedule: "0 0 * * 1", time_zone: "Asia/Seoul" }],
});

// A score is durable when the call resolves. Each call has a key of its own, and is sent again if the network loses its answer.
// Give the match as key if your own program may send it again, such as after a crash: it counts once.
for (const [player, score] of [["ada", 1200], ["bob", 950], ["cy", 1100], ["dee", 400]] as const) {
  await tally.submit("arcade", { player, score }, { idempotencyKey: `match-17-${player}` });
}
const ada = await tally.submit("arcade", { player: "ada", score: 1200 }, { idempotencyKey: "match-17-ada" });
console.log(`ada has ${ada.score}, rank ${ada.rank}`);

// The best of this week, the ranks around a player, and friends among each other.
const shown = (entries: { rank: number; player: string; score: number | string }[]): string =>
  entries.map(({ rank, player, score }) => `${rank} ${player} ${score}`).join(", ");
console.log("this week:", shown(await tally.top("arcade", 3, { period: "weekly" })));
console.log("around bob:", shown(await tally.around("arcade", "bob", { above: 1, below: 1 })));
console.log("friends of dee:", shown((await tally.among("arcade", ["dee", "cy", "nobody"])).entries));
let players = 0;
for await (const _ of tally.scores("arcade", { limit: 2 })) players += 1;
console.log(`${players} players on the board`);

// Money belongs to members. An amount is a whole number of the smallest unit, and answers have it as text.
const members = new Map<string, string>();
for (const login_id of ["ada", "bob", "cy"]) {
  const key = `join-${login_id}`;
  const member = await tally.createMember({ login_id, name: login_id, player: login_id }, { idempotencyKey: key });
  await tally.deposit({ to: member.id, amount: 1000 }, { idempotencyKey: `welcome-${login_id}` });
  members.set(login_id, member.id);
}
const [from, to] = [members.get("ada") ?? "", members.get("bob") ?? ""];
const { currency, after } = await tally.transfer({ from, to, amount: 300, reference: "a lost bet" });
console.log(`ada has ${after} after the transfer`);
try {
  await tally.transfer({ from, to, amount: 5000 });
} catch (error) {
  if (!(error instanceof TallyError)) throw error;
  console.log(`refused: ${error.code}`);
}

// A contest: players apply, which holds the fee; the start takes it; the settlement pays the prizes, once.
const cup = await tally.createContest({
  id: "friday-cup",
  title: "Friday cup",
  entry_fee: { currency, amount: 100 },
  prizes: [
    { from: 1, to: 1, currency, amount: 200 },
    { from: 2, to: 2, currency, amount: 50 },
  ],
});
await tally.openContest(cup.id);
for (const player of members.keys()) await tally.apply(cup.id, player);
await tally.accept(cup.id, [...members.keys()]);
const started = await tally.startContest(cup.id);
console.log(`${started.enrolled} players play for ${started.prizes.map(({ amount }) => amount).join(" and ")}`);
const board = started.board ?? "";
for (const [player, score] of [["ada", 7], ["bob", 9], ["cy", 8]] as const) await tally.submit(board, { player, score });
await tally.finishContest(cup.id);
await tally.settleContest(cup.id);
for await (const { rank, player, amount } of tally.prizes(cup.id)) console.log(`rank ${rank}: ${player} wins ${amount}`);
for (const [name, member] of members) {
  const [wallet] = await tally.wallets(member);
  console.log(`${name} has ${wallet?.balance}`);
}
