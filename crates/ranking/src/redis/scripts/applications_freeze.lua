-- Freezes the decisions: a start is about to read the accepted players. ARGV: run, the number of the start.
local counts = open()
if not counts then return redis.status_reply('LOST') end
if tonumber(ARGV[2]) > counts[5] then redis.call('HSET', about, 'frozen', ARGV[2]) end
return counts
