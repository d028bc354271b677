-- Ends the freeze of every start below a number. ARGV: run, the number.
local counts = open()
if not counts then return redis.status_reply('LOST') end
if counts[5] < tonumber(ARGV[2]) then redis.call('HDEL', about, 'frozen') end
return counts
