-- A start is going to read who is accepted: nobody is decided on from now on. ARGV: run, the number of the start.
local counts = open()
if not counts then return redis.status_reply('LOST') end
if tonumber(ARGV[2]) > counts[5] then redis.call('HSET', about, 'frozen', ARGV[2]) end
return counts
