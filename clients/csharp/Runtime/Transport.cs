// Requests over HttpClient: a key for each change, bounded retries with backoff and jitter, and Retry-After.

using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Net.Http;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace TallyClient
{
    /// <summary>How a call that may succeed later is repeated.</summary>
    public sealed class Retry
    {
        /// <summary>How often a request is sent at most. 8 takes 8 to 16 s and outlasts a restart of a server. 1 turns retries off.</summary>
        public int Attempts = 8;
        /// <summary>The wait before the second attempt; each wait is twice the last, and up to half of it is random.</summary>
        public TimeSpan FirstWait = TimeSpan.FromMilliseconds(200);
        /// <summary>The longest of these waits.</summary>
        public TimeSpan LongestWait = TimeSpan.FromSeconds(5);
        /// <summary>The longest Retry-After that is obeyed. A longer one ends the call with its error.</summary>
        public TimeSpan LongestRetryAfter = TimeSpan.FromSeconds(30);

        readonly Random random = new Random();

        internal TimeSpan? After(TallyError error, int attempt)
        {
            var lost = error.Code == "network_error" || error.Code == "timeout";
            var again = error.Status == 408 || error.Status == 409 || error.Status == 429
                || error.Status == 502 || error.Status == 503 || error.Status == 504;
            if (attempt >= Attempts || !lost && !again) return null;
            if ((error.Status == 409 || error.Status == 429) && error.RetryAfter == null) return null;
            var asked = error.RetryAfter ?? 0;
            if (asked > LongestRetryAfter.TotalSeconds) return null;
            var backoff = Math.Min(LongestWait.TotalSeconds, FirstWait.TotalSeconds * Math.Pow(2, attempt - 1));
            lock (random) return TimeSpan.FromSeconds(Math.Max(asked, backoff / 2) + random.NextDouble() * backoff / 2);
        }
    }

    sealed class Transport : IDisposable
    {
        readonly string url;
        readonly HttpClient http;
        readonly bool ownsHttp;
        readonly TimeSpan timeout;
        readonly Retry retry;
        internal string Key;

        internal Transport(string url, string key, TimeSpan timeout, Retry retry, HttpClient http)
        {
            if (!url.StartsWith("http://", StringComparison.Ordinal) && !url.StartsWith("https://", StringComparison.Ordinal))
                throw new ArgumentException("the address is " + url + "; it begins with http:// or https://", "url");
            this.url = url.TrimEnd('/');
            this.timeout = timeout;
            this.retry = retry;
            // Each attempt has its own time, and a stream has none.
            ownsHttp = http == null;
            this.http = http ?? new HttpClient { Timeout = Timeout.InfiniteTimeSpan };
            Key = key;
        }

        public void Dispose()
        {
            if (ownsHttp) http.Dispose();
        }

        internal async Task<Json> Request(
            string method, string path, Json body, bool changes, string idempotencyKey, string actingPlayer, CancellationToken cancel)
        {
            var key = changes ? idempotencyKey ?? Guid.NewGuid().ToString("N") : null;
            for (var attempt = 1; ; attempt++)
            {
                TimeSpan? wait;
                try
                {
                    return await Once(method, path, body, key, actingPlayer, cancel).ConfigureAwait(false);
                }
                catch (TallyError error)
                {
                    wait = retry.After(error, attempt);
                    if (wait == null) throw;
                }
                await Task.Delay(wait.Value, cancel).ConfigureAwait(false);
            }
        }

        async Task<Json> Once(
            string method, string path, Json body, string key, string actingPlayer, CancellationToken cancel)
        {
            using (var request = new HttpRequestMessage(new HttpMethod(method), url + path))
            using (var limit = CancellationTokenSource.CreateLinkedTokenSource(cancel))
            {
                limit.CancelAfter(timeout);
                if (key != null) request.Headers.TryAddWithoutValidation("Idempotency-Key", key);
                if (actingPlayer != null)
                    request.Headers.TryAddWithoutValidation("Tally-Acting-Player", Uri.EscapeDataString(actingPlayer));
                if (body != null) request.Content = new StringContent(body.ToString(), Encoding.UTF8, "application/json");
                using (var response = await Send(request, HttpCompletionOption.ResponseContentRead, limit.Token, cancel).ConfigureAwait(false))
                {
                    var text = await response.Content.ReadAsStringAsync().ConfigureAwait(false);
                    if (!response.IsSuccessStatusCode) throw Refusal(response, text);
                    try
                    {
                        return text.Length == 0 ? Json.Null : Json.Parse(text);
                    }
                    catch (FormatException)
                    {
                        throw new TallyError("not_tally", url + path + " answered with something else than JSON: " + Shown(text));
                    }
                }
            }
        }

        /// <summary>Begins a stream of events; the caller disposes of the response.</summary>
        internal async Task<HttpResponseMessage> Open(string path, string lastEventId, CancellationToken cancel)
        {
            using (var request = new HttpRequestMessage(HttpMethod.Get, url + path))
            {
                request.Headers.TryAddWithoutValidation("Accept", "text/event-stream");
                if (lastEventId != null) request.Headers.TryAddWithoutValidation("Last-Event-ID", lastEventId);
                var response = await Send(request, HttpCompletionOption.ResponseHeadersRead, cancel, cancel).ConfigureAwait(false);
                if (response.IsSuccessStatusCode) return response;
                using (response) throw Refusal(response, await response.Content.ReadAsStringAsync().ConfigureAwait(false));
            }
        }

        async Task<HttpResponseMessage> Send(
            HttpRequestMessage request, HttpCompletionOption until, CancellationToken limit, CancellationToken cancel)
        {
            if (Key != null) request.Headers.TryAddWithoutValidation("Authorization", "Bearer " + Key);
            try
            {
                return await http.SendAsync(request, until, limit).ConfigureAwait(false);
            }
            catch (OperationCanceledException error)
            {
                if (cancel.IsCancellationRequested) throw;
                throw new TallyError("timeout", "no answer in " + timeout.TotalSeconds + " s: " + request.RequestUri, cause: error);
            }
            catch (Exception error) when (error is HttpRequestException || error is IOException || error is ObjectDisposedException)
            {
                var why = (error.InnerException ?? error).Message;
                throw new TallyError("network_error", "no answer from " + request.RequestUri + ": " + why, cause: error);
            }
        }

        static TallyError Refusal(HttpResponseMessage response, string text)
        {
            double seconds;
            var status = (int)response.StatusCode;
            var known = double.TryParse(Header(response, "Retry-After"), NumberStyles.None, CultureInfo.InvariantCulture, out seconds);
            var after = known ? seconds : (double?)null;
            var id = Header(response, "X-Request-Id");
            try
            {
                var problem = Json.Parse(text);
                if (problem["code"].Text != null && problem["detail"].Text != null)
                    return new TallyError(problem["code"].Text, problem["detail"].Text, status, id, after, problem);
            }
            catch (FormatException)
            {
                // The next line says what came.
            }
            var message = response.RequestMessage.RequestUri + " answered " + status + ", and not as a tally server does: " + Shown(text);
            return new TallyError("not_tally", message, status, id, after);
        }

        static string Header(HttpResponseMessage response, string name)
        {
            IEnumerable<string> values;
            return response.Headers.TryGetValues(name, out values) ? string.Join(",", values) : null;
        }

        static string Shown(string text) { return text.Length <= 200 ? text : text.Substring(0, 200); }
    }
}
