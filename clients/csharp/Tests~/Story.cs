// What the package promises, against a real server behind a proxy. Argument: the address of the proxy.
//
// A line on the standard output asks the test for a fault; the answer is a line on the standard input.

using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using TallyClient;

static class Story
{
    static string url;
    static Tally tally, once;

    static void Main(string[] args)
    {
        url = args[0];
        // Patient: a server of a busy machine may take long to start.
        tally = new Tally(url, retry: new Retry
        {
            Attempts = 200, FirstWait = TimeSpan.FromMilliseconds(20), LongestWait = TimeSpan.FromMilliseconds(300),
        });
        once = new Tally(url, retry: new Retry { Attempts = 1 });
        Texts();
        Errors().GetAwaiter().GetResult();
        Retries().GetAwaiter().GetResult();
        PagesOfScores().GetAwaiter().GetResult();
        Events().GetAwaiter().GetResult();
        Queue().GetAwaiter().GetResult();
        Members().GetAwaiter().GetResult();
        Boards().GetAwaiter().GetResult();
        Contests().GetAwaiter().GetResult();
        Console.WriteLine("end");
        Environment.Exit(0);
    }

    static void Ask(string what)
    {
        Console.WriteLine(what);
        Console.Out.Flush();
        Console.In.ReadLine();
    }

    static void Equal<T>(T found, T wanted)
    {
        if (!EqualityComparer<T>.Default.Equals(found, wanted)) throw new Exception("found " + found + ", wanted " + wanted);
    }

    static async Task<TallyError> Failure(Func<Task> call)
    {
        try
        {
            await call();
        }
        catch (TallyError error)
        {
            return error;
        }
        throw new Exception("it succeeds");
    }

    static async Task<long> Score(string player) { return (await tally.RankAsync("sums", player)).Score; }

    static void Texts()
    {
        const string Odd = "{\"a\":[1,-2.5e3,true,false,null,\"\\u00e9\\n\\\"\\\\\"],\"b\":{},\"c\":9223372036854775807}";
        var json = Json.Parse(" " + Odd + "\n");
        Equal(json["c"].Long, long.MaxValue);
        Equal(json["a"].Items[5].Text, "é\n\"\\");
        Equal(Json.Parse(json.ToString()).ToString(), json.ToString());
        foreach (var wrong in new[] { "", "{", "[1", "[1 2]", "{\"a\"}", "{\"a\":1,}", "nul", "\"a", "\"\\u12\"", "1 2", "{a:1}", new string('[', 9999) })
        {
            try
            {
                Json.Parse(wrong);
            }
            catch (FormatException)
            {
                continue;
            }
            throw new Exception(wrong + " is read");
        }
    }

    static async Task Errors()
    {
        var board = Json.Object().With("periods", Json.Of(new[] { Tally.Period("weekly", "nonsense") }));
        var wrong = await Failure(() => tally.PutBoardAsync("b", board));
        Equal(wrong.Code, "invalid_definition");
        Equal(wrong.Status, 422);
        Equal(wrong.Problem["errors"].Items[0]["pointer"].Text.Contains("schedule"), true);
        Equal(string.IsNullOrEmpty(wrong.RequestId), false);
        Equal((await Failure(() => tally.SubmitAsync("n", "a", 1, at: "2999-01-01T00:00:00Z"))).Code, "leaderboard_not_found");
        var nowhere = new Tally("http://127.0.0.1:1", retry: new Retry { Attempts = 2, FirstWait = TimeSpan.FromMilliseconds(1) });
        var lost = await Failure(() => nowhere.HealthAsync());
        Equal(lost.Code, "network_error");
        Equal(lost.Message.Contains("127.0.0.1:1"), true);
        try
        {
            Equal(new Tally("localhost:8420"), null);
        }
        catch (ArgumentException error)
        {
            Equal(error.Message.Contains("http://"), true);
        }
        try
        {
            await tally.HealthAsync(new CancellationToken(true));
            throw new Exception("a call that nobody wants succeeds");
        }
        catch (OperationCanceledException)
        {
            // As in any other call of .NET.
        }
    }

    static async Task Retries()
    {
        await tally.PutBoardAsync("sums", Json.Object().With("update", "sum"));
        // The server commits and its answer is lost. Without retries the call fails, and the effect is there.
        Ask("cut lost-1");
        Equal((await Failure(() => once.SubmitAsync("sums", "ann", 1, idempotencyKey: "lost-1"))).Code, "network_error");
        Equal(await Score("ann"), 1);
        // With them, it succeeds and counts once.
        Ask("cut lost-2");
        var done = await tally.SubmitAsync("sums", "ann", 10, idempotencyKey: "lost-2");
        Equal(done.Score, 11);
        Equal(done.Rank, 1);
        var ranked = await tally.SubmitAsync("sums", "ann", 10, idempotencyKey: "lost-2", windows: "all");
        Equal(ranked.Windows.Single().Period, "all_time");
        Equal(ranked.Windows.Single().Rank, 1);
        // The same with a key that the package makes: the player is the mark for the proxy.
        Ask("cut bob-the-mark");
        await tally.SubmitAsync("sums", "bob-the-mark", 5);
        Equal(await Score("bob-the-mark"), 5);
        // A batch, and money.
        Ask("cut dee-the-mark");
        await tally.SubmitManyAsync(new[] { "cy", "dee-the-mark" }.Select(player => new BatchRow { Board = "sums", Player = player, Score = 3 }));
        Equal(await Score("cy") + await Score("dee-the-mark"), 6);
        var member = (await tally.CreateMemberAsync("ann", "Ann", "ann")).Id;
        Ask("cut the-deposit");
        await tally.DepositAsync(member, 70, reference: "the-deposit");
        Equal((await tally.WalletsAsync(member))[0].Balance, 70);
        Equal((await tally.Transactions(member).TakeAsync()).Single().Amount, 70);
        // A server that is killed answers after its restart.
        var calls = Enumerable.Range(0, 20).Select(at => tally.SubmitAsync("sums", "eve", at)).ToList();
        Ask("kill");
        await Task.WhenAll(calls);
        Equal(await Score("eve"), 190);
        Equal((await tally.SubmitAsync("sums", "max", long.MaxValue)).Score, long.MaxValue);
    }

    static async Task PagesOfScores()
    {
        await tally.PutBoardAsync("pages");
        var rows = Enumerable.Range(0, 25).Select(at => new BatchRow { Board = "pages", Player = "p" + at, Score = at }).ToList();
        await tally.SubmitManyAsync(rows);
        var seen = (await tally.Scores("pages", limit: 4).TakeAsync()).Select(entry => entry.Player);
        Equal(string.Join(" ", seen), string.Join(" ", rows.Select(row => row.Player).Reverse()));
        Equal((await tally.Scores("pages", limit: 4).TakeAsync(6)).Count, 6);
        Equal((await tally.TopAsync("pages", 3)).Count, 3);
        Equal(await tally.RankAsync("pages", "nobody"), null);
    }

    static async Task Events()
    {
        await tally.CreateContestAsync("Cup", "cup");
        var states = new List<string>();
        var ids = new List<string>();
        using (var stream = tally.ContestEvents("cup", "0"))
        {
            while (states.Count < 5)
            {
                var heard = await stream.NextAsync();
                Equal(heard.Type, "contest");
                states.Add(heard.Data["state"].Text);
                ids.Add(heard.Id);
                if (states.Count == 1) await tally.OpenContestAsync("cup");
                if (states.Count == 2)
                {
                    // The server ends, and the stream goes on with the next one.
                    Ask("kill");
                    await tally.StartContestAsync("cup");
                }
                if (states.Count == 3) await tally.FinishContestAsync("cup");
                if (states.Count == 4) await tally.SettleContestAsync("cup");
            }
            Equal(stream.LastEventId, ids[4]);
        }
        Equal(string.Join(" ", states), "draft open running finished settled");
        // Another stream goes on behind the event that it is given.
        using (var stream = tally.ContestEvents("cup", ids[2]))
        {
            var heard = await stream.NextAsync();
            Equal(heard.Data["state"].Text + " " + heard.Id, "finished " + ids[3]);
        }
        // A live feed begins before its first event.
        using (var stream = tally.BoardEvents("pages"))
        using (var stop = new CancellationTokenSource())
        {
            var submits = Task.Run(async () =>
            {
                for (var score = 1000; !stop.IsCancellationRequested; score++)
                {
                    await tally.SubmitAsync("pages", "live", score);
                    await Task.Delay(50);
                }
            });
            var heard = await stream.NextAsync();
            while (heard.Type != "score") heard = await stream.NextAsync();
            stop.Cancel();
            await submits;
            Equal(heard.Data["entries"].Items.Single()["player"].Text, "live");
        }
        // A token ends a wait.
        using (var stream = tally.ContestEvents("cup"))
        using (var stop = new CancellationTokenSource())
        {
            var waiting = stream.NextAsync(stop.Token);
            stop.Cancel();
            try
            {
                await waiting;
                throw new Exception("it has an event");
            }
            catch (OperationCanceledException)
            {
                // That was wanted.
            }
        }
        Equal((await Failure(() => tally.BoardEvents("nothing").NextAsync())).Code, "leaderboard_not_found");
    }

    static async Task Queue()
    {
        var file = Path.GetTempFileName();
        File.Delete(file);
        var told = new List<string>();
        Func<Tally, IQueueStorage, SubmitQueue> queue = (client, storage) => new SubmitQueue(client, storage, 3)
        {
            OnSent = (row, _) => told.Add(row.Player),
            OnRefused = (row, error) => told.Add(row.Player + " " + error.Code),
        };
        var away = queue(new Tally("http://127.0.0.1:1", retry: new Retry { Attempts = 1 }), new FileStorage(file));
        away.Add("sums", "q1", 4);
        away.Add("nowhere at all@", "q2", 4);
        away.Add("sums", "q3", 5);
        Equal((await Failure(() => { away.Add("sums", "q4", 4); return Task.CompletedTask; })).Code, "queue_full");
        var report = await away.FlushAsync();
        Equal(report.Error.Code, "network_error");
        Equal(report.Waiting, 3);
        // The program ends; its next run has the scores. The first answer is lost, and they count once.
        Ask("cut q3");
        var broken = await queue(once, new FileStorage(file)).FlushAsync();
        Equal(broken.Error.Code, "network_error");
        Equal(broken.Waiting, 3);
        var done = await queue(tally, new FileStorage(file)).FlushAsync();
        Equal(done.Sent + " " + done.Refused + " " + done.Waiting, "2 1 0");
        Equal(await Score("q1") + " " + await Score("q3"), "4 5");
        Equal(told[0] + " " + told[1].Split(' ')[0] + " " + told[2], "q1 q2 q3");
        File.Delete(file);
        // What was sent a day ago without an answer is not sent again.
        var memory = new MemoryStorage();
        var sent = DateTimeOffset.UtcNow.AddDays(-1).ToUnixTimeMilliseconds();
        memory.Save("[{\"board\":\"sums\",\"player\":\"q1\",\"score\":4,\"id\":\"old\",\"sent_at\":" + sent + "}]");
        Equal((await queue(tally, memory).FlushAsync()).Refused, 1);
        Equal(told.Last(), "q1 outcome_unknown");
        // A score that an earlier release of the package stored counts once, under the key that it has there.
        for (var time = 0; time < 2; time++)
        {
            memory.Save("[{\"board\":\"sums\",\"player\":\"q6\",\"score\":4,\"id\":\"stored-before\"}]");
            Equal((await queue(tally, memory).FlushAsync()).Sent, 1);
        }
        Equal(await Score("q6"), 4);
        memory.Save("{broken");
        Equal((await Failure(() => { Equal(queue(tally, memory).Count, 0); return Task.CompletedTask; })).Code, "storage_failed");
    }

    static async Task Members()
    {
        var kim = (await tally.CreateMemberAsync("kim", "Kim", "kim", "a long password")).Id;
        var currency = (await tally.DepositAsync(kim, 100)).Currency;
        await tally.WithdrawAsync(kim, 10, currency);
        var hold = await tally.PlaceHoldAsync(kim, 30);
        Equal(hold.State + " " + hold.Amount, "open 30");
        Equal((await tally.CaptureHoldAsync(hold.Id, 20)).Json["captured"].Long, 20);
        Equal((await tally.VoidHoldAsync((await tally.PlaceHoldAsync(kim, 30)).Id)).State, "voided");
        await tally.TransferAsync(kim, (await tally.CreateMemberAsync("lee", "Lee", "lee")).Id, 5);
        Equal((await tally.MemberAsync(kim)).LoginId, "kim");
        Equal((await tally.FindMemberAsync(player: "kim")).Id, kim);
        Equal(await tally.FindMemberAsync("no such login"), null);
        var own = new Tally(url);
        Equal((await Failure(() => own.SignInAsync("kim", "another password"))).Code, "invalid_credentials");
        await own.SignInAsync("kim", "a long password");
        Equal((await own.RequestAsync("GET", "/v1/me/wallet"))["balance"].Long, 65);
        // The member hears of its own money, from the first event on.
        using (var stream = own.MyEvents(currency + ".0"))
            foreach (var amount in new[] { 100, 10, 20, 5 }) Equal((await stream.NextAsync()).Data["amount"].Long, amount);
    }

    static async Task Boards()
    {
        await tally.PutBoardAsync("weeks", Json.Object().With("periods", Json.Of(new[] { Tally.Period("weekly", "0 0 * * 1") })));
        await tally.SubmitAsync("weeks", "ann", 1);
        var week = (await tally.Periods("weeks").TakeAsync(1))[0];
        Equal(week.Name + " " + week.State + " " + week.Total, "weekly open 1");
        Equal((await Failure(() => tally.PeriodPrizes("weeks", "weekly:1971-01-01").TakeAsync())).Code, "period_not_found");
        await tally.RemovePlayerAsync("weeks", "ann");
        Equal((await tally.BoardAsync("weeks"))["counts"]["all_time"].Long, 0);
        Equal((await tally.Boards(1).TakeAsync()).Any(board => board["board"].Text == "weeks"), true);
    }

    static async Task Contests()
    {
        // A staff player acts for it, through the key of the server.
        var cup = (await tally.CreateContestAsync("Small cup", more: Json.Object().With("staff", Json.Of(new[] { "boss" })))).Id;
        await tally.OpenContestAsync(cup, "boss");
        foreach (var player in new[] { "kim", "max", "eve", "joe" }) await tally.ApplyAsync(cup, player);
        await tally.WithdrawApplicationAsync(cup, "eve");
        var decided = await tally.AcceptAsync(cup, new[] { "kim", "lee" }, "boss");
        Equal(decided[0]["state"].Text + " " + decided[1]["error"]["code"].Text, "accepted not_applied");
        Equal((await tally.RejectAsync(cup, new[] { "max" }))[0]["state"].Text, "rejected");
        Equal((await tally.Applications(cup).TakeAsync()).Single().Player, "joe");
        Equal((await tally.Applications(cup, "accepted").TakeAsync()).Single().Player, "kim");
        Equal((await tally.StartContestAsync(cup))["enrolled"].Long, 1);
        Equal((await tally.ContestPlayers(cup).TakeAsync()).Single().Player, "kim");
        Equal((await Failure(() => tally.CancelContestAsync(cup, "kim"))).Code, "forbidden");
        Equal((await tally.CancelContestAsync(cup)).State, "cancelled");
        Equal((await tally.Contests("cancelled", limit: 1).TakeAsync()).Any(contest => contest.Id == cup), true);
        Equal((await tally.ContestAsync(cup)).Title, "Small cup");
        await tally.DeleteBoardAsync("pages");
        Equal((await Failure(() => tally.TopAsync("pages", 1))).Code, "leaderboard_not_found");
    }
}
