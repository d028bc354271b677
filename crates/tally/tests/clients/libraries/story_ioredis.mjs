// A leaderboard's story in ioredis. Arguments: host, port.

import assert from "node:assert/strict";
import readline from "node:readline";
import { Redis } from "ioredis";

const [host, port] = process.argv.slice(2);
const answers = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async (what) => {
  console.log(what);
  return (await answers.next()).value;
};
const equal = assert.deepEqual;

const connect = (options) => {
  const redis = new Redis({ host, port: Number(port), retryStrategy: () => 50, ...options });
  // Lost connections are told here; without a listener they are printed.
  redis.on("error", () => {});
  return redis;
};

const r = connect();
equal(await r.zadd("duels", 30, "ann", 20.5, "bob", 10, "cy", 20.5, "dee"), 4);
equal(await r.zincrby("duels", 5, "cy"), "15");
equal(await r.zrevrange("duels", 0, 1, "WITHSCORES"), ["ann", "30", "dee", "20.5"]);
equal(await r.zrange("duels", 0, -1), ["cy", "bob", "dee", "ann"]);
equal(await r.zrangebyscore("duels", "(15", "+inf", "LIMIT", 0, 1), ["bob"]);
equal([await r.zrank("duels", "ann"), await r.zrevrank("duels", "ann")], [3, 0]);
const piped = await r.pipeline().zadd("duels", 1, "eve").zadd("duels", 1, "").zrem("duels", "eve").exec();
equal(piped.map(([, value]) => value), [1, undefined, 1]);
assert.match(piped[1][0].message, /member/);
equal(await r.multi().zincrby("duels", 1, "ann").zscore("duels", "ann").exec(), [[null, "31"], [null, "31"]]);
await assert.rejects(r.multi().zadd("duels", 1).exec(), /EXECABORT/);
const seen = new Map();
await r.zadd("many", ...Array.from({ length: 2000 }, (_, at) => (at % 2 ? `m${at >> 1}` : at >> 1)));
for await (const some of r.zscanStream("many", { count: 100 })) {
  for (let at = 0; at < some.length; at += 2) seen.set(some[at], Number(some[at + 1]));
}
equal(seen.size, 1000);
assert.ok([...seen].every(([member, score]) => member === `m${score}`));
equal(await r.zpopmax("many"), ["m999", "999"]);
equal(await r.zremrangebyscore("many", "-inf", "+inf"), 999);
equal(await r.exists("many"), 0);

equal(await r.call("LB.CREATE", "laps", "ORDER", "ascending"), "OK");
equal(await r.call("LB.SUBMIT", "laps", "ann", 61200, "ID", "a1"), [61200, 1, null, null]);
equal(await r.call("LB.SUBMIT", "laps", "ann", 61200, "ID", "a1"), [61200, 1, null, null]);
equal(await r.call("LB.SUBMIT", "laps", "bob", 59900), [59900, 1, null, null]);
equal(await r.call("LB.TOP", "laps", 10), [[1, "bob", 59900], [2, "ann", 61200]]);
equal(await r.call("LB.AROUND", "laps", "ann", 0, 1), [[2, "ann", 61200]]);
equal(await r.call("LB.RANK", "laps", "ann"), [2, 61200, 2]);
equal(await r.call("LB.AMONG", "laps", "ann", "nobody"), [[1, 2, "ann", 61200]]);
equal(await r.call("LB.SUBMIT", "season", "ann", 7), [7, 1, null, null]);
equal(await r.zrevrange("season@weekly", 0, -1, "WITHSCORES"), ["ann", "7"]);

const everything = async () => {
  const keys = (await r.keys("*")).sort();
  return Promise.all(keys.map(async (key) => [key, await r.zrange(key, 0, -1, "WITHSCORES")]));
};
const before = await everything();
equal(before.map(([key]) => key), ["duels", "laps", "season"]);
await ask("kill");
equal(await everything(), before);
r.disconnect();

const key = await ask("key");
const refused = async (options) => {
  const client = connect({ ...options, maxRetriesPerRequest: 0, retryStrategy: null });
  await assert.rejects(client.zcard("duels"), /NOAUTH|WRONGPASS|closed/);
  client.disconnect();
};
await refused({});
await refused({ password: key.slice(1) });
await refused({ username: "ann", password: key });
const allowed = connect({ password: key });
equal(await allowed.zcard("duels"), 4);
allowed.disconnect();
console.log("end");
process.exit(0);
