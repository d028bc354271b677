// What the package promises in a browser, on a page that has one origin with the server. The test calls `first`, loads the page
// again and calls `afterReload`: a queue in the storage of the browser outlives its page.

import { LocalStorage, SubmitQueue, Tally, TallyError } from "tally-client";

const url = location.origin;
const tally = new Tally({ url });

function equal(real: unknown, wanted: unknown): void {
  const [is, should] = [JSON.stringify(real), JSON.stringify(wanted)];
  if (is !== should) throw new Error(`it is ${is} and should be ${should}`);
}

const failure = async (call: Promise<unknown>): Promise<TallyError> => {
  const error: unknown = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(error instanceof TallyError)) throw new Error(`it is no TallyError: ${String(error)}`);
  return error;
};

async function calls(): Promise<void> {
  await tally.putBoard("sums", { update: "sum" });
  equal((await tally.submit("sums", { player: "ann", score: 1 })).rank, 1);
  const exact = new Tally({ url, int64: "string" });
  equal((await exact.submit("sums", { player: "max", score: 2n ** 62n + 1n })).score, "4611686018427387905");
  const missing = await failure(tally.board("nothing"));
  equal([missing.code, missing.status, missing.requestId !== undefined], ["leaderboard_not_found", 404, true]);
  equal((await failure(tally.health({ signal: AbortSignal.abort() }))).code, "aborted");
}

async function retries(): Promise<void> {
  // The server counts the score, and the page loses the answer once.
  let lost = 0;
  const losing: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    if (lost++ === 0) throw new TypeError("the answer is lost");
    return answer;
  };
  const patient = new Tally({ url, fetch: losing, retry: { firstWait: 1 } });
  equal((await patient.submit("sums", { player: "ann", score: 10 })).score, 11);
  equal(lost, 2);
}

async function pages(): Promise<void> {
  await tally.putBoard("pages", {});
  const rows = Array.from({ length: 9 }, (_, at) => ({ board: "pages", player: `p${at}`, score: at }));
  await tally.submitMany(rows);
  const seen: string[] = [];
  for await (const { player } of tally.scores("pages", { limit: 4 })) seen.push(player);
  equal(seen, rows.map(({ player }) => player).reverse());
}

async function events(): Promise<void> {
  await tally.createContest({ id: "cup", title: "Cup" });
  await tally.openContest("cup");
  const states: string[] = [];
  const stream = tally.contestEvents("cup", { lastEventId: "0" });
  for await (const event of stream) {
    if (event.type === "contest") states.push(event.data.state);
    if (states.length === 2) break;
  }
  equal(states, ["draft", "open"]);
  // Another stream goes on behind it, with an event that comes while it waits.
  const next = tally.contestEvents("cup", { lastEventId: stream.lastEventId });
  setTimeout(() => void tally.cancelContest("cup"), 50);
  for await (const event of next) {
    equal(event.type === "contest" && event.data.state, "cancelled");
    break;
  }
}

async function members(): Promise<void> {
  await tally.createMember({ login_id: "kim", name: "Kim", player: "kim", password: "a long password" });
  const own = new Tally({ url });
  await own.signIn("kim", "a long password");
  equal((await own.request<{ login_id: string }>("GET", "/v1/me")).login_id, "kim");
}

const queue = (): SubmitQueue => new SubmitQueue(tally, { storage: new LocalStorage("scores") });

async function first(): Promise<void> {
  for (const part of [calls, retries, pages, events, members]) await part();
  await queue().add("sums", { player: "bob", score: 5 });
  await queue().add("sums", { player: "bob", score: 6n });
}

async function afterReload(): Promise<void> {
  const later = queue();
  equal(await later.size(), 2);
  // The browser is online again, long before the next flush.
  const stop = later.flushEvery(3_600_000);
  dispatchEvent(new Event("online"));
  while ((await later.size()) > 0) await new Promise((again) => setTimeout(again, 5));
  stop();
  equal((await tally.rank("sums", "bob"))?.score, 11);
}

Object.assign(globalThis, { story: { first, afterReload } });
