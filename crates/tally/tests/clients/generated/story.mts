// The story of docs/tutorial.md with the types that openapi-typescript generates, through openapi-fetch: a board of the week
// with friends, wallets, the prizes of a closed round, and a contest. Argument: the address. `tsc --strict` checks this file, so the types are part of what it tests.

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Schemas = components["schemas"];

const client = createClient<paths>({ baseUrl: process.argv[2] ?? "" });

/** What a call answered, which must be good. */
function good<T>(answer: { data?: T; error?: unknown }): T {
  assert.ok(answer.data !== undefined, JSON.stringify(answer.error));
  return answer.data;
}

const at = (board: string) => ({ path: { board } });
const contest = { params: { path: { contest: "cup" } } };

// No field with a default is required.
const weekly: Schemas["Period"] = { name: "weekly", schedule: "0 0 * * 1" };
const laps: Schemas["BoardPut"] = { all_time: false, periods: [weekly] };
const board = good(await client.PUT("/v1/leaderboards/{board}", { params: at("laps"), body: laps }));
assert.equal(board.periods[0]?.keep, 12);
good(await client.PUT("/v1/leaderboards/{board}", { params: at("laps"), body: {} }));
good(await client.PUT("/v1/leaderboards/{board}", { params: at("goals"), body: { update: "sum" } }));

for (let attempt = 0; attempt < 2; attempt++) {
  const header = { "Idempotency-Key": "m1", "Tally-Int64": "string" as const };
  const params = { ...at("goals"), header };
  const body = { player: "ada", score: "9007199254740993" };
  const done = good(await client.POST("/v1/leaderboards/{board}/scores", { params, body }));
  assert.deepEqual([done.score, done.rank], ["9007199254740993", 1]);
}
const scores = [0, 1, 2, 3, 4].map((score) => ({ board: "goals", player: `p${score}`, score }));
const { results } = good(await client.POST("/v1/scores/batch", { body: { scores } }));
assert.ok(results.every((row) => !("error" in row) && row.changed && row.replayed === undefined));
const page = good(
  await client.GET("/v1/leaderboards/{board}/scores", { params: { ...at("goals"), query: { limit: 2 } } }),
);
assert.deepEqual(page.entries.map((entry) => [entry.rank, entry.player]), [[1, "ada"], [2, "p4"]]);
const query = { above: 1, below: 1 };
const around = good(
  await client.GET("/v1/leaderboards/{board}/players/{player}/around", {
    params: { path: { board: "goals", player: "p2" }, query },
  }),
);
assert.deepEqual(around.entries.map((entry) => entry.player), ["p3", "p2", "p1"]);
const friends = good(
  await client.POST("/v1/leaderboards/{board}/among", {
    params: at("goals"),
    body: { players: ["p2", "ada", "nobody"] },
  }),
);
assert.deepEqual(
  friends.entries.map((entry) => [entry.rank, entry.overall_rank, entry.player]),
  [[1, 1, "ada"], [2, 4, "p2"]],
);
assert.deepEqual(friends.missing, ["nobody"]);
const { error } = await client.GET("/v1/leaderboards/{board}", { params: at("nothing") });
assert.equal(error?.code, "leaderboard_not_found");

const head: Schemas["ImportHead"] = { board: "goals", digest: "0".repeat(64), lines_before: 0, lines_after: 1, last: true };
const row: Schemas["ImportRow"] = { line: 1, player: "zoe", score: 3 };
const imported = await client.POST("/v1/imports", {
  body: `${JSON.stringify(head)}\n${JSON.stringify(row)}\n`,
  headers: { "Content-Type": "application/x-ndjson" },
  bodySerializer: (body) => body,
});
assert.equal(good(imported).taken, 1);

const join = async (login_id: string) =>
  good(await client.POST("/v1/members", { body: { login_id, name: login_id, player: login_id } })).id;
const [ann, bob, cid] = [await join("ann"), await join("bob"), await join("cid")];
good(await client.POST("/v1/deposits", { body: { to: ann, amount: 1000 } }));
for (let attempt = 0; attempt < 2; attempt++) {
  const params = { header: { "Idempotency-Key": "bet-1" } };
  const moved = good(await client.POST("/v1/transfers", { params, body: { from: ann, to: bob, amount: "400" } }));
  assert.deepEqual([moved.after, moved.counterparty], ["600", bob]);
}
const wallet = async (member: string) => {
  const { items: wallets } = good(await client.GET("/v1/wallets/{member}", { params: { path: { member } } }));
  assert.ok(wallets[0]);
  return wallets[0];
};
const { currency, balance } = await wallet(bob);
assert.equal(balance, "400");

// A board of the week, and of a round that ends with its minute and pays prizes. What closes it is the clock.
const race: Schemas["BoardPut"] = {
  periods: [
    { name: "weekly", schedule: "0 0 * * 1", time_zone: "Asia/Seoul" },
    { name: "round", schedule: "* * * * *", keep: 1000, prizes: [{ from: 1, to: 1, currency, amount: 500 }] },
  ],
};
good(await client.PUT("/v1/leaderboards/{board}", { params: at("race"), body: race }));
const ranking = async (period: string) =>
  good(await client.GET("/v1/leaderboards/{board}/scores", { params: { ...at("race"), query: { period } } }));

/** Plays in one round, and returns its name. A round that ends meanwhile has some of the scores only. */
async function playRound(): Promise<string> {
  for (;;) {
    for (const [player, score] of [["cid", 30], ["dee", 20]] as const) {
      const params = { ...at("race"), query: { windows: "all" as const } };
      const done = good(await client.POST("/v1/leaderboards/{board}/scores", { params, body: { player, score } }));
      const windows = done.windows?.map(({ period }) => period.split(":")[0]).sort();
      assert.deepEqual(windows, ["all_time", "round", "weekly"]);
    }
    const { entries, period } = await ranking("round");
    if (entries.map((entry) => entry.player).join() === "cid,dee") return period;
  }
}

const played = await playRound();
const [best] = (await ranking("weekly")).entries;
assert.deepEqual([best?.rank, best?.player, best?.score], [1, "cid", 30]);

const body: Schemas["NewContest"] = {
  id: "cup",
  title: "Cup",
  entry_fee: { currency, amount: 100 },
  prizes: [{ from: 1, to: 1, currency, amount: 150 }],
};
good(await client.POST("/v1/contests", { body }));
good(await client.POST("/v1/contests/{contest}/open", contest));
for (const player of ["ann", "bob"]) {
  good(await client.POST("/v1/contests/{contest}/applications", { ...contest, body: { player } }));
}
const players = { ...contest, body: { players: ["ann", "bob"] } };
good(await client.POST("/v1/contests/{contest}/applications/accept", players));
assert.equal(good(await client.POST("/v1/contests/{contest}/start", contest)).enrolled, 2);
for (const [player, score] of [["ann", 3], ["bob", 5]] as const) {
  const params = at("contest:cup");
  good(await client.POST("/v1/leaderboards/{board}/scores", { params, body: { player, score } }));
}
good(await client.POST("/v1/contests/{contest}/finish", contest));
assert.equal(good(await client.POST("/v1/contests/{contest}/settle", contest)).state, "settled");
const prizes = good(await client.GET("/v1/contests/{contest}/prizes", contest)).items;
assert.deepEqual(prizes.map(({ player, amount, paid }) => [player, amount, paid]), [["bob", "150", true]]);
assert.equal((await wallet(bob)).balance, "450");

let closed: Schemas["PeriodPrizeList"];
for (;;) {
  const params = { ...at("race"), query: { period: played } };
  closed = good(await client.GET("/v1/leaderboards/{board}/prizes", { params }));
  if (closed.settled) break;
  await new Promise((done) => setTimeout(done, 1000));
}
const won = closed.items.map(({ rank, player, amount, paid }) => [rank, player, amount, paid]);
assert.deepEqual(won, [[1, "cid", "500", true]]);
const list = { params: { ...at("race"), query: { limit: 1000 } } };
const { items } = good(await client.GET("/v1/leaderboards/{board}/periods", list));
assert.equal(items.find(({ period }) => period === played)?.state, "closed");
assert.deepEqual((await ranking(played)).entries.map((entry) => [entry.rank, entry.player]), [[1, "cid"], [2, "dee"]]);
// A round that ended while the scores came in has the same winner, and is paid as well.
const total = Number((await wallet(cid)).balance);
assert.ok(total >= 500 && total % 500 === 0, `${total}`);
console.log("end");
