// A leaderboard's story in node-redis, in both protocols. Arguments: host, port.

import assert from "node:assert/strict";
import readline from "node:readline";
import { createClient } from "redis";

const [host, port] = process.argv.slice(2);
const answers = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async (what) => {
  console.log(what);
  return (await answers.next()).value;
};
const equal = assert.deepEqual;

const connect = async (RESP, options = {}) => {
  // Without it, a client that cannot log in tries for ever.
  const reconnectStrategy = options.password || options.once ? false : 50;
  const client = createClient({ RESP, socket: { host, port: Number(port), reconnectStrategy }, ...options });
  // Lost connections are told here; without a listener they would end the process.
  client.on("error", () => {});
  return client.connect();
};

async function sortedSet(r, key) {
  equal(await r.ping(), "PONG");
  const players = { ann: 30, bob: 20.5, cy: 10, dee: 20.5 };
  equal(await r.zAdd(key, Object.entries(players).map(([value, score]) => ({ value, score }))), 4);
  equal(await r.zAdd(key, { value: "ann", score: 31 }, { comparison: "GT", CH: true }), 1);
  equal(await r.zIncrBy(key, 5, "cy"), 15);
  equal(await r.zScore(key, "nobody"), null);
  equal(await r.zRangeWithScores(key, 0, 0), [{ value: "cy", score: 15 }]);
  equal(await r.zRange(key, 0, -1, { REV: true }), ["ann", "dee", "bob", "cy"]);
  equal(await r.zRangeByScore(key, "(15", "+inf", { LIMIT: { offset: 0, count: 2 } }), ["bob", "dee"]);
  equal([await r.zRank(key, "ann"), await r.zRevRank(key, "ann")], [3, 0]);
  equal([await r.zCard(key), await r.zCount(key, 20, 40)], [4, 3]);

  // What is asked in one turn of the loop goes out as one pipeline.
  const all = await Promise.allSettled([
    r.zAdd(key, { value: "eve", score: 1 }),
    r.zRevRank(key, "eve"),
    r.zAdd(key, { value: "", score: 1 }),
    r.zRem(key, "eve"),
  ]);
  equal(all.map((one) => one.value), [1, 4, undefined, 1]);
  assert.match(all[2].reason.message, /member/);
  equal(await r.multi().zIncrBy(key, 1, "ann").zIncrBy(key, -1, "bob").zScore(key, "bob").exec(), [32, 19.5, 19.5]);

  const many = Array.from({ length: 1000 }, (_, score) => ({ value: `m${score}`, score }));
  equal(await r.zAdd(`${key}-many`, many), 1000);
  const seen = [];
  for await (const some of r.zScanIterator(`${key}-many`, { COUNT: 100 })) seen.push(...[some].flat());
  equal(seen.sort((a, b) => a.score - b.score), many);
  const keys = [];
  for await (const some of r.scanIterator({ COUNT: 1 })) keys.push(...[some].flat());
  assert.ok(keys.includes(key) && keys.includes("season"), keys);
  equal(await r.zPopMax(`${key}-many`), { value: "m999", score: 999 });
  equal(await r.zPopMinCount(`${key}-many`, 2), many.slice(0, 2));
  equal(await r.del(`${key}-many`), 1);
}

async function leaderboard(r, board) {
  const call = (...args) => r.sendCommand(args.map(String));
  equal(await call("LB.CREATE", board, "UPDATE", "best", "RANKING", "competition"), "OK");
  await assert.rejects(call("LB.CREATE", board, "UPDATE", "sum"), /definition_conflict/);
  // Integers are exact: the same as a sorted set's score would be a double.
  equal(await call("LB.SUBMIT", board, "ann", 100, "ID", `${board}-1`), [100, 1, null, null]);
  equal(await call("LB.SUBMIT", board, "bob", 300), [300, 1, null, null]);
  equal((await call("LB.SUBMIT", board, "ann", 100, "ID", `${board}-1`))[0], 100);
  equal(await call("LB.MSUBMIT", board, "cy", 100, "ann", 200), [[100, 2, null, null], [200, 2, 100, 2]]);
  equal(await call("LB.TOP", board, 2), [[1, "bob", 300], [2, "ann", 200]]);
  equal(await call("LB.AROUND", board, "ann", 1, 1), [[1, "bob", 300], [2, "ann", 200], [3, "cy", 100]]);
  equal(await call("LB.RANK", board, "cy"), [3, 100, 3]);
  equal(await call("LB.AMONG", board, "cy", "ann"), [[1, 2, "ann", 200], [2, 3, "cy", 100]]);
  equal(await call("LB.SUBMIT", "season", board, 7), [7, (await r.zCard("season@weekly")), null, null]);
  equal(await r.zScore("season@weekly", board), 7);
  await assert.rejects(r.zAdd("season@weekly", { value: "ann", score: 1 }), /^(Simple)?Error.*READONLY/s);
}

async function everything(r) {
  const keys = (await r.keys("*")).sort();
  return Promise.all(keys.map(async (key) => [key, await r.zRangeWithScores(key, 0, -1)]));
}

const stories = [await connect(2), await connect(3)];
for (const [at, r] of stories.entries()) {
  await sortedSet(r, `duels${at}`);
  await leaderboard(r, `laps${at}`);
}
const before = await everything(stories[0]);
equal(before.length, 5);
await ask("kill");
for (const r of stories) equal(await everything(r), before);

const key = await ask("key");
for (const RESP of [2, 3]) {
  await assert.rejects(async () => (await connect(RESP, { once: true })).ping(), /NOAUTH/);
  await assert.rejects(connect(RESP, { password: key.slice(1) }), /WRONGPASS/);
  await assert.rejects(connect(RESP, { username: "ann", password: key }), /WRONGPASS/);
  const r = await connect(RESP, { password: key });
  equal(await r.zIncrBy("duels1", 1, "fay"), RESP - 1);
  await r.close();
}
stories.forEach((r) => r.destroy());
console.log("end");
process.exit(0);
