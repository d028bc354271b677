// A game server's leaderboard over the Redis protocol, with StackExchange.Redis on .NET 8.
//
//   TALLY_KEYS_REQUIRED=false cargo run --release -- serve     in another terminal
//   dotnet new console, dotnet add package StackExchange.Redis, this file as Program.cs,
//   dotnet run [127.0.0.1:8421 [http://127.0.0.1:8420]]
//
// Reviewed by eye and not run by the project's tests, unlike its neighbours.

using System.Net.Http.Json;
using StackExchange.Redis;

var options = ConfigurationOptions.Parse(args.Length > 0 ? args[0] : "127.0.0.1:8421");
var http = args.Length > 1 ? args[1] : "http://127.0.0.1:8420";
// Once there are keys (`tally keys create --role server`): options.Password = "tally_...";
// What this client asks of a Redis with channels, a cluster or a tie to break is not here.
options.CommandMap = CommandMap.Create(new HashSet<string> { "SUBSCRIBE", "UNSUBSCRIBE", "CLUSTER" }, available: false);
options.TieBreaker = "";
options.ConfigurationChannel = "";
// Wait for a server that is just starting, and connect again by itself.
options.AbortOnConnectFail = false;

// One connection for the whole program: what many threads ask at once goes out together.
await using var redis = await ConnectionMultiplexer.ConnectAsync(options);
var db = redis.GetDatabase();

// Commands that Redis does not have are sent by name; integers come back as integers, without loss.
Task<RedisResult> Lb(string command, params object[] arguments) => db.ExecuteAsync(command, arguments);
string Shown(RedisResult entries) => string.Join(", ", ((RedisResult[])entries!)
    .Select(entry => string.Join(' ', (string[])entry!)));

// A board; it may be repeated. Its week is added over HTTP, where periods are defined.
await Lb("LB.CREATE", "arcade", "UPDATE", "best");
using var client = new HttpClient();
var weekly = new { periods = new[] { new { name = "weekly", schedule = "0 0 * * 1" } } };
(await client.PutAsJsonAsync($"{http}/v1/leaderboards/arcade", weekly)).EnsureSuccessStatusCode();

// One submit counts for all time and for this week. A network may lose the reply: with an ID of your own (the match, the
// player) the same request can be sent again and counts once.
for (var attempt = 1; attempt <= 2; attempt++)
{
    var done = (RedisResult[])(await Lb("LB.SUBMIT", "arcade", "ada", 1200, "ID", "match-17-ada"))!;
    Console.WriteLine($"ada {(long)done[0]}: rank {(long)done[1]}");
}

// Many at once: tasks that are not awaited one by one go out as one pipeline, and each still gets its own reply.
var submits = Enumerable.Range(1, 100).Select(n => Lb("LB.SUBMIT", "arcade", $"p{n:D3}", n * 10)).ToList();
try
{
    await Task.WhenAll(submits);
}
catch (RedisServerException)
{
    // A score that is refused fails alone; the others are counted below.
}
Console.WriteLine($"{submits.Count(submit => submit.IsCompletedSuccessfully)} players submitted");

Console.WriteLine($"top 10: {Shown(await Lb("LB.TOP", "arcade", 10))}");
Console.WriteLine($"around p050: {Shown(await Lb("LB.AROUND", "arcade", "p050", 2, 2))}");
// Rank among them, overall rank, player, score.
var friends = (RedisResult[])(await Lb("LB.AMONG", "arcade", "ada", "p007", "nobody"))!;
var among = friends.Select(friend => (string[])friend!).Select(friend => $"{friend[0]} {friend[2]} {friend[3]}");
Console.WriteLine($"friends: {string.Join(", ", among)}");

// A board is a key and reads like a sorted set; @weekly is its week, read only.
var best = await db.SortedSetRangeByRankWithScoresAsync("arcade@weekly", 0, 0, Order.Descending);
var week = best.Select((entry, at) => $"{at + 1} {entry.Element} {(long)entry.Score}");
Console.WriteLine($"this week: {string.Join(", ", week)}");
