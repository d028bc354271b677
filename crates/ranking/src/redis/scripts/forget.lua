-- Deletes everything of a partition. ARGV: run.
if foreign() then return redis.status_reply('FOREIGN') end
redis.call('UNLINK', unpack(KEYS))
return redis.status_reply('OK')
