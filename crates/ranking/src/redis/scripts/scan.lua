-- Some players from a cursor on. ARGV: run, cursor, roughly how many.
-- Returns the next cursor, and fields and values of the hash alternately, with our own fields and tombstones among them. It
-- scans the hash, not the ranking: a player keeps its field while the score changes, so the scan misses no player.
local state = open()
if not state then return redis.status_reply('LOST') end
if state == 'L' then return redis.status_reply('LOADING') end
return redis.call('HSCAN', m, ARGV[2], 'COUNT', ARGV[3])
