// The tutorial: a weekly board in Seoul, scores, friends, wallets, and a contest with fees and prizes.
//
//   TALLY_KEYS_REQUIRED=false tally serve          in another terminal, on a new data directory
//   mcs -r:System.Net.Http -out:tutorial.exe ../../Runtime/*.cs Tutorial.cs && mono tutorial.exe [http://127.0.0.1:8420]

using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;
using TallyClient;

static class Tutorial
{
    static void Main(string[] args)
    {
        using (var tally = new Tally(args.Length > 0 ? args[0] : "http://127.0.0.1:8420", Environment.GetEnvironmentVariable("TALLY_KEY")))
            Run(tally).GetAwaiter().GetResult();
    }

    static string Shown(IEnumerable<Entry> entries)
    {
        return string.Join(", ", entries.Select(entry => entry.Rank + " " + entry.Player + " " + entry.Score));
    }

    static async Task Run(Tally tally)
    {
        // A board keeps the best score of each player: for all time, and for each week, which begins on Monday in Seoul.
        // Repeat this at every start of your game server: an equal board is left as it is.
        var periods = Json.Of(new[] { Tally.Period("weekly", "0 0 * * 1", "Asia/Seoul") });
        await tally.PutBoardAsync("arcade", Json.Object().With("update", "best").With("periods", periods));

        // A score is durable when the call ends. Each call has a key of its own, and is sent again if the network loses its answer.
        // Give the match as key if your own program may send it again, such as after a crash: it counts once.
        var scores = new Dictionary<string, long> { { "ada", 1200 }, { "bob", 950 }, { "cy", 1100 }, { "dee", 400 } };
        foreach (var score in scores)
            await tally.SubmitAsync("arcade", score.Key, score.Value, idempotencyKey: "match-17-" + score.Key);
        var ada = await tally.SubmitAsync("arcade", "ada", 1200, idempotencyKey: "match-17-ada");
        Console.WriteLine("ada has " + ada.Score + ", rank " + ada.Rank);

        // The best of this week, the ranks around a player, and friends among each other.
        Console.WriteLine("this week: " + Shown(await tally.TopAsync("arcade", 3, "weekly")));
        Console.WriteLine("around bob: " + Shown(await tally.AroundAsync("arcade", "bob", above: 1, below: 1)));
        Console.WriteLine("friends of dee: " + Shown(await tally.AmongAsync("arcade", new[] { "dee", "cy", "nobody" })));
        Console.WriteLine((await tally.Scores("arcade", limit: 2).TakeAsync()).Count + " players on the board");

        // Money belongs to members. An amount is a whole number of the smallest unit.
        var members = new Dictionary<string, string>();
        foreach (var login in new[] { "ada", "bob", "cy" })
        {
            var member = await tally.CreateMemberAsync(login, login, player: login, idempotencyKey: "join-" + login);
            await tally.DepositAsync(member.Id, 1000, idempotencyKey: "welcome-" + login);
            members[login] = member.Id;
        }
        var paid = await tally.TransferAsync(members["ada"], members["bob"], 300, reference: "a lost bet");
        Console.WriteLine("ada has " + paid.After + " after the transfer");
        try
        {
            await tally.TransferAsync(members["ada"], members["bob"], 5000);
        }
        catch (TallyError error)
        {
            Console.WriteLine("refused: " + error.Code);
        }

        // A contest: players apply, which holds the fee; the start takes it; the settlement pays the prizes, once.
        var prizes = new[]
        {
            new Prize { From = 1, To = 1, Currency = paid.Currency, Amount = 200 },
            new Prize { From = 2, To = 2, Currency = paid.Currency, Amount = 50 },
        };
        var fee = Json.Object().With("entry_fee", Tally.EntryFee(paid.Currency, 100));
        var cup = (await tally.CreateContestAsync("Friday cup", "friday-cup", prizes, fee)).Id;
        await tally.OpenContestAsync(cup);
        foreach (var player in members.Keys) await tally.ApplyAsync(cup, player);
        await tally.AcceptAsync(cup, members.Keys);
        var enrolled = (await tally.StartContestAsync(cup))["enrolled"].Long;
        var contest = await tally.ContestAsync(cup);
        Console.WriteLine(enrolled + " players play for " + string.Join(" and ", contest.Prizes.Select(prize => prize.Amount)));
        await tally.SubmitAsync(contest.Board, "ada", 7);
        await tally.SubmitAsync(contest.Board, "bob", 9);
        await tally.SubmitAsync(contest.Board, "cy", 8);
        await tally.FinishContestAsync(cup);
        await tally.SettleContestAsync(cup);
        foreach (var prize in await tally.Prizes(cup).TakeAsync())
            Console.WriteLine("rank " + prize.Rank + ": " + prize.Player + " wins " + prize.Amount);
        foreach (var member in members)
            Console.WriteLine(member.Key + " has " + (await tally.WalletsAsync(member.Value))[0].Balance);
    }
}
