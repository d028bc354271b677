// The types of clients/typescript, which are written by hand, against those that are generated: this file compiles if they agree.

import type { components } from "./api.js";
import type * as ours from "./types.js";

type Theirs = components["schemas"];

/** What a request says in JSON: the package sends a bigint as a string. */
type Json<T> = T extends bigint
  ? string
  : T extends readonly (infer Item)[]
    ? Json<Item>[]
    : T extends object
      ? { [Name in keyof T]: Json<T[Name]> }
      : T;

/** An answer of the server is what the package says, which names no field that no answer has. */
type Answer<Ours, Schema extends Ours> = keyof Ours extends keyof Schema ? Schema : never;
/** A request of the package is what the server takes, and names no other field. */
type Request<Ours, Schema> = Json<Ours> extends Schema ? (keyof Ours extends keyof Schema ? Ours : never) : never;
/** Fails to compile for `never`. */
type Held<T> = [T] extends [never] ? false : true;

const answers: {
  board: Held<Answer<ours.Board, Theirs["Board"]>>;
  submitted: Held<Answer<ours.Submitted, Theirs["Submitted"]>>;
  window: Held<Answer<ours.WindowRank, Theirs["WindowRank"]>>;
  row: Held<Answer<ours.SubmittedRow, Theirs["SubmittedRow"]>>;
  refused: Held<Answer<ours.RefusedRow, Theirs["RefusedRow"]>>;
  entry: Held<Answer<ours.Entry, Theirs["Entry"]>>;
  among: Held<Answer<ours.Among, Theirs["Among"]>>;
  amongEntry: Held<Answer<ours.AmongEntry, Theirs["AmongEntry"]>>;
  rank: Held<Answer<ours.PlayerRank, Theirs["PlayerRank"]>>;
  period: Held<Answer<ours.PeriodInstance, Theirs["PeriodItem"]>>;
  member: Held<Answer<ours.Member, Theirs["Member"]>>;
  wallet: Held<Answer<ours.Wallet, Theirs["Wallet"]>>;
  transaction: Held<Answer<ours.Transaction, Theirs["Transaction"]>>;
  hold: Held<Answer<ours.Hold, Theirs["Hold"]>>;
  contest: Held<Answer<ours.Contest, Theirs["Contest"]>>;
  started: Held<Answer<ours.StartedContest, Theirs["StartedContest"]>>;
  application: Held<Answer<ours.Application, Theirs["Application"]>>;
  contestPlayer: Held<Answer<ours.ContestPlayer, Theirs["ContestPlayer"]>>;
  payout: Held<Answer<ours.Payout, Theirs["ContestPrize"]>>;
} = {
  board: true,
  submitted: true,
  window: true,
  row: true,
  refused: true,
  entry: true,
  among: true,
  amongEntry: true,
  rank: true,
  period: true,
  member: true,
  wallet: true,
  transaction: true,
  hold: true,
  contest: true,
  started: true,
  application: true,
  contestPlayer: true,
  payout: true,
};

const requests: {
  definition: Held<Request<ours.BoardDefinition, Theirs["BoardPut"]>>;
  score: Held<Request<ours.NewScore, Theirs["NewScore"]>>;
  row: Held<Request<ours.NewRow, Theirs["BatchRow"]>>;
  member: Held<Request<ours.NewMember, Theirs["NewMember"]>>;
  deposit: Held<Request<ours.NewDeposit, Theirs["NewDeposit"]>>;
  withdrawal: Held<Request<ours.NewWithdrawal, Theirs["NewWithdrawal"]>>;
  transfer: Held<Request<ours.NewTransfer, Theirs["NewTransfer"]>>;
  hold: Held<Request<ours.NewHold, Theirs["NewHold"]>>;
  contest: Held<Request<ours.NewContest, Theirs["NewContest"]>>;
} = {
  definition: true,
  score: true,
  row: true,
  member: true,
  deposit: true,
  withdrawal: true,
  transfer: true,
  hold: true,
  contest: true,
};

console.log(Object.keys(answers).length + Object.keys(requests).length, "shapes agree");
