// What the package promises, against a real server behind a proxy. Argument: the address of the proxy.
//
// A line on the standard output asks the test for a fault; the answer is a line on the standard input.

import assert from "node:assert/strict";
import readline from "node:readline";
import { type BoardEvent, EventStream, LocalStorage, MemoryStorage, SubmitQueue, Tally, TallyError } from "tally-client";

const url = process.argv[2] ?? "";
const answers = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async (what: string): Promise<string> => {
  console.log(what);
  return (await answers.next()).value as string;
};
/** Patient: a server of a busy machine may take long to start. */
const retry = { attempts: 200, firstWait: 20, longestWait: 300 };
/** The calls that this story made, so that it leaves out none. */
const called = new Set<string | symbol>();
const recorded = (client: Tally): Tally =>
  new Proxy(client, {
    get(target, name) {
      called.add(name);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
const tally = recorded(new Tally({ url, retry }));
const once = new Tally({ url, retry: { attempts: 1 } });
const failure = async (call: Promise<unknown>): Promise<TallyError> => {
  const error: unknown = await call.then(
    () => assert.fail("it succeeds"),
    (error: unknown) => error,
  );
  assert.ok(error instanceof TallyError, String(error));
  return error;
};
const score = async (player: string): Promise<unknown> => (await tally.rank("sums", player))?.score;

async function errors(): Promise<void> {
  const wrong = await failure(tally.putBoard("b", { periods: [{ name: "weekly", schedule: "nonsense" }] }));
  assert.equal(wrong.code, "invalid_definition");
  assert.equal(wrong.status, 422);
  assert.match(wrong.errors[0]?.pointer ?? "", /schedule/);
  assert.ok(wrong.requestId && wrong.message);
  assert.equal((await failure(tally.board("nothing"))).code, "leaderboard_not_found");
  const nowhere = new Tally({ url: "http://127.0.0.1:1", retry: { attempts: 2, firstWait: 1 } });
  const lost = await failure(nowhere.health());
  assert.deepEqual([lost.code, lost.status], ["network_error", 0]);
  assert.match(lost.message, /127\.0\.0\.1:1/);
  assert.equal((await failure(tally.health({ signal: AbortSignal.abort() }))).code, "aborted");
  assert.throws(() => new Tally({ url: "localhost:8420" }), /http:\/\//);
}

async function retries(): Promise<void> {
  await tally.putBoard("sums", { update: "sum" });
  // The server commits and its answer is lost. Without retries the call fails, and the effect is there.
  await ask("cut lost-1");
  const lost = await failure(once.submit("sums", { player: "ann", score: 1 }, { idempotencyKey: "lost-1" }));
  assert.equal(lost.code, "network_error");
  assert.equal(await score("ann"), 1);
  // With them, it succeeds and counts once.
  await ask("cut lost-2");
  const done = await tally.submit("sums", { player: "ann", score: 10 }, { idempotencyKey: "lost-2" });
  assert.deepEqual([done.score, done.rank], [11, 1]);
  const ranked = await tally.submit("sums", { player: "ann", score: 10 }, { idempotencyKey: "lost-2", windows: "all" });
  assert.deepEqual(ranked.windows?.map(({ period, rank, score }) => [period, rank, score]), [["all_time", 1, 11]]);
  // The same with a key that the package makes: the player is the mark for the proxy.
  await ask("cut bob-the-mark");
  await tally.submit("sums", { player: "bob-the-mark", score: 5 });
  assert.equal(await score("bob-the-mark"), 5);
  // A batch, and money.
  await ask("cut dee-the-mark");
  await tally.submitMany(["cy", "dee-the-mark"].map((player) => ({ board: "sums", player, score: 3 })));
  assert.deepEqual([await score("cy"), await score("dee-the-mark")], [3, 3]);
  const member = await tally.createMember({ login_id: "ann", name: "Ann", player: "ann" });
  await ask("cut the-deposit");
  await tally.deposit({ to: member.id, amount: 70n, reference: "the-deposit" });
  assert.equal((await tally.wallets(member.id))[0]?.balance, "70");
  assert.deepEqual((await tally.transactions(member.id).take(9)).map(({ amount }) => amount), ["70"]);
  assert.equal((await tally.findMember({ player: "ann" }))?.id, member.id);
  // Node 18 has no global `crypto`.
  const { crypto } = globalThis;
  const replace = (value: unknown): unknown => Object.defineProperty(globalThis, "crypto", { value, configurable: true });
  replace(undefined);
  await Promise.all([1, 2].map((points) => tally.submit("sums", { player: "fay", score: points })));
  replace(crypto);
  assert.equal(await score("fay"), 3);
  // A server that is killed answers after its restart.
  const calls = Array.from({ length: 20 }, (_, at) => tally.submit("sums", { player: "eve", score: at }));
  await ask("kill");
  await Promise.all(calls);
  assert.equal(await score("eve"), 190);
  // Integers beyond 2^53 keep their digits.
  const exact = new Tally({ url, retry, int64: "string" });
  const big = await exact.submit("sums", { player: "max", score: 2n ** 62n + 1n });
  assert.equal(big.score, "4611686018427387905");
  // A longer Retry-After than the client waits is told at once.
  const answers = async (): Promise<Response> =>
    new Response(JSON.stringify({ code: "too_many_attempts", detail: "wait" }), { status: 429, headers: { "retry-after": "900" } });
  const throttled = await failure(new Tally({ url, fetch: answers }).health());
  assert.deepEqual([throttled.code, throttled.retryAfter], ["too_many_attempts", 900]);
}

async function pages(): Promise<void> {
  await tally.putBoard("pages", {});
  const rows = Array.from({ length: 25 }, (_, at) => ({ board: "pages", player: `p${at}`, score: at }));
  const [row] = await tally.submitMany(rows, { windows: "all" });
  assert.ok(row && "windows" in row && row.windows?.length === 1, JSON.stringify(row));
  const seen: string[] = [];
  for await (const { player } of tally.scores("pages", { limit: 4 })) seen.push(player);
  assert.deepEqual(seen, rows.map(({ player }) => player).reverse());
  const sizes: number[] = [];
  for await (const { items } of tally.scores("pages", { limit: 10, offset: 2 }).pages()) sizes.push(items.length);
  assert.deepEqual(sizes, [10, 10, 3]);
  assert.equal((await tally.scores("pages", { limit: 4 }).take(6)).length, 6);
  assert.equal((await tally.top("pages", 3)).length, 3);
  assert.equal(await tally.rank("pages", "nobody"), null);
  assert.deepEqual((await tally.boards({ limit: 1 }).take(9)).map(({ board }) => board), ["pages", "sums"]);
}

async function events(): Promise<void> {
  const contest = await tally.createContest({ id: "cup", title: "Cup" });
  const stop = new AbortController();
  const stream = tally.contestEvents("cup", { lastEventId: "0", signal: stop.signal });
  const states: [string, string | undefined][] = [];
  const steps = [
    () => tally.openContest("cup"),
    // The server ends, and the stream goes on with the next one.
    () => ask("kill").then(() => tally.startContest("cup")),
    () => tally.finishContest("cup"),
    () => tally.settleContest("cup"),
  ];
  for await (const event of stream) {
    assert.equal(event.type, "contest");
    if (event.type !== "contest") continue;
    states.push([event.data.state, event.id]);
    const step = steps.shift();
    if (step) await step();
    else stop.abort();
  }
  assert.deepEqual(states.map(([state]) => state), ["draft", "open", "running", "finished", "settled"]);
  assert.equal(stream.lastEventId, states[4]?.[1]);
  // Another stream goes on behind the event that it is given.
  for await (const event of tally.contestEvents(contest.id, { lastEventId: states[2]?.[1] })) {
    assert.deepEqual([event.type === "contest" && event.data.state, event.id], ["finished", states[3]?.[1]]);
    break;
  }
  // A live feed begins before its first event.
  const feed: EventStream<BoardEvent> = recorded(new Tally({ url, retry, int64: "string" })).boardEvents("pages");
  const heard: string[] = [];
  // Each of them changes the record, so the feed has one that comes after its beginning.
  let next = 1000;
  const submits = setInterval(() => void tally.submit("pages", { player: "live", score: next++ }), 50);
  for await (const event of feed) {
    if (event.type === "score") heard.push(...event.data.entries.map(({ player, score }) => `${player} ${typeof score}`));
    if (heard.length > 0) break;
  }
  clearInterval(submits);
  assert.ok(heard.every((one) => one === "live string"), String(heard));
  const gone = (async () => {
    for await (const _ of tally.boardEvents("nothing")) assert.fail("it has events");
  })();
  assert.equal((await failure(gone)).code, "leaderboard_not_found");
}

async function queue(): Promise<void> {
  const storage = new MemoryStorage();
  const told: string[] = [];
  const options = {
    storage,
    max: 3,
    onSent: ({ player }: { player: string }) => told.push(player),
    onRefused: ({ player }: { player: string }, { code }: TallyError) => told.push(`${player} ${code}`),
  };
  const offline = new Tally({ url: "http://127.0.0.1:1", retry: { attempts: 1 } });
  const away = new SubmitQueue(offline, options);
  await away.add("sums", { player: "q1", score: 4 });
  await away.add("nowhere at all@", { player: "q2", score: 4 });
  await away.add("sums", { player: "q3", score: 5n });
  const full = await failure(away.add("sums", { player: "q4", score: 4 }));
  assert.equal(full.code, "queue_full");
  const report = await away.flush();
  assert.deepEqual([report.sent, report.refused, report.waiting, report.error?.code], [0, 0, 3, "network_error"]);
  // The program ends; its next run has the scores. The first answer is lost, and they count once.
  const back = new SubmitQueue(new Tally({ url, retry: { attempts: 1 } }), options);
  await ask("cut q3");
  const broken = await back.flush();
  assert.deepEqual([broken.waiting, broken.error?.code], [3, "network_error"]);
  const done = await new SubmitQueue(tally, options).flush();
  assert.deepEqual([done.sent, done.refused, done.waiting], [2, 1, 0]);
  assert.deepEqual([await score("q1"), await score("q3")], [4, 5]);
  assert.deepEqual(told.filter((line) => !line.includes(" ")), ["q1", "q3"]);
  assert.match(told[1] ?? "", /^q2 [a-z_]+$/);
  // What was sent a day ago without an answer is not sent again.
  const old = { board: "sums", player: "q1", score: 4, id: "old", sent_at: Date.now() - 86_400_000 };
  storage.save(JSON.stringify([old]));
  assert.equal((await new SubmitQueue(tally, options).flush()).refused, 1);
  assert.equal(told.at(-1), "q1 outcome_unknown");
  // A score that an earlier release of the package stored counts once, under the key that it has there.
  for (const _ of [1, 2]) {
    storage.save(JSON.stringify([{ board: "sums", player: "q6", score: 4, id: "stored-before" }]));
    assert.equal((await new SubmitQueue(tally, options).flush()).sent, 1);
  }
  assert.equal(await score("q6"), 4);
  storage.save("{broken");
  assert.equal((await failure(new SubmitQueue(tally, options).size())).code, "storage_failed");
  // A browser may forbid its storage.
  const forbidden = { load: () => assert.fail("no access"), save: () => {} };
  assert.equal((await failure(new SubmitQueue(tally, { storage: forbidden }).size())).code, "storage_failed");
}

async function members(): Promise<void> {
  const password = "a long password";
  const { id } = await tally.createMember({ login_id: "kim", name: "Kim", player: "kim", password });
  assert.equal((await tally.member(id)).login_id, "kim");
  const { currency } = await tally.deposit({ to: id, amount: 100 });
  await tally.withdraw({ from: id, amount: 10, currency });
  const hold = await tally.placeHold({ member: id, amount: 30 });
  assert.equal((await tally.captureHold(hold.id, { amount: 20 })).captured, "20");
  const other = await tally.placeHold({ member: id, amount: 30 });
  assert.equal((await tally.voidHold(other.id)).state, "voided");
  const ann = (await tally.findMember({ login_id: "ann" }))?.id ?? "";
  await tally.transfer({ from: id, to: ann, amount: 5 });
  const own = recorded(new Tally({ url, retry }));
  assert.equal((await failure(own.signIn("kim", "another password"))).code, "invalid_credentials");
  assert.match(await own.signIn("kim", password), /\./);
  assert.equal((await own.request<{ balance: string }>("GET", "/v1/me/wallet")).balance, "65");
  // The member hears of its own money, from the first event on.
  const amounts: string[] = [];
  for await (const event of own.myEvents({ lastEventId: `${currency}.0` })) {
    if (event.type === "transaction") amounts.push(event.data.amount);
    if (amounts.length === 4) break;
  }
  assert.deepEqual(amounts, ["100", "10", "20", "5"]);
}

async function boards(): Promise<void> {
  const prizes = [{ from: 1, to: 1, currency: "KRW", amount: 5 }];
  await tally.putBoard("weeks", { periods: [{ name: "weekly", schedule: "0 0 * * 1", prizes }] });
  await tally.submit("weeks", { player: "ann", score: 1, at: new Date().toISOString() });
  const [week] = await tally.periods("weeks").take(1);
  assert.deepEqual([week?.name, week?.state, week?.total], ["weekly", "open", 1]);
  assert.equal((await failure(tally.periodPrizes("weeks", "weekly:1971-01-01").take(1))).code, "period_not_found");
  assert.equal((await tally.around("weeks", "ann")).length, 1);
  assert.deepEqual((await tally.among("weeks", ["ann", "bob"])).missing, ["bob"]);
  await tally.removePlayer("weeks", "ann");
  assert.equal((await tally.board("weeks")).counts["all_time"], 0);
  await tally.deleteBoard("weeks");
}

async function contests(): Promise<void> {
  const { id } = await tally.createContest({ title: "Small cup" });
  await tally.openContest(id, { idempotencyKey: "open" });
  for (const player of ["ann", "kim", "max", "eve"]) await tally.apply(id, player);
  await tally.withdrawApplication(id, "eve");
  const decided = [...(await tally.accept(id, ["ann", "eve"])), ...(await tally.reject(id, ["max"]))];
  assert.deepEqual(decided.map((row) => ("error" in row ? row.error.code : row.status)), ["accepted", "not_applied", "rejected"]);
  assert.deepEqual((await tally.applications(id).take(9)).map(({ player }) => player), ["kim"]);
  assert.equal((await tally.startContest(id)).enrolled, 1);
  assert.deepEqual((await tally.contestPlayers(id).take(9)).map(({ player }) => player), ["ann"]);
  const { board } = await tally.contest(id);
  await tally.submit(board ?? "", { player: "ann", score: 1 });
  await tally.finishContest(id);
  assert.deepEqual(await tally.prizes(id, { preview: true }).take(9), []);
  assert.equal((await tally.settleContest(id)).state, "settled");
  assert.deepEqual(await tally.prizes(id).take(9), []);
  const other = await tally.createContest({ title: "No cup" });
  assert.equal((await tally.cancelContest(other.id)).state, "cancelled");
  assert.deepEqual((await tally.contests({ state: "cancelled" }).take(9)).map((one) => one.id), [other.id]);
}

async function browser(): Promise<void> {
  // The part of a browser that the storage uses.
  const texts = new Map<string, string>();
  const localStorage = {
    getItem: (name: string) => texts.get(name) ?? null,
    setItem: (name: string, text: string) => texts.set(name, text),
  };
  Object.assign(globalThis, { localStorage });
  await new SubmitQueue(tally, { storage: new LocalStorage("scores") }).add("sums", { player: "q5", score: 1 });
  const later = new SubmitQueue(tally, { storage: new LocalStorage("scores") });
  assert.equal(await later.size(), 1);
  // In the background.
  const stop = later.flushEvery(5);
  while ((await later.size()) > 0) await new Promise((again) => setTimeout(again, 5));
  stop();
  assert.equal(await score("q5"), 1);
}

await errors();
await retries();
await pages();
await events();
await queue();
await members();
await boards();
await contests();
await browser();
const calls = Object.getOwnPropertyNames(Tally.prototype).filter((name) => name !== "constructor");
assert.deepEqual(calls.filter((name) => !called.has(name)), []);
console.log("end");
process.exit(0);
