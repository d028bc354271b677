// The calls of a tally server by what they are for.

using System;
using System.Collections.Generic;
using System.Globalization;
using System.Net.Http;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace TallyClient
{
    /// <summary>A tally server. Any number of threads may use one object.</summary>
    /// <remarks>
    /// Every change has an idempotency key and is retried, so it counts once or throws a <see cref="TallyError"/>. Give
    /// `idempotencyKey` if your program may make the same call twice, such as after a crash: the server knows it for 24 hours.
    /// </remarks>
    public sealed class Tally : IDisposable
    {
        readonly Transport transport;

        /// <param name="url">The address of the server, such as https://tally.example.com.</param>
        /// <param name="key">An API key, or the token of a member. Keep API keys out of games.</param>
        /// <param name="timeout">The time of one attempt: 10 s.</param>
        /// <param name="http">Your own client, with a Timeout that is infinite.</param>
        public Tally(string url, string key = null, TimeSpan? timeout = null, Retry retry = null, HttpClient http = null)
        {
            transport = new Transport(url, key, timeout ?? TimeSpan.FromSeconds(10), retry ?? new Retry(), http);
        }

        /// <summary>Closes the connections; those of your own `http` stay.</summary>
        public void Dispose() { transport.Dispose(); }

        /// <summary>Any operation of the server, with the retries of this client.</summary>
        /// <param name="changes">Whether the call changes something; by default all but GET do.</param>
        public Task<Json> RequestAsync(
            string method, string path, Json body = null, bool? changes = null, string idempotencyKey = null,
            string actingPlayer = null, CancellationToken cancel = default(CancellationToken))
        {
            return transport.Request(method, path, body, changes ?? method != "GET", idempotencyKey, actingPlayer, cancel);
        }

        /// <summary>Throws if the server is not alive.</summary>
        public Task HealthAsync(CancellationToken cancel = default(CancellationToken)) { return RequestAsync("GET", "/healthz", cancel: cancel); }

        // Leaderboards

        /// <summary>Makes a board, or changes its periods. Repeat it at every start of your program.</summary>
        public Task PutBoardAsync(string board, Json definition = null)
        {
            return RequestAsync("PUT", Path("leaderboards", board), definition ?? Json.Object());
        }

        /// <summary>The definition of a board, with the number of its players in `counts`.</summary>
        public Task<Json> BoardAsync(string board) { return RequestAsync("GET", Path("leaderboards", board)); }

        public Pages<Json> Boards(int limit = 100) { return List(Path("leaderboards"), limit, board => board); }

        /// <summary>The instances of the periods of a board, newest first.</summary>
        public Pages<PeriodInstance> Periods(string board, int limit = 100)
        {
            return List(Path("leaderboards", board, "periods"), limit, PeriodInstance.From);
        }

        /// <summary>Prizes of a closed period.</summary>
        public Pages<Payout> PeriodPrizes(string board, string period, int limit = 100)
        {
            return List(Path("leaderboards", board, "prizes"), limit, Payout.From, "period", period);
        }

        /// <summary>A recurring period for `periods` of a board: cron of five fields in a time zone.</summary>
        public static Json Period(string name, string schedule, string timeZone = "UTC")
        {
            return Json.Object().With("name", name).With("schedule", schedule).With("time_zone", timeZone);
        }

        /// <summary>Removes a board and its scores at once.</summary>
        public Task DeleteBoardAsync(string board) { return RequestAsync("DELETE", Path("leaderboards", board)); }

        // Scores and ranks

        /// <summary>Submits a score. It is durable when this ends, and has its rank.</summary>
        /// <param name="at">When it happened, in RFC 3339; the moment of its arrival by default.</param>
        /// <param name="windows">With `all` the answer has its rank in each window that the score counted for.</param>
        public async Task<Submitted> SubmitAsync(
            string board, string player, long score, long? subscore = null, string at = null, string idempotencyKey = null,
            CancellationToken cancel = default(CancellationToken), string windows = null)
        {
            var body = Json.Object().With("player", player).With("score", (long?)score).With("subscore", subscore).With("at", at);
            var path = Path("leaderboards", board, "scores") + Query("windows", windows);
            return Submitted.From(await RequestAsync("POST", path, body, null, idempotencyKey, null, cancel).ConfigureAwait(false));
        }

        /// <summary>Submits 1 to 1,000 scores. A row that is refused fails alone: look at the Error of each.</summary>
        public async Task<List<BatchResult>> SubmitManyAsync(
            IEnumerable<BatchRow> rows, string idempotencyKey = null, CancellationToken cancel = default(CancellationToken),
            string windows = null)
        {
            var list = new List<Json>();
            foreach (var row in rows) list.Add(row.ToJson());
            var body = Json.Object().With("scores", Json.Of(list));
            var path = "/v1/scores/batch" + Query("windows", windows);
            var answer = await RequestAsync("POST", path, body, null, idempotencyKey, null, cancel).ConfigureAwait(false);
            return Entry.List(answer["results"], BatchResult.From);
        }

        /// <summary>The ranks of a board, best first. `limit` is the size of a page, 1 to 1,000.</summary>
        public Pages<Entry> Scores(string board, string period = null, int limit = 100)
        {
            return new Pages<Entry>(
                cursor => RequestAsync("GET", Path("leaderboards", board, "scores") + Query("period", period, "limit", Digits(limit), "cursor", cursor)),
                page => Entry.List(page["entries"], Entry.From));
        }

        /// <summary>The best `count` of a board, at most 1,000, in one request.</summary>
        public Task<List<Entry>> TopAsync(string board, int count, string period = null)
        {
            return Scores(board, period, count).TakeAsync(count);
        }

        /// <summary>The rank of a player, or null if the player has none.</summary>
        public async Task<PlayerRank> RankAsync(string board, string player, string period = null)
        {
            try
            {
                var path = Path("leaderboards", board, "players", player) + Query("period", period);
                return PlayerRank.From(await RequestAsync("GET", path).ConfigureAwait(false));
            }
            catch (TallyError error) when (error.Code == "player_not_ranked")
            {
                return null;
            }
        }

        /// <summary>The ranks around a player; `above` and `below` are 0 to 100.</summary>
        public async Task<List<Entry>> AroundAsync(string board, string player, int above = 5, int below = 5, string period = null)
        {
            var query = Query("above", Digits(above), "below", Digits(below), "period", period);
            var path = Path("leaderboards", board, "players", player, "around") + query;
            return Entry.List((await RequestAsync("GET", path).ConfigureAwait(false))["entries"], Entry.From);
        }

        /// <summary>The ranks of players among each other, such as friends. Players without a score are left out.</summary>
        public async Task<List<AmongEntry>> AmongAsync(string board, IEnumerable<string> players, string period = null)
        {
            var body = Json.Object().With("players", Json.Of(players));
            var path = Path("leaderboards", board, "among") + Query("period", period);
            return Entry.List((await RequestAsync("POST", path, body, false).ConfigureAwait(false))["entries"], AmongEntry.From);
        }

        /// <summary>Takes a player out of a board.</summary>
        public Task RemovePlayerAsync(string board, string player) { return RequestAsync("DELETE", Path("leaderboards", board, "players", player)); }

        /// <summary>Changes of a board as they happen: score, period_closed, period_paid, reset.</summary>
        public EventStream BoardEvents(string board, string lastEventId = null)
        {
            return new EventStream(transport, Path("leaderboards", board, "events"), lastEventId);
        }

        // Members and money

        public async Task<Member> CreateMemberAsync(
            string loginId, string name, string player = null, string password = null, string idempotencyKey = null)
        {
            var body = Json.Object().With("login_id", loginId).With("name", name).With("player", player).With("password", password);
            return Member.From(await RequestAsync("POST", "/v1/members", body, null, idempotencyKey).ConfigureAwait(false));
        }

        public async Task<Member> MemberAsync(string member)
        {
            return Member.From(await RequestAsync("GET", Path("members", member)).ConfigureAwait(false));
        }

        /// <summary>The member with this login, phone number or player, or null if there is none. Give one of them.</summary>
        public async Task<Member> FindMemberAsync(string loginId = null, string phoneNumber = null, string player = null)
        {
            var query = Query("login_id", loginId, "phone_number", phoneNumber, "player", player);
            var found = (await RequestAsync("GET", "/v1/members" + query).ConfigureAwait(false))["items"].Items;
            return found.Count == 0 ? null : Member.From(found[0]);
        }

        /// <summary>Signs a member in, and uses the token for what this client sends from then on. Returns the token.</summary>
        public async Task<string> SignInAsync(string login, string password)
        {
            var body = Json.Object().With("loginId", login).With("password", password);
            var answer = await RequestAsync("POST", "/auth/signin", body, false).ConfigureAwait(false);
            return transport.Key = answer["data"]["accessToken"].Text;
        }

        /// <summary>The wallets of a member, one for each currency.</summary>
        public async Task<List<Wallet>> WalletsAsync(string member)
        {
            return Entry.List((await RequestAsync("GET", Path("wallets", member)).ConfigureAwait(false))["items"], Wallet.From);
        }

        /// <summary>The transactions of a member, newest first.</summary>
        public Pages<Transaction> Transactions(string member, int limit = 100)
        {
            return List(Path("wallets", member, "transactions"), limit, Transaction.From);
        }

        /// <summary>Puts money into a wallet.</summary>
        public Task<Transaction> DepositAsync(
            string to, long amount, string currency = null, string reference = null, string idempotencyKey = null)
        {
            return Move("/v1/deposits", Money(amount, currency, reference).With("to", to), idempotencyKey);
        }

        /// <summary>Takes money out of a wallet.</summary>
        public Task<Transaction> WithdrawAsync(
            string from, long amount, string currency = null, string reference = null, string idempotencyKey = null)
        {
            return Move("/v1/withdrawals", Money(amount, currency, reference).With("from", from), idempotencyKey);
        }

        /// <summary>Moves money from one member to another. The answer is the side of the sender.</summary>
        public Task<Transaction> TransferAsync(
            string from, string to, long amount, string currency = null, string reference = null, string idempotencyKey = null)
        {
            return Move("/v1/transfers", Money(amount, currency, reference).With("from", from).With("to", to), idempotencyKey);
        }

        /// <summary>Reserves money until it is captured or voided.</summary>
        public async Task<Hold> PlaceHoldAsync(
            string member, long amount, string currency = null, string expiresAt = null, string idempotencyKey = null)
        {
            var body = Money(amount, currency, null).With("member", member).With("expires_at", expiresAt);
            return Hold.From(await RequestAsync("POST", "/v1/holds", body, null, idempotencyKey).ConfigureAwait(false));
        }

        /// <summary>Takes held money: all of it, or `amount`; for the member `to`, or as a fee.</summary>
        public async Task<Hold> CaptureHoldAsync(string hold, long? amount = null, string to = null, string idempotencyKey = null)
        {
            var body = Json.Object().With("amount", amount).With("to", to);
            return Hold.From(await RequestAsync("POST", Path("holds", hold, "capture"), body, null, idempotencyKey).ConfigureAwait(false));
        }

        /// <summary>Gives held money back.</summary>
        public async Task<Hold> VoidHoldAsync(string hold, string idempotencyKey = null)
        {
            var body = Json.Object();
            return Hold.From(await RequestAsync("POST", Path("holds", hold, "void"), body, null, idempotencyKey).ConfigureAwait(false));
        }

        /// <summary>The transactions of the member that signed in, as they happen: transaction, reset.</summary>
        public EventStream MyEvents(string lastEventId = null) { return new EventStream(transport, "/v1/me/events", lastEventId); }

        // Contests

        /// <summary>Makes a contest in the state `draft`. `more` has other fields, such as `entry_fee`.</summary>
        public async Task<Contest> CreateContestAsync(
            string title, string id = null, IEnumerable<Prize> prizes = null, Json more = null, string idempotencyKey = null)
        {
            var list = new List<Json>();
            foreach (var prize in prizes ?? new Prize[0]) list.Add(prize.ToJson());
            var body = (more ?? Json.Object()).With("title", title).With("id", id).With("prizes", list.Count == 0 ? null : Json.Of(list));
            return Contest.From(await RequestAsync("POST", "/v1/contests", body, null, idempotencyKey).ConfigureAwait(false));
        }

        /// <summary>The field `entry_fee` of a contest.</summary>
        public static Json EntryFee(string currency, long amount)
        {
            return Json.Object().With("currency", currency).With("amount", (long?)amount);
        }

        public async Task<Contest> ContestAsync(string contest)
        {
            return Contest.From(await RequestAsync("GET", Path("contests", contest)).ConfigureAwait(false));
        }

        /// <summary>Of one state or one series, or all.</summary>
        public Pages<Contest> Contests(string state = null, string series = null, int limit = 100)
        {
            return List(Path("contests"), limit, Contest.From, "state", state, "series", series);
        }

        /// <summary>Lets players apply.</summary>
        /// <param name="actingPlayer">The staff player of the contest that a key of role `server` acts for.</param>
        public Task<Contest> OpenContestAsync(string contest, string actingPlayer = null) { return Changed(contest, "open", actingPlayer); }

        /// <summary>Makes the accepted players those of the contest, and takes their fees. The answer is the contest, with the number `enrolled` and the list `failed`.</summary>
        public Task<Json> StartContestAsync(string contest, string actingPlayer = null) { return Act(contest, "start", actingPlayer); }

        /// <summary>Ends the scores. The review begins.</summary>
        public Task<Contest> FinishContestAsync(string contest, string actingPlayer = null) { return Changed(contest, "finish", actingPlayer); }

        /// <summary>Ends the review and pays the prizes. The state is `finished` while some are still being paid.</summary>
        public Task<Contest> SettleContestAsync(string contest, string actingPlayer = null) { return Changed(contest, "settle", actingPlayer); }

        /// <summary>Ends a contest without prizes, and pays fees back.</summary>
        public Task<Contest> CancelContestAsync(string contest, string actingPlayer = null) { return Changed(contest, "cancel", actingPlayer); }

        /// <summary>Applies for a player, or for the member that signed in. Holds the entry fee.</summary>
        public Task ApplyAsync(string contest, string player = null, string idempotencyKey = null)
        {
            var body = Json.Object().With("player", player);
            return RequestAsync("POST", Path("contests", contest, "applications"), body, null, idempotencyKey);
        }

        public Task WithdrawApplicationAsync(string contest, string player)
        {
            return RequestAsync("DELETE", Path("contests", contest, "applications", player));
        }

        /// <summary>The applications of a contest that has not started. Pending ones by default.</summary>
        public Pages<Application> Applications(string contest, string state = null, int limit = 100)
        {
            return List(Path("contests", contest, "applications"), limit, Application.From, "state", state);
        }

        /// <summary>Accepts 1 to 1,000 players, each for itself: look at the `error` of each result.</summary>
        public Task<IReadOnlyList<Json>> AcceptAsync(string contest, IEnumerable<string> players, string actingPlayer = null)
        {
            return Decide(contest, "accept", players, actingPlayer);
        }

        /// <summary>Rejects 1 to 1,000 players and releases their fees, each for itself.</summary>
        public Task<IReadOnlyList<Json>> RejectAsync(string contest, IEnumerable<string> players, string actingPlayer = null)
        {
            return Decide(contest, "reject", players, actingPlayer);
        }

        public Pages<ContestPlayer> ContestPlayers(string contest, int limit = 100)
        {
            return List(Path("contests", contest, "players"), limit, ContestPlayer.From);
        }

        /// <summary>The prizes of a settled contest; with `preview`, those that a settlement would pay now.</summary>
        public Pages<Payout> Prizes(string contest, int limit = 100, bool preview = false)
        {
            return List(Path("contests", contest, "prizes"), limit, Payout.From, "preview", preview ? "true" : null);
        }

        /// <summary>Changes of the state of a contest as they happen: contest, reset.</summary>
        public EventStream ContestEvents(string contest, string lastEventId = null)
        {
            return new EventStream(transport, Path("contests", contest, "events"), lastEventId);
        }

        Task<Json> Act(string contest, string what, string actingPlayer)
        {
            return RequestAsync("POST", Path("contests", contest, what), actingPlayer: actingPlayer);
        }

        async Task<Contest> Changed(string contest, string what, string actingPlayer)
        {
            return Contest.From(await Act(contest, what, actingPlayer).ConfigureAwait(false));
        }

        async Task<IReadOnlyList<Json>> Decide(string contest, string what, IEnumerable<string> players, string actingPlayer)
        {
            var body = Json.Object().With("players", Json.Of(players));
            var path = Path("contests", contest, "applications", what);
            return (await RequestAsync("POST", path, body, actingPlayer: actingPlayer).ConfigureAwait(false))["results"].Items;
        }

        async Task<Transaction> Move(string path, Json body, string idempotencyKey)
        {
            return Transaction.From(await RequestAsync("POST", path, body, null, idempotencyKey).ConfigureAwait(false));
        }

        /// <summary>`query` has names and values in turn.</summary>
        Pages<T> List<T>(string path, int limit, Func<Json, T> from, params string[] query)
        {
            var same = path + Query("limit", Digits(limit)) + Query(query).Replace('?', '&');
            return new Pages<T>(
                cursor => RequestAsync("GET", same + (cursor == null ? "" : "&cursor=" + Uri.EscapeDataString(cursor))),
                page => Entry.List(page["items"], from));
        }

        static Json Money(long amount, string currency, string reference)
        {
            return Json.Object().With("amount", (long?)amount).With("currency", currency).With("reference", reference);
        }

        static string Digits(int number) { return number.ToString(CultureInfo.InvariantCulture); }

        static string Path(params string[] parts)
        {
            var path = new StringBuilder("/v1");
            foreach (var part in parts) path.Append('/').Append(Uri.EscapeDataString(part));
            return path.ToString();
        }

        /// <summary>Names and values in turn; a value that is null is left out.</summary>
        static string Query(params string[] pairs)
        {
            var query = new StringBuilder();
            for (var at = 0; at < pairs.Length; at += 2)
            {
                if (pairs[at + 1] == null) continue;
                query.Append(query.Length == 0 ? '?' : '&').Append(pairs[at]).Append('=').Append(Uri.EscapeDataString(pairs[at + 1]));
            }
            return query.ToString();
        }
    }
}
