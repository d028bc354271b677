// Scores that wait for a network, in a bounded queue that outlives the program.

using System;
using System.Collections.Generic;
using System.IO;
using System.Threading;
using System.Threading.Tasks;

namespace TallyClient
{
    /// <summary>Where a queue keeps its scores: one text. In Unity, PlayerPrefs is one.</summary>
    public interface IQueueStorage
    {
        /// <summary>The text, or null if nothing was saved.</summary>
        string Load();
        void Save(string text);
    }

    /// <summary>Forgets its scores when the program ends.</summary>
    public sealed class MemoryStorage : IQueueStorage
    {
        string text;
        public string Load() { return text; }
        public void Save(string text) { this.text = text; }
    }

    /// <summary>Keeps its scores in a file. Each queue needs a file of its own.</summary>
    public sealed class FileStorage : IQueueStorage
    {
        readonly string path;
        public FileStorage(string path) { this.path = path; }
        public string Load() { return File.Exists(path) ? File.ReadAllText(path) : null; }
        public void Save(string text)
        {
            // The file has the old scores or the new ones, whenever the program ends.
            File.WriteAllText(path + ".new", text);
            if (File.Exists(path)) File.Replace(path + ".new", path, null);
            else File.Move(path + ".new", path);
        }
    }

    /// <summary>What a flush did.</summary>
    public sealed class FlushReport
    {
        /// <summary>Scores that count now, that the server refused, and that still wait.</summary>
        public int Sent, Refused, Waiting;
        /// <summary>Why they wait.</summary>
        public TallyError Error;
    }

    /// <summary>A queue of scores: Add stores a score, FlushAsync sends what waits, in order and each once.</summary>
    /// <remarks>
    /// A score without `at` counts when it arrives. With `at` it counts for the period in which it happened, if that still takes
    /// scores. A score that was sent and not answered for 23 hours is refused with outcome_unknown, because sending it again could
    /// count it twice.
    /// </remarks>
    public sealed class SubmitQueue
    {
        // The server keeps the outcome of a key for 24 hours. An hour is left for clocks and for the way.
        static readonly TimeSpan KnownFor = TimeSpan.FromHours(23);
        const int Batch = 500;
        // Errors of a row that pass.
        static readonly HashSet<string> Passing = new HashSet<string>
        {
            "contention", "overloaded", "store_unavailable", "outcome_unknown", "loading", "idempotency_in_progress",
        };

        sealed class Queued
        {
            internal BatchRow Row;
            internal long SentAt;
        }

        readonly Tally tally;
        readonly IQueueStorage storage;
        readonly int max;
        readonly SemaphoreSlim flushing = new SemaphoreSlim(1);
        readonly object gate = new object();
        List<Queued> waiting;

        /// <summary>Called with each score that counts.</summary>
        public Action<BatchRow, Submitted> OnSent;
        /// <summary>Called with each score that is given up.</summary>
        public Action<BatchRow, TallyError> OnRefused;

        /// <param name="max">How many scores wait at most.</param>
        public SubmitQueue(Tally tally, IQueueStorage storage = null, int max = 1000)
        {
            this.tally = tally;
            this.storage = storage ?? new MemoryStorage();
            this.max = max;
        }

        /// <summary>Stores a score. If the queue is full, throws a TallyError of code queue_full and stores nothing.</summary>
        public void Add(string board, string player, long score, long? subscore = null, string at = null)
        {
            lock (gate)
            {
                var list = Load();
                if (list.Count >= max)
                    throw new TallyError("queue_full", list.Count + " scores wait, and the queue takes " + max + "; flush it first");
                var row = new BatchRow
                {
                    Board = board, Player = player, Score = score, Subscore = subscore, At = at, IdempotencyKey = Guid.NewGuid().ToString("N"),
                };
                Save(new List<Queued>(list) { new Queued { Row = row } });
            }
        }

        /// <summary>How many scores wait.</summary>
        public int Count { get { lock (gate) return Load().Count; } }

        /// <summary>Sends what waits. Never throws for a lost network: then Error says why scores still wait.</summary>
        public async Task<FlushReport> FlushAsync(CancellationToken cancel = default(CancellationToken))
        {
            await flushing.WaitAsync(cancel).ConfigureAwait(false);
            try
            {
                var report = new FlushReport();
                while (report.Error == null && Count > 0)
                {
                    try
                    {
                        // Without a server nothing is marked: a player that is offline for days has sent nothing.
                        await tally.HealthAsync(cancel).ConfigureAwait(false);
                        await Send(Mark(), report, cancel).ConfigureAwait(false);
                    }
                    catch (TallyError error) when (error.Code != "storage_failed")
                    {
                        report.Error = error;
                    }
                }
                report.Waiting = Count;
                return report;
            }
            finally
            {
                flushing.Release();
            }
        }

        /// <summary>The scores to send now, stored as sent: after a crash the queue must know that they may have counted.</summary>
        List<Queued> Mark()
        {
            lock (gate)
            {
                var list = Load();
                var batch = list.GetRange(0, Math.Min(Batch, list.Count));
                foreach (var score in batch)
                    if (score.SentAt == 0) score.SentAt = DateTimeOffset.UtcNow.ToUnixTimeMilliseconds();
                Save(list);
                return batch;
            }
        }

        async Task Send(List<Queued> batch, FlushReport report, CancellationToken cancel)
        {
            var old = DateTimeOffset.UtcNow.ToUnixTimeMilliseconds() - (long)KnownFor.TotalMilliseconds;
            var late = batch.FindAll(score => score.SentAt <= old);
            foreach (var score in late)
            {
                const string Why = "it was sent more than 23 hours ago and not answered; read the player's score, then decide";
                Done(score, new BatchResult { Error = new TallyError("outcome_unknown", Why) }, report);
            }
            var fresh = batch.FindAll(score => score.SentAt > old);
            if (fresh.Count == 0) return;
            var results = await tally.SubmitManyAsync(fresh.ConvertAll(score => score.Row), null, cancel).ConfigureAwait(false);
            for (var at = 0; at < results.Count && at < fresh.Count; at++)
            {
                var error = results[at].Error;
                if (error != null && Passing.Contains(error.Code)) report.Error = error;
                else Done(fresh[at], results[at], report);
            }
        }

        void Done(Queued score, BatchResult result, FlushReport report)
        {
            lock (gate)
            {
                var rest = new List<Queued>(Load());
                rest.Remove(score);
                Save(rest);
            }
            if (result.Error == null)
            {
                report.Sent++;
                if (OnSent != null) OnSent(score.Row, result.Submitted);
            }
            else
            {
                report.Refused++;
                if (OnRefused != null) OnRefused(score.Row, result.Error);
            }
        }

        List<Queued> Load()
        {
            if (waiting != null) return waiting;
            try
            {
                var list = new List<Queued>();
                foreach (var json in Json.Parse(storage.Load() ?? "[]").Items)
                {
                    var row = new BatchRow
                    {
                        Board = json["board"].Text, Player = json["player"].Text, Score = json["score"].Long,
                        Subscore = json["subscore"].LongOrNull, At = json["at"].Text,
                        // Earlier releases of this package named it `id`.
                        IdempotencyKey = json["idempotency_key"].Text ?? json["id"].Text,
                    };
                    list.Add(new Queued { Row = row, SentAt = json["sent_at"].Long });
                }
                return waiting = list;
            }
            catch (Exception error) when (error is FormatException || error is IOException)
            {
                throw new TallyError("storage_failed", "the stored queue cannot be read; remove it to begin anew", cause: error);
            }
        }

        void Save(List<Queued> list)
        {
            var all = list.ConvertAll(score => score.Row.ToJson().With("sent_at", (long?)score.SentAt));
            try
            {
                storage.Save(Json.Of(all).ToString());
            }
            catch (IOException error)
            {
                throw new TallyError("storage_failed", "the queue cannot be stored: " + error.Message, cause: error);
            }
            waiting = list;
        }
    }
}
