-- Begins a load: deletes everything there. ARGV: run, epoch, whether readable data stays ('1').
-- Returns 1 when the load has begun.
if foreign() then return redis.status_reply('FOREIGN') end
if ARGV[3] == '1' and open() == 'R' then return 0 end
redis.call('UNLINK', unpack(KEYS))
redis.call('HSET', m, STATE, 'L' .. ARGV[1] .. ARGV[2], GONE, 0)
return 1
