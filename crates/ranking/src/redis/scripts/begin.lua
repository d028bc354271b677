-- Begins a load: nothing is left of what was there. ARGV: run, epoch, the number that changes are counted from.
redis.call('UNLINK', unpack(KEYS))
redis.call('HSET', m, STATE, 'L' .. ARGV[1] .. ARGV[2], GONE, 0, CHANGES, ARGV[3])
return redis.status_reply('OK')
