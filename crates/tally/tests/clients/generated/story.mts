// The story of a leaderboard, a wallet and a contest with the types that openapi-typescript generates, through openapi-fetch.
// Argument: the address. `tsc --strict` checks this file, so the types are part of what it tests.

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
const [ann, bob] = [await join("ann"), await join("bob")];
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
console.log("end");
