//! Benchmarks: every scenario beside the naive way, in one run, with the ratio.
