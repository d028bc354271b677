// A game server's leaderboard over HTTP, with Node's own fetch.
//
//   TALLY_KEYS_REQUIRED=false cargo run --release -- serve     in another terminal
//   node examples/over_http.mjs [http://127.0.0.1:8420]

const url = process.argv[2] ?? "http://127.0.0.1:8420";

async function ask(method, path, body, retryKey) {
  const headers = { "content-type": "application/json" };
  // Once there are keys (`tally keys create --role server`): headers.authorization = "Bearer tally_..."
  if (retryKey) headers["idempotency-key"] = retryKey;
  const answer = await fetch(`${url}/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  // fetch does not throw on a refusal. Its body says what is wrong; `code` is for programs.
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  // Scores are 64-bit integers; beyond 2^53 send the header `tally-int64: string`, or digits are lost here.
  return answer.json();
}

const shown = (entries) => entries.map(({ rank, player, score }) => `${rank} ${player} ${score}`).join(", ");

// A board, with a weekly one inside it. PUT may be repeated: do it at every start of your game server.
await ask("PUT", "/leaderboards/arcade", {
  update: "best",
  periods: [{ name: "weekly", schedule: "0 0 * * 1" }],
});

// One submit counts for all time and for this week. A network may lose the answer: with a key of your own (the match, the
// player) the same request can be sent again and counts once.
for (let attempt = 1; attempt <= 2; attempt++) {
  const score = { player: "ada", score: 1200 };
  const done = await ask("POST", "/leaderboards/arcade/scores", score, "match-17-ada");
  console.log(`ada ${done.score}: rank ${done.rank}`);
}

// Up to 1000 scores in one request. A row that is refused fails alone, so look at each.
const scores = Array.from({ length: 100 }, (_, at) => ({
  board: "arcade",
  player: `p${String(at + 1).padStart(3, "0")}`,
  score: (at + 1) * 10,
}));
const { results } = await ask("POST", "/scores/batch", { scores });
console.log(`${results.filter((result) => !result.error).length} players submitted`);

const top = await ask("GET", "/leaderboards/arcade/scores?limit=10");
console.log("top 10:", shown(top.entries));
// A player's name can have any character: encode it.
const player = encodeURIComponent("p050");
const around = await ask("GET", `/leaderboards/arcade/players/${player}/around?above=2&below=2`);
console.log("around p050:", shown(around.entries));
const friends = await ask("POST", "/leaderboards/arcade/among", { players: ["ada", "p007", "nobody"] });
console.log("friends:", shown(friends.entries));
const week = await ask("GET", "/leaderboards/arcade/scores?period=weekly&limit=1");
console.log("this week:", shown(week.entries));
