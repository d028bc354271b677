// The one error class of the package.

using System;

namespace TallyClient
{
    /// <summary>A call that failed. <see cref="Code"/> is for programs, the message for people.</summary>
    /// <remarks>
    /// The codes of the server are in its reference (/docs). The package adds network_error (no answer came), timeout (no answer came
    /// in time), not_tally (something else answered), queue_full, outcome_unknown and storage_failed (of a SubmitQueue).
    /// </remarks>
    public sealed class TallyError : Exception
    {
        /// <summary>A stable word, such as leaderboard_not_found.</summary>
        public string Code { get; private set; }
        /// <summary>The HTTP status; 0 if no server answered.</summary>
        public int Status { get; private set; }
        /// <summary>The id under which the server's log has this request.</summary>
        public string RequestId { get; private set; }
        /// <summary>Seconds after which the server wants to be asked again.</summary>
        public double? RetryAfter { get; private set; }
        /// <summary>The whole body of the error: `errors` names each wrong field, and some codes have more.</summary>
        public Json Problem { get; private set; }

        public TallyError(
            string code, string message, int status = 0, string requestId = null, double? retryAfter = null,
            Json problem = null, Exception cause = null)
            : base(message, cause)
        {
            Code = code;
            Status = status;
            RequestId = requestId;
            RetryAfter = retryAfter;
            Problem = problem ?? Json.Null;
        }
    }
}
