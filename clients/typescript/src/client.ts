// The calls of a tally server by what they are for.

import { EventStream, type EventOptions } from "./events.js";
import { TallyError } from "./errors.js";
import { Pages } from "./pages.js";
import { type CallOptions, type Query, type RequestOptions, type TallyOptions, Transport } from "./transport.js";
import type * as T from "./types.js";

/** What every read of ranks takes. */
export interface ReadOptions extends CallOptions {
  /** `all_time`, `weekly`, `weekly:previous`, `weekly:2026-11-16`. All time, or the first period of a board without it. */
  period?: string | undefined;
  /** Adds the profile of each player. */
  expand?: "player" | undefined;
}

export interface AroundOptions extends ReadOptions {
  /** How many ranks above the player, 0 to 100. 5. */
  above?: number | undefined;
  /** How many below, 0 to 100. 5. */
  below?: number | undefined;
}

export interface BoardOptions extends ReadOptions {
  /** The size of a page, 1 to 1,000. 100. */
  limit?: number | undefined;
  /** Worst first with `worst`. */
  order?: "best" | "worst" | undefined;
  /** Begins at this place of the list, from 0. */
  offset?: number | undefined;
  /** Only scores between these bounds, which are included. */
  min?: number | string | undefined;
  max?: number | string | undefined;
}

export interface ListOptions extends CallOptions {
  /** The size of a page, 1 to 1,000. 100. */
  limit?: number | undefined;
}

export interface SubmitOptions extends CallOptions {
  /** Adds `windows`: the rank in each window that the score counted for, such as all time and this week. */
  windows?: "all" | undefined;
}

const path = (...parts: string[]): string => `/v1/${parts.map(encodeURIComponent).join("/")}`;

/**
 * A tally server.
 *
 *     const tally = new Tally({ url: "https://tally.example.com", key: "tally_…" });
 *     const { rank } = await tally.submit("arcade", { player: "ada", score: 1200 });
 *
 * Every change has an idempotency key and is retried, so it counts once or throws a `TallyError`.
 */
export class Tally {
  readonly #transport: Transport;

  constructor(options: TallyOptions) {
    this.#transport = new Transport(options);
  }

  /** Any operation of the server, with the retries of this client: `request("GET", "/v1/currencies")`. */
  request<Answer = unknown>(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    return this.#transport.request<Answer>(method, path, options);
  }

  /** Whether the server is alive. */
  health(options: CallOptions = {}): Promise<{ status: string }> {
    return this.request("GET", "/healthz", options);
  }

  // Leaderboards

  /** Makes a board, or changes the periods of one. Repeat it at every start of your program. */
  putBoard(board: string, definition: T.BoardDefinition = {}, options: CallOptions = {}): Promise<T.Board> {
    return this.request("PUT", path("leaderboards", board), { ...options, body: definition });
  }

  board(board: string, options: CallOptions = {}): Promise<T.Board> {
    return this.request("GET", path("leaderboards", board), options);
  }

  boards(options: ListOptions = {}): Pages<T.Board> {
    return this.#list(path("leaderboards"), options);
  }

  /** Removes a board and its scores at once. */
  deleteBoard(board: string, options: CallOptions = {}): Promise<void> {
    return this.request("DELETE", path("leaderboards", board), options);
  }

  /** The instances of the periods of a board, newest first. */
  periods(board: string, options: ListOptions = {}): Pages<T.PeriodInstance> {
    return this.#list(path("leaderboards", board, "periods"), options);
  }

  // Scores and ranks

  /** Submits a score. It is durable when this resolves, and has its rank. */
  submit(board: string, score: T.NewScore, options: SubmitOptions = {}): Promise<T.Submitted> {
    const { windows, ...call } = options;
    return this.request("POST", path("leaderboards", board, "scores"), { ...call, query: { windows }, body: score });
  }

  /** Submits 1 to 1,000 scores. A row that is refused fails alone: look at each result. */
  async submitMany(
    scores: T.NewRow[],
    options: SubmitOptions = {},
  ): Promise<(T.SubmittedRow | T.RefusedRow)[]> {
    const { windows, ...call } = options;
    const sent = { ...call, query: { windows }, body: { scores } };
    const at = path("scores", "batch");
    return (await this.request<{ results: (T.SubmittedRow | T.RefusedRow)[] }>("POST", at, sent)).results;
  }

  /** The ranks of a board, best first. */
  scores(board: string, options: BoardOptions = {}): Pages<T.Entry> {
    const { period, expand, limit, order, offset, min, max, ...call } = options;
    const query = { period, expand, limit: limit ?? 100, order, min, max };
    const at = path("leaderboards", board, "scores");
    return new Pages(async (cursor) => {
      const paged = cursor === undefined ? { ...query, offset } : { ...query, cursor };
      const page = await this.request<{ entries: T.Entry[]; next_cursor?: string }>("GET", at, { ...call, query: paged });
      return { items: page.entries, ...(page.next_cursor !== undefined && { next_cursor: page.next_cursor }) };
    });
  }

  /** The best `count` of a board, at most 1,000, in one request. */
  top(board: string, count: number, options: ReadOptions = {}): Promise<T.Entry[]> {
    return this.scores(board, { ...options, limit: count }).take(count);
  }

  /** The rank of a player, or null if the player has none. */
  async rank(board: string, player: string, options: ReadOptions = {}): Promise<T.PlayerRank | null> {
    const { period, expand: _, ...call } = options;
    try {
      return await this.request("GET", path("leaderboards", board, "players", player), { ...call, query: { period } });
    } catch (error) {
      if (error instanceof TallyError && error.code === "player_not_ranked") return null;
      throw error;
    }
  }

  /** The ranks around a player. */
  async around(board: string, player: string, options: AroundOptions = {}): Promise<T.Entry[]> {
    const { period, expand, above, below, ...call } = options;
    const at = path("leaderboards", board, "players", player, "around");
    const query = { period, expand, above, below };
    return (await this.request<{ entries: T.Entry[] }>("GET", at, { ...call, query })).entries;
  }

  /** The ranks of players among each other, such as friends. */
  among(board: string, players: string[], options: ReadOptions = {}): Promise<T.Among> {
    const { period, expand, ...call } = options;
    const at = path("leaderboards", board, "among");
    return this.request("POST", at, { ...call, query: { period, expand }, body: { players }, changes: false });
  }

  /** Takes a player out of a board. */
  removePlayer(board: string, player: string, options: CallOptions = {}): Promise<void> {
    return this.request("DELETE", path("leaderboards", board, "players", player), options);
  }

  /** Prizes of a closed period. */
  periodPrizes(board: string, period: string, options: ListOptions = {}): Pages<T.Payout> {
    return this.#list(path("leaderboards", board, "prizes"), options, { period });
  }

  /** Changes of a board as they happen. */
  boardEvents(board: string, options: EventOptions = {}): EventStream<T.BoardEvent> {
    return new EventStream(this.#transport, path("leaderboards", board, "events"), options);
  }

  // Members and money

  createMember(member: T.NewMember, options: CallOptions = {}): Promise<T.Member> {
    return this.request("POST", path("members"), { ...options, body: member });
  }

  member(member: string, options: CallOptions = {}): Promise<T.Member> {
    return this.request("GET", path("members", member), options);
  }

  /** The member with this login, phone number or player, or null. */
  async findMember(
    by: { login_id: string } | { phone_number: string } | { player: string },
    options: CallOptions = {},
  ): Promise<T.Member | null> {
    const { items } = await this.request<{ items: T.Member[] }>("GET", path("members"), { ...options, query: by });
    return items[0] ?? null;
  }

  /** Signs a member in, and uses the token for what this client sends from then on. Answers the token. */
  async signIn(login: string, password: string, options: CallOptions = {}): Promise<string> {
    const body = { loginId: login, password };
    const call = { ...options, body, changes: false };
    const { data } = await this.request<{ data: { accessToken: string } }>("POST", "/auth/signin", call);
    this.#transport.key = data.accessToken;
    return data.accessToken;
  }

  /** The wallets of a member, one for each currency. */
  async wallets(member: string, options: CallOptions = {}): Promise<T.Wallet[]> {
    return (await this.request<{ items: T.Wallet[] }>("GET", path("wallets", member), options)).items;
  }

  /** The transactions of a member, newest first. */
  transactions(member: string, options: ListOptions & { currency?: string } = {}): Pages<T.Transaction> {
    const { currency, ...list } = options;
    return this.#list(path("wallets", member, "transactions"), list, { currency });
  }

  deposit(deposit: T.NewDeposit, options: CallOptions = {}): Promise<T.Transaction> {
    return this.request("POST", path("deposits"), { ...options, body: deposit });
  }

  withdraw(withdrawal: T.NewWithdrawal, options: CallOptions = {}): Promise<T.Transaction> {
    return this.request("POST", path("withdrawals"), { ...options, body: withdrawal });
  }

  transfer(transfer: T.NewTransfer, options: CallOptions = {}): Promise<T.Transaction> {
    return this.request("POST", path("transfers"), { ...options, body: transfer });
  }

  /** Reserves money until it is captured or voided. */
  placeHold(hold: T.NewHold, options: CallOptions = {}): Promise<T.Hold> {
    return this.request("POST", path("holds"), { ...options, body: hold });
  }

  /** Takes held money: all of it, or `amount`; for the member `to`, or as a fee. */
  captureHold(hold: string, what: { amount?: T.Amount; to?: string } = {}, options: CallOptions = {}): Promise<T.Hold> {
    return this.request("POST", path("holds", hold, "capture"), { ...options, body: what });
  }

  /** Gives held money back. */
  voidHold(hold: string, options: CallOptions = {}): Promise<T.Hold> {
    return this.request("POST", path("holds", hold, "void"), { ...options, body: {} });
  }

  /** The transactions of the member that signed in, as they happen. */
  myEvents(options: EventOptions = {}): EventStream<T.MemberEvent> {
    return new EventStream(this.#transport, path("me", "events"), options);
  }

  // Contests

  /** Makes a contest in the state `draft`. */
  createContest(contest: T.NewContest, options: CallOptions = {}): Promise<T.Contest> {
    return this.request("POST", path("contests"), { ...options, body: contest });
  }

  contest(contest: string, options: CallOptions = {}): Promise<T.Contest> {
    return this.request("GET", path("contests", contest), options);
  }

  /** Of one state or one series, or all. */
  contests(options: ListOptions & { state?: T.ContestState; series?: string } = {}): Pages<T.Contest> {
    const { state, series, ...list } = options;
    return this.#list(path("contests"), list, { state, series });
  }

  /** Lets players apply. */
  openContest(contest: string, options: CallOptions = {}): Promise<T.Contest> {
    return this.request("POST", path("contests", contest, "open"), options);
  }

  /** Makes the accepted players those of the contest, and takes their fees. */
  startContest(contest: string, options: CallOptions = {}): Promise<T.StartedContest> {
    return this.request("POST", path("contests", contest, "start"), options);
  }

  /** Ends the scores. The review begins. */
  finishContest(contest: string, options: CallOptions = {}): Promise<T.Contest> {
    return this.request("POST", path("contests", contest, "finish"), options);
  }

  /** Ends the review and pays the prizes. `state` is `finished` while some are still being paid. */
  settleContest(contest: string, options: CallOptions = {}): Promise<T.Contest> {
    return this.request("POST", path("contests", contest, "settle"), options);
  }

  /** Ends a contest without prizes, and pays fees back. */
  cancelContest(contest: string, options: CallOptions = {}): Promise<T.Contest> {
    return this.request("POST", path("contests", contest, "cancel"), options);
  }

  /** Applies for a player, or for the member that signed in. Holds the entry fee. */
  apply(contest: string, player?: string, options: CallOptions = {}): Promise<T.Application> {
    const body = player === undefined ? {} : { player };
    return this.request("POST", path("contests", contest, "applications"), { ...options, body });
  }

  withdrawApplication(contest: string, player: string, options: CallOptions = {}): Promise<void> {
    return this.request("DELETE", path("contests", contest, "applications", player), options);
  }

  /** The applications of a contest that has not started. Pending ones by default. */
  applications(contest: string, options: ListOptions & { state?: T.Application["state"] } = {}): Pages<T.Application> {
    const { state, ...list } = options;
    return this.#list(path("contests", contest, "applications"), list, { state });
  }

  /** Accepts 1 to 1,000 players, each for itself: look at each result. */
  accept(contest: string, players: string[], options: CallOptions = {}): Promise<T.Decided[]> {
    return this.#decide(contest, "accept", players, options);
  }

  /** Rejects 1 to 1,000 players and releases their fees, each for itself. */
  reject(contest: string, players: string[], options: CallOptions = {}): Promise<T.Decided[]> {
    return this.#decide(contest, "reject", players, options);
  }

  contestPlayers(contest: string, options: ListOptions = {}): Pages<T.ContestPlayer> {
    return this.#list(path("contests", contest, "players"), options);
  }

  /** The prizes of a settled contest; with `preview`, those that a settlement would pay now. */
  prizes(contest: string, options: ListOptions & { preview?: boolean | undefined } = {}): Pages<T.Payout> {
    const { preview, ...list } = options;
    return this.#list(path("contests", contest, "prizes"), list, { preview });
  }

  /** Changes of the state of a contest as they happen. */
  contestEvents(contest: string, options: EventOptions = {}): EventStream<T.ContestEvent> {
    return new EventStream(this.#transport, path("contests", contest, "events"), options);
  }

  async #decide(contest: string, what: string, players: string[], options: CallOptions): Promise<T.Decided[]> {
    const at = path("contests", contest, "applications", what);
    return (await this.request<{ results: T.Decided[] }>("POST", at, { ...options, body: { players } })).results;
  }

  #list<Item>(at: string, { limit, ...call }: ListOptions, query: Query = {}): Pages<Item> {
    return new Pages((cursor) => this.request("GET", at, { ...call, query: { ...query, limit: limit ?? 100, cursor } }));
  }
}
