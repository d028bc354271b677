// A game server's leaderboard over the Redis protocol, with node-redis (npm install redis).
//
//   TALLY_KEYS_REQUIRED=false cargo run --release -- serve     in another terminal
//   node examples/over_redis.mjs [redis://127.0.0.1:8421 [http://127.0.0.1:8420]]

import { createClient } from "redis";

const [url = "redis://127.0.0.1:8421", http = "http://127.0.0.1:8420"] = process.argv.slice(2);

// Once there are keys (`tally keys create --role server`): redis://:tally_...@host:8421
const client = createClient({ url });
// It connects again by itself; without a listener the first lost connection would end the process.
client.on("error", (error) => console.error("redis:", error.message));
await client.connect();

// Commands that Redis does not have are sent by name, their arguments as text.
const lb = (...args) => client.sendCommand(args.map(String));
const shown = (entries) => entries.map((entry) => entry.join(" ")).join(", ");

// A board; it may be repeated. Its week is added over HTTP, where periods are defined.
await lb("LB.CREATE", "arcade", "UPDATE", "best");
const put = await fetch(`${http}/v1/leaderboards/arcade`, {
  method: "PUT",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ periods: [{ name: "weekly", schedule: "0 0 * * 1" }] }),
});
if (!put.ok) throw new Error(await put.text());

// One submit counts for all time and for this week. A network may lose the reply: with an ID of your own (the match, the
// player) the same request can be sent again and counts once.
for (let attempt = 1; attempt <= 2; attempt++) {
  const [score, rank] = await lb("LB.SUBMIT", "arcade", "ada", 1200, "ID", "match-17-ada");
  console.log(`ada ${score}: rank ${rank}`);
}

// Many at once: what is sent without waiting goes out as one pipeline, and each still gets its own reply.
const submits = Array.from({ length: 100 }, (_, at) =>
  lb("LB.SUBMIT", "arcade", `p${String(at + 1).padStart(3, "0")}`, (at + 1) * 10),
);
// allSettled: a score that is refused fails alone.
const replies = await Promise.allSettled(submits);
console.log(`${replies.filter((reply) => reply.status === "fulfilled").length} players submitted`);

console.log("top 10:", shown(await lb("LB.TOP", "arcade", 10)));
console.log("around p050:", shown(await lb("LB.AROUND", "arcade", "p050", 2, 2)));
const friends = await lb("LB.AMONG", "arcade", "ada", "p007", "nobody");
console.log("friends:", shown(friends.map(([rank, , player, score]) => [rank, player, score])));

// A board is a key and reads like a sorted set; @weekly is its week, read only.
const best = await client.zRangeWithScores("arcade@weekly", 0, 0, { REV: true });
console.log("this week:", shown(best.map(({ value, score }, at) => [at + 1, value, score])));
await client.close();
