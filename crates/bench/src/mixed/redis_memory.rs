//! The memory that a Redis reports for its data, without what its allocator keeps.

use crate::error::{During, Error};
use crate::redis::Redis;
use crate::redis::client::Client;

pub(super) fn used(redis: &Redis) -> Result<u64, Error> {
    let mut client = Client::open(redis.address()).during("connect to Redis")?;
    let memory = client.info("memory").during("ask Redis")?;
    memory.field("used_memory").parse().during("read what Redis uses")
}
