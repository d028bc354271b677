// Event streams that go on where they were after a lost connection.

using System;
using System.Collections.Generic;
using System.IO;
using System.Net.Http;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace TallyClient
{
    /// <summary>One event. `Type` says what `Data` is.</summary>
    public sealed class TallyEvent
    {
        public string Type;
        /// <summary>The position of this event: a stream that is given it goes on behind this event.</summary>
        public string Id;
        public Json Data;
    }

    /// <summary>The events of a leaderboard, a contest or a member.</summary>
    /// <remarks>
    /// <see cref="NextAsync"/> connects, connects again by itself with the last id, and gives each stored event once and in order. It
    /// throws a TallyError if the server will not send any more (401, 403, 404). One reader at a time.
    /// </remarks>
    public sealed class EventStream : IDisposable
    {
        // The server sends at least a comment every 15 seconds.
        static readonly TimeSpan SilenceMax = TimeSpan.FromSeconds(45);

        readonly Transport transport;
        readonly string path;
        readonly Random random = new Random();
        readonly Queue<string> blocks = new Queue<string>();
        readonly Decoder decoder = Encoding.UTF8.GetDecoder();
        readonly byte[] bytes = new byte[16384];
        TimeSpan wait = TimeSpan.FromSeconds(2);
        HttpResponseMessage response;
        Stream stream;
        string text = "";

        /// <summary>The position of the last event, or where the stream began. Store it to go on after a restart.</summary>
        public string LastEventId { get; private set; }

        internal EventStream(Transport transport, string path, string lastEventId)
        {
            this.transport = transport;
            this.path = path;
            LastEventId = lastEventId;
        }

        /// <summary>Waits for the next event.</summary>
        public async Task<TallyEvent> NextAsync(CancellationToken cancel = default(CancellationToken))
        {
            for (;;)
            {
                while (blocks.Count > 0)
                {
                    var found = Read(blocks.Dequeue());
                    if (found != null) return found;
                }
                var pause = TimeSpan.Zero;
                try
                {
                    if (stream == null) await Connect(cancel).ConfigureAwait(false);
                    if (await Fill(cancel).ConfigureAwait(false)) continue;
                    pause = wait;
                }
                catch (TallyError error)
                {
                    if (error.Status >= 400 && error.Status < 406) throw;
                    pause = TimeSpan.FromSeconds(Math.Max(wait.TotalSeconds, error.RetryAfter ?? 0));
                }
                Dispose();
                // Many streams that broke together come back one after the other.
                pause = TimeSpan.FromSeconds(pause.TotalSeconds * (1 + random.NextDouble() / 2));
                await Task.Delay(pause, cancel).ConfigureAwait(false);
            }
        }

        /// <summary>Closes the connection. <see cref="NextAsync"/> would open another one.</summary>
        public void Dispose()
        {
            if (stream != null) stream.Dispose();
            if (response != null) response.Dispose();
            stream = null;
            response = null;
            text = "";
            decoder.Reset();
        }

        async Task Connect(CancellationToken cancel)
        {
            response = await transport.Open(path, LastEventId, cancel).ConfigureAwait(false);
            stream = await response.Content.ReadAsStreamAsync().ConfigureAwait(false);
        }

        /// <summary>Reads what has come; false if the connection broke, which is no error.</summary>
        async Task<bool> Fill(CancellationToken cancel)
        {
            int count;
            // Streams of some platforms ignore a token, so a silent or unwanted one is closed.
            using (var limit = CancellationTokenSource.CreateLinkedTokenSource(cancel))
            using (limit.Token.Register(stream.Dispose))
            {
                limit.CancelAfter(SilenceMax);
                try
                {
                    count = await stream.ReadAsync(bytes, 0, bytes.Length, limit.Token).ConfigureAwait(false);
                }
                catch (Exception error) when (
                    error is IOException || error is HttpRequestException || error is ObjectDisposedException
                    || error is OperationCanceledException || error is System.Net.WebException)
                {
                    cancel.ThrowIfCancellationRequested();
                    return false;
                }
                cancel.ThrowIfCancellationRequested();
            }
            if (count == 0) return false;
            var chars = new char[decoder.GetCharCount(bytes, 0, count)];
            decoder.GetChars(bytes, 0, count, chars, 0);
            text = (text + new string(chars)).Replace("\r\n", "\n");
            int end;
            while ((end = text.IndexOf("\n\n", StringComparison.Ordinal)) >= 0)
            {
                blocks.Enqueue(text.Substring(0, end));
                text = text.Substring(end + 2);
            }
            return true;
        }

        /// <summary>The event of the lines between two empty ones, or null if they have none.</summary>
        TallyEvent Read(string block)
        {
            var type = "message";
            string data = null;
            foreach (var line in block.Split('\n'))
            {
                var colon = line.IndexOf(':');
                var name = colon < 0 ? line : line.Substring(0, colon);
                var value = colon < 0 ? "" : line.Substring(colon + 1);
                if (value.StartsWith(" ", StringComparison.Ordinal)) value = value.Substring(1);
                int ms;
                if (name == "event") type = value;
                // An empty id means that there is none to go on from.
                else if (name == "id") LastEventId = value.Length == 0 ? null : value;
                else if (name == "retry" && int.TryParse(value, out ms)) wait = TimeSpan.FromMilliseconds(ms);
                else if (name == "data") data = data == null ? value : data + "\n" + value;
            }
            return data == null ? null : new TallyEvent { Type = type, Id = LastEventId, Data = Json.Parse(data) };
        }
    }
}
