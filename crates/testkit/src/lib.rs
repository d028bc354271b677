//! For tests: models, scratch servers, a plain HTTP client and processes to kill.
