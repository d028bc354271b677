-- Deletes every key of an application store under one number, without checking its state.
redis.call('UNLINK', unpack(KEYS))
return redis.call('EXISTS', unpack(KEYS))
