// The shapes of requests and answers, as the OpenAPI document of the server has them.
//
// They are written by hand, because the generated ones are 14,000 lines without names to read. A test of the project compares
// them with the generated ones. An answer may have more fields in a later version.

/** An instant of RFC 3339, such as `2026-11-20T10:00:00Z`. Answers are in UTC with microseconds. */
export type Instant = string;
/** Money of an answer: a whole number of the smallest unit of its currency, as text. */
export type Money = string;
/** Money of a request: a whole number of the smallest unit, 1 to 10^15. */
export type Amount = number | bigint | string;
/** A score of an answer. A number, but with `int64: "string"` a string; and `inf` and `-inf` of float64 boards. */
export type Score = number | string;

/** A recurring period of a board, such as a week. */
export interface Period {
  /** `[a-z0-9_-]{1,32}` */
  name: string;
  /** Cron of five fields: when one instance ends and the next begins. */
  schedule: string;
  /** The zone of `schedule`, such as `Asia/Seoul`. UTC. */
  time_zone?: string;
  /** How many closed instances are kept. 12. */
  keep?: number;
  /** For how many seconds after its end an instance takes scores that happened in it. 0. */
  grace_s?: number;
  /** What ranks get when an instance is closed. */
  prizes?: Prize[];
  prize_ties?: "split" | "each";
}

/** What each rank of a range gets. */
export interface Prize {
  from: number;
  to: number;
  currency: string;
  amount: Amount;
}

/** A board. What is left out has its default at creation, which comes first, and keeps its value after that. */
export interface BoardDefinition {
  order?: "descending" | "ascending";
  update?: "best" | "latest" | "sum";
  ranking?: "ordinal" | "competition" | "dense";
  ties?: "first" | "last" | "player" | "player_reversed";
  score?: "int64" | "float64";
  subscore?: "none" | "descending" | "ascending";
  all_time?: boolean;
  periods?: Period[];
}

export interface Board extends Required<BoardDefinition> {
  board: string;
  /** Ranked players of all time and of each open period. */
  counts: Record<string, number>;
  created_at: Instant;
}

export interface NewScore {
  player: string;
  /** A `bigint` or a string keeps integers beyond 2^53 exact. */
  score: number | bigint | string;
  subscore?: number | bigint | string;
  /** When it happened; at most 5 s ahead of the server. The moment of its arrival if it is left out. */
  at?: Instant;
}

/** A row of a batch of scores. */
export interface NewRow extends NewScore {
  board: string;
  /** Makes the row happen once, however often it is sent. */
  idempotency_key?: string;
  /** @deprecated The older name of `idempotency_key`. */
  id?: string;
}

export interface Submitted {
  board: string;
  period: string;
  player: string;
  score: Score;
  subscore?: Score;
  at: Instant;
  rank: number | null;
  changed: boolean;
  previous: { score: Score; subscore?: Score; rank: number | null } | null;
  closed_periods?: string[];
  /** With `windows: "all"`. */
  windows?: WindowRank[];
}

/** The record of a player in a window of a board. A banned player has no rank. */
export interface WindowRank {
  period: string;
  score: Score;
  subscore?: Score;
  at: Instant;
  rank: number | null;
  total: number | null;
  percentile: number | null;
}

/** A row of a batch that counts. */
export interface SubmittedRow extends Submitted {
  replayed?: boolean;
}

/** A row of a batch that was refused. */
export interface RefusedRow {
  board?: string;
  player?: string;
  idempotency_key?: string;
  /** @deprecated The older name of `idempotency_key`. */
  id?: string;
  error: RowError;
}

export interface RowError {
  code: string;
  detail: string;
}

export interface Profile {
  name?: string;
  avatar_url?: string;
  metadata?: Record<string, unknown>;
}

export interface Entry {
  rank: number;
  player: string;
  score: Score;
  subscore?: Score;
  at: Instant;
  /** With `expand` only. */
  profile?: Profile | null;
}

/** An entry among others: `rank` is among them, `overall_rank` that of the whole board. */
export interface AmongEntry extends Entry {
  overall_rank: number;
}

export interface Among {
  board: string;
  period: string;
  total: number;
  entries: AmongEntry[];
  /** Players without a score. */
  missing: string[];
}

export interface PlayerRank {
  board: string;
  period: string;
  player: string;
  score: Score;
  subscore?: Score;
  at: Instant;
  rank: number;
  total: number;
  percentile: number;
}

export interface PeriodInstance {
  period: string;
  name: string;
  starts_at: Instant;
  ends_at: Instant;
  /** @deprecated The older name of `starts_at`. */
  start: Instant;
  /** @deprecated The older name of `ends_at`. */
  end: Instant;
  state: "open" | "closing" | "closed";
  total: number;
}

export interface NewMember {
  login_id: string;
  name: string;
  player?: string;
  password?: string;
  pin?: string;
  phone_number?: string;
  reason?: string;
}

export interface Member {
  id: string;
  login_id: string;
  name: string;
  player: string;
  has_password: boolean;
  has_pin: boolean;
  created_at: Instant;
  phone_number?: string;
  pin_locked_until?: Instant;
  closed_at?: Instant;
}

export interface Wallet {
  member: string;
  currency: string;
  balance: Money;
  held: Money;
  available: Money;
  promotional?: Money;
  credits?: { amount: Money; expires_at: Instant }[];
}

/** What every change of money may have. */
export interface MoneyOptions {
  /** The default currency of the server if it is left out. */
  currency?: string;
  amount: Amount;
  reference?: string;
  reason?: string;
  metadata?: Record<string, unknown>;
}

export interface NewDeposit extends MoneyOptions {
  to: string;
  /** Makes it promotional credit until this instant. */
  expires_at?: Instant;
}

export interface NewWithdrawal extends MoneyOptions {
  from: string;
  promotional?: boolean;
}

export interface NewTransfer extends MoneyOptions {
  from: string;
  to: string;
}

export interface Transaction {
  id: string;
  type: string;
  currency: string;
  amount: Money;
  before: Money;
  after: Money;
  counterparty: string | null;
  counterparty_name?: string | null;
  group_id: string;
  reference: string | null;
  status: "posted";
  at: Instant;
  actor?: string;
  reason?: string | null;
  metadata?: Record<string, unknown> | null;
}

export interface NewHold {
  member: string;
  currency?: string;
  amount: Amount;
  expires_at?: Instant;
  reason?: string;
  metadata?: Record<string, unknown>;
}

export interface Hold {
  id: string;
  member: string;
  currency: string;
  amount: Money;
  state: "open" | "captured" | "voided" | "expired";
  /** @deprecated The older name of `state`. */
  status: "open" | "captured" | "voided" | "expired";
  captured: Money | null;
  to: string | null;
  group_id: string | null;
  expires_at: Instant | null;
  created_at: Instant;
  ended_at: Instant | null;
}

export type ContestState = "draft" | "open" | "running" | "finished" | "settled" | "cancelled";

export interface NewContest {
  /** Made by the server if it is left out. */
  id?: string;
  title: string;
  staff?: string[];
  capacity?: number;
  on_invalid?: "reject" | "skip";
  auto_accept?: boolean;
  players_min?: number | null;
  below_min?: "cancel" | "start";
  join_s?: number | null;
  attempts_max?: number | null;
  entry_fee?: { currency: string; amount: Amount } | null;
  leaderboard?: BoardDefinition;
  prizes?: Prize[];
  prize_ties?: "split" | "each";
  division_size?: number | null;
  opens_at?: Instant | null;
  starts_at?: Instant | null;
  ends_at?: Instant | null;
  review_s?: number | null;
}

export interface Contest {
  id: string;
  state: ContestState;
  title: string;
  staff: string[];
  capacity: number;
  entry_fee: { currency: string; amount: Money } | null;
  prizes: { from: number; to: number; currency: string; amount: Money }[];
  /** Its leaderboard; null with divisions. */
  board: string | null;
  divisions?: {
    division: number;
    board: string;
    players: number;
    /** @deprecated The older name of `division`. */
    n: number;
    /** @deprecated The older name of `players`. */
    members: number;
  }[];
  counts: {
    pending: number | null;
    accepted: number | null;
    rejected: number | null;
    players: number;
    /** @deprecated The older name of `players`. */
    members: number;
  };
  opens_at: Instant | null;
  starts_at: Instant | null;
  ends_at: Instant | null;
  created_at: Instant;
  updated_at: Instant;
}

export interface StartedContest extends Contest {
  /** @deprecated The older place of the contest. */
  contest: Contest;
  enrolled: number;
  failed: { player: string; code: string; detail: string }[];
  took_ms: number;
}

export interface Application {
  player: string;
  state: "pending" | "accepted" | "rejected";
  /** @deprecated The older name of `state`. */
  status: "pending" | "accepted" | "rejected";
  applied_at: Instant;
  hold_id?: string;
}

/** What became of one player of `accept` or `reject`. */
export type Decided =
  | {
      player: string;
      state: "pending" | "accepted" | "rejected";
      /** @deprecated The older name of `state`. */
      status: "pending" | "accepted" | "rejected";
      applied_at?: string;
      hold_id?: string;
    }
  | { player: string; error: RowError };

export interface ContestPlayer {
  player: string;
  place: number;
  banned: boolean;
  division?: number;
  member?: string;
  attempts?: number;
}

/** A prize of a contest or of a closed period. */
export interface Payout {
  player: string;
  member?: string;
  division?: number;
  rank: number;
  currency: string;
  amount: Money;
  paid?: boolean;
  group_id?: string;
  /** Why it could not be paid. */
  code?: "member_closed" | "limit_exceeded" | "no_member";
  /** @deprecated The older name of `code`. */
  reason?: "member_closed" | "limit_exceeded" | "no_member";
  reversed?: Money;
}

/** The events of a leaderboard. After `reset`, read the page again. */
export type BoardEvent =
  | { type: "score"; id: string | undefined; data: ScoreEvent }
  | { type: "period_closed"; id: string | undefined; data: PeriodInstance & { board: string } }
  | { type: "period_paid"; id: string | undefined; data: { board: string; period: string; prizes: number } }
  | ResetEvent;

export interface ScoreEvent {
  board: string;
  period: string;
  total: number;
  /** Players whose record changed, best first, with their present rank. */
  entries: Entry[];
  /** Players that have no rank any more. */
  gone?: string[];
  /** More players changed than the event has: read the page. */
  incomplete?: boolean;
}

export type ContestEvent =
  | {
      type: "contest";
      id: string | undefined;
      data: { contest: string; previous: ContestState | null; state: ContestState; players: number; at: Instant };
    }
  | ResetEvent;

export type MemberEvent = { type: "transaction"; id: string | undefined; data: Transaction } | ResetEvent;

/** Events were missed that the server does not have any more: read again what the stream is about. */
export interface ResetEvent {
  type: "reset";
  id: string | undefined;
  data: unknown;
}
