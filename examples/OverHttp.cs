// A game server's leaderboard over HTTP, with HttpClient of .NET 8.
//
//   TALLY_KEYS_REQUIRED=false cargo run --release -- serve     in another terminal
//   dotnet new console, this file as Program.cs, dotnet run [http://127.0.0.1:8420]
//
// Reviewed by eye and not run by the project's tests, unlike its neighbours.

using System.Net.Http.Json;
using System.Text.Json.Nodes;

var url = args.Length > 0 ? args[0] : "http://127.0.0.1:8420";

// One client for the whole program: it keeps its connections.
using var http = new HttpClient { BaseAddress = new Uri(url), Timeout = TimeSpan.FromSeconds(10) };
// Once there are keys (`tally keys create --role server`):
// http.DefaultRequestHeaders.Authorization = new System.Net.Http.Headers.AuthenticationHeaderValue("Bearer", "tally_...");

async Task<JsonNode> Ask(HttpMethod method, string path, object? body = null, string? retryKey = null)
{
    using var request = new HttpRequestMessage(method, $"/v1{path}");
    if (body is not null) request.Content = JsonContent.Create(body);
    if (retryKey is not null) request.Headers.Add("Idempotency-Key", retryKey);
    using var answer = await http.SendAsync(request);
    var text = await answer.Content.ReadAsStringAsync();
    // The body of a refusal says what is wrong; its `code` is for programs.
    if (!answer.IsSuccessStatusCode) throw new HttpRequestException($"{(int)answer.StatusCode}: {text}");
    return JsonNode.Parse(text)!;
}

string Shown(JsonNode page) => string.Join(", ", page["entries"]!.AsArray()
    .Select(entry => $"{entry!["rank"]} {entry["player"]} {entry["score"]}"));

// A board, with a weekly one inside it. PUT may be repeated: do it at every start of your game server.
await Ask(HttpMethod.Put, "/leaderboards/arcade", new
{
    update = "best",
    periods = new[] { new { name = "weekly", schedule = "0 0 * * 1" } },
});

// One submit counts for all time and for this week. A network may lose the answer: with a key of your own (the match, the
// player) the same request can be sent again and counts once.
for (var attempt = 1; attempt <= 2; attempt++)
{
    var score = new { player = "ada", score = 1200L };
    var done = await Ask(HttpMethod.Post, "/leaderboards/arcade/scores", score, "match-17-ada");
    Console.WriteLine($"ada {done["score"]}: rank {done["rank"]}");
}

// Up to 1000 scores in one request. A row that is refused fails alone, so look at each.
var scores = Enumerable.Range(1, 100).Select(n => new { board = "arcade", player = $"p{n:D3}", score = n * 10L });
var results = (await Ask(HttpMethod.Post, "/scores/batch", new { scores }))["results"]!.AsArray();
Console.WriteLine($"{results.Count(result => result!["error"] is null)} players submitted");

Console.WriteLine($"top 10: {Shown(await Ask(HttpMethod.Get, "/leaderboards/arcade/scores?limit=10"))}");
// A player's name can have any character: escape it.
var player = Uri.EscapeDataString("p050");
var around = await Ask(HttpMethod.Get, $"/leaderboards/arcade/players/{player}/around?above=2&below=2");
Console.WriteLine($"around p050: {Shown(around)}");
var friends = new { players = new[] { "ada", "p007", "nobody" } };
Console.WriteLine($"friends: {Shown(await Ask(HttpMethod.Post, "/leaderboards/arcade/among", friends))}");
var week = await Ask(HttpMethod.Get, "/leaderboards/arcade/scores?period=weekly&limit=1");
Console.WriteLine($"this week: {Shown(week)}");
