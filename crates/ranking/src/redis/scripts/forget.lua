-- Deletes everything of a partition.
redis.call('UNLINK', unpack(KEYS))
return redis.status_reply('OK')
