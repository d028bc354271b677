-- How often the order was changed. ARGV: run.
local state = open()
if not state then return redis.status_reply('LOST') end
if state == 'L' then return redis.status_reply('LOADING') end
return tonumber(redis.call('HGET', m, CHANGES))
