-- Who has changed in a partition since the last look, and that somebody goes on to look. ARGV: run, the moment of the last look ('' for
-- the first), how many at most, how long to be told in milliseconds.
-- Gives the moment of this look, and the players' fields. What happens in the moment itself is told by two looks.
local at = string.format('%.0f', now())
redis.call('SET', watched, '1', 'PX', ARGV[4])
if ARGV[2] == '' then return { at } end
local fields = redis.call('ZRANGEBYSCORE', changed, ARGV[2], '+inf', 'LIMIT', 0, ARGV[3])
table.insert(fields, 1, at)
return fields
