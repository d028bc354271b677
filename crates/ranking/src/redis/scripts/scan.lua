-- Some players from a cursor on. ARGV: run, cursor, how many, roughly.
-- Gives the next cursor and fields and values of the hash in turn, our own and those of who is gone among them. The hash
-- and not the order is scanned: a player keeps the field while the score changes, so nobody is missed.
local state = open()
if not state then return redis.status_reply('LOST') end
if state == 'L' then return redis.status_reply('LOADING') end
return redis.call('HSCAN', m, ARGV[2], 'COUNT', ARGV[3])
