//! Load over the wire, with latencies from the first to the last percentile.
