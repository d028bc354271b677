-- Ends a load: its data becomes readable. ARGV: run, epoch.
if not open() then return redis.status_reply('LOST') end
local state = redis.call('HGET', m, STATE)
if state ~= 'L' .. ARGV[1] .. ARGV[2] then return redis.status_reply('SUPERSEDED') end
redis.call('HSET', m, STATE, 'R' .. ARGV[1] .. ARGV[2])
return redis.status_reply('OK')
