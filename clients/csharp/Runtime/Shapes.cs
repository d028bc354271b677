// The shapes of answers, read from JSON without reflection. `Json` has the fields that are not named here.

using System;
using System.Collections.Generic;

namespace TallyClient
{
    /// <summary>A player's place on a board.</summary>
    public class Entry
    {
        public long Rank, Score;
        public string Player, At;
        /// <summary>The whole answer: `subscore`, `profile`, and the score of float64 boards as `Double`.</summary>
        public Json Json;

        internal static Entry From(Json json)
        {
            return Fill(new Entry(), json);
        }

        internal static T Fill<T>(T entry, Json json) where T : Entry
        {
            entry.Rank = json["rank"].Long;
            entry.Player = json["player"].Text;
            entry.At = json["at"].Text;
            entry.Json = json;
            entry.Score = Whole(json["score"]);
            return entry;
        }

        /// <summary>A score as a whole number; that of a float64 board is cut off, and `Json` has all of it.</summary>
        internal static long Whole(Json score)
        {
            long whole;
            return long.TryParse(score.Text, out whole) ? whole : (long)score.Double;
        }

        internal static List<T> List<T>(Json items, Func<Json, T> from)
        {
            var list = new List<T>();
            foreach (var item in items.Items) list.Add(from(item));
            return list;
        }
    }

    /// <summary>A place among other players; `Rank` is among them.</summary>
    public sealed class AmongEntry : Entry
    {
        public long OverallRank;

        internal static new AmongEntry From(Json json)
        {
            return Fill(new AmongEntry { OverallRank = json["overall_rank"].Long }, json);
        }
    }

    /// <summary>A player's rank, with the number of players.</summary>
    public sealed class PlayerRank : Entry
    {
        public long Total;
        public double Percentile;

        internal static new PlayerRank From(Json json)
        {
            return Fill(new PlayerRank { Total = json["total"].Long, Percentile = json["percentile"].Double }, json);
        }
    }

    /// <summary>The record after a submit.</summary>
    public sealed class Submitted
    {
        public string Board, Period, Player, At;
        public long Score;
        /// <summary>The rank; null where there are none.</summary>
        public long? Rank;
        /// <summary>Whether the submit changed the record.</summary>
        public bool Changed;
        /// <summary>The rank in each window that the score counted for; null if the call did not ask for them.</summary>
        public List<WindowRank> Windows;
        public Json Json;

        internal static Submitted From(Json json)
        {
            return new Submitted
            {
                Board = json["board"].Text, Period = json["period"].Text, Player = json["player"].Text, At = json["at"].Text,
                Score = Entry.Whole(json["score"]), Rank = json["rank"].LongOrNull, Changed = json["changed"].Bool, Json = json,
                Windows = json["windows"].IsNull ? null : Entry.List(json["windows"], WindowRank.From),
            };
        }
    }

    /// <summary>The record of a player in a window of a board, such as this week. A banned player has no rank.</summary>
    public sealed class WindowRank
    {
        public string Period, At;
        public long Score;
        public long? Rank, Total;
        public Json Json;

        internal static WindowRank From(Json json)
        {
            return new WindowRank
            {
                Period = json["period"].Text, At = json["at"].Text, Score = Entry.Whole(json["score"]),
                Rank = json["rank"].LongOrNull, Total = json["total"].LongOrNull, Json = json,
            };
        }
    }

    /// <summary>A row of a batch: with `Error` it was refused.</summary>
    public sealed class BatchResult
    {
        public Submitted Submitted;
        public TallyError Error;

        internal static BatchResult From(Json json)
        {
            var error = json["error"];
            if (error.IsNull) return new BatchResult { Submitted = Submitted.From(json) };
            return new BatchResult { Error = new TallyError(error["code"].Text, error["detail"].Text) };
        }
    }

    /// <summary>A score of a batch.</summary>
    public sealed class BatchRow
    {
        /// <summary>With IdempotencyKey it counts once, however often it is sent. At is when it happened.</summary>
        public string Board, Player, At, IdempotencyKey;
        public long Score;
        public long? Subscore;

        internal Json ToJson()
        {
            return Json.Object().With("board", Board).With("player", Player).With("score", (long?)Score)
                .With("subscore", Subscore).With("at", At).With("idempotency_key", IdempotencyKey);
        }
    }

    public sealed class Member
    {
        public string Id, LoginId, Name, Player;
        public Json Json;

        internal static Member From(Json json)
        {
            return new Member
            {
                Id = json["id"].Text, LoginId = json["login_id"].Text, Name = json["name"].Text, Player = json["player"].Text, Json = json,
            };
        }
    }

    /// <summary>Money is a whole number of the smallest unit of its currency.</summary>
    public sealed class Wallet
    {
        public string Member, Currency;
        public long Balance, Held, Available;
        public Json Json;

        internal static Wallet From(Json json)
        {
            return new Wallet
            {
                Member = json["member"].Text, Currency = json["currency"].Text, Balance = json["balance"].Long,
                Held = json["held"].Long, Available = json["available"].Long, Json = json,
            };
        }
    }

    /// <summary>Reserved money.</summary>
    public sealed class Hold
    {
        public string Id, Member, Currency, To, ExpiresAt;
        /// <summary>open, captured, voided or expired.</summary>
        public string State;
        public long Amount;
        public Json Json;

        internal static Hold From(Json json)
        {
            return new Hold
            {
                Id = json["id"].Text, Member = json["member"].Text, Currency = json["currency"].Text, To = json["to"].Text,
                ExpiresAt = json["expires_at"].Text, State = json["state"].Text, Amount = json["amount"].Long, Json = json,
            };
        }
    }

    public sealed class Transaction
    {
        public string Id, Type, Currency, Counterparty, GroupId, Reference, At;
        public long Amount, Before, After;
        public Json Json;

        internal static Transaction From(Json json)
        {
            return new Transaction
            {
                Id = json["id"].Text, Type = json["type"].Text, Currency = json["currency"].Text,
                Counterparty = json["counterparty"].Text, GroupId = json["group_id"].Text, Reference = json["reference"].Text,
                At = json["at"].Text, Amount = json["amount"].Long, Before = json["before"].Long, After = json["after"].Long, Json = json,
            };
        }
    }

    /// <summary>What each rank of a range gets.</summary>
    public sealed class Prize
    {
        public long From, To, Amount;
        public string Currency;

        internal Json ToJson()
        {
            return Json.Object().With("from", (long?)From).With("to", (long?)To).With("currency", Currency).With("amount", (long?)Amount);
        }

        internal static Prize Of(Json json)
        {
            return new Prize
            {
                From = json["from"].Long, To = json["to"].Long, Amount = json["amount"].Long, Currency = json["currency"].Text,
            };
        }
    }

    public sealed class Contest
    {
        public string Id, Title;
        /// <summary>draft, open, running, finished, settled or cancelled.</summary>
        public string State;
        /// <summary>Its leaderboard; null with divisions.</summary>
        public string Board;
        public List<Prize> Prizes;
        public Json Json;

        internal static Contest From(Json json)
        {
            return new Contest
            {
                Id = json["id"].Text, Title = json["title"].Text, State = json["state"].Text, Board = json["board"].Text,
                Prizes = Entry.List(json["prizes"], Prize.Of), Json = json,
            };
        }
    }

    public sealed class Application
    {
        public string Player, AppliedAt;
        /// <summary>pending, accepted or rejected.</summary>
        public string State;
        public Json Json;

        internal static Application From(Json json)
        {
            return new Application { Player = json["player"].Text, AppliedAt = json["applied_at"].Text, State = json["state"].Text, Json = json };
        }
    }

    public sealed class ContestPlayer
    {
        public string Player;
        public long Place;
        public bool Banned;
        /// <summary>The whole answer: `division`, `member` and `attempts` where a contest has them.</summary>
        public Json Json;

        internal static ContestPlayer From(Json json)
        {
            return new ContestPlayer { Player = json["player"].Text, Place = json["place"].Long, Banned = json["banned"].Bool, Json = json };
        }
    }

    /// <summary>An instance of a period of a board, such as one week.</summary>
    public sealed class PeriodInstance
    {
        public string Period, Name, StartsAt, EndsAt;
        /// <summary>open, closing or closed.</summary>
        public string State;
        /// <summary>How many players have a score in it.</summary>
        public long Total;
        public Json Json;

        internal static PeriodInstance From(Json json)
        {
            return new PeriodInstance
            {
                Period = json["period"].Text, Name = json["name"].Text, StartsAt = json["starts_at"].Text, EndsAt = json["ends_at"].Text,
                State = json["state"].Text, Total = json["total"].Long, Json = json,
            };
        }
    }

    /// <summary>A prize of a settled contest or of a closed period.</summary>
    public sealed class Payout
    {
        public string Player, Currency;
        /// <summary>Why it could not be paid, if it could not.</summary>
        public string Code;
        public long Rank, Amount;
        public bool Paid;
        public Json Json;

        internal static Payout From(Json json)
        {
            return new Payout
            {
                Player = json["player"].Text, Currency = json["currency"].Text, Rank = json["rank"].Long,
                Amount = json["amount"].Long, Paid = json["paid"].Bool, Code = json["code"].Text, Json = json,
            };
        }
    }
}
