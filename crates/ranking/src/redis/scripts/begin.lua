-- Begins a load: nothing is left of what was there. ARGV: run, epoch.
if foreign() then return redis.status_reply('FOREIGN') end
redis.call('UNLINK', unpack(KEYS))
redis.call('HSET', m, STATE, 'L' .. ARGV[1] .. ARGV[2], GONE, 0)
return redis.status_reply('OK')
