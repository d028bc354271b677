-- Begins a load: nothing is left of what was there. ARGV: run, epoch, whether what can be read stays ('1').
-- Gives whether it has begun (1).
if foreign() then return redis.status_reply('FOREIGN') end
if ARGV[3] == '1' and open() == 'R' then return 0 end
redis.call('UNLINK', unpack(KEYS))
redis.call('HSET', m, STATE, 'L' .. ARGV[1] .. ARGV[2], GONE, 0)
return 1
