-- Purges some tombstones with an older version. ARGV: run, cursor, how many fields to scan, the version.
-- Returns the next cursor and how many it purged.
if not open() then return redis.status_reply('LOST') end
local found = redis.call('HSCAN', m, ARGV[2], 'COUNT', ARGV[3])
local fields = {}
for i = 1, #found[2], 2 do
  local field, value = found[2][i], found[2][i + 1]
  if string.byte(field) ~= 255 and #value == 8 and newer(ARGV[4], value) then fields[#fields + 1] = field end
end
local gone = 0
for i = 1, #fields, 1000 do
  gone = gone + redis.call('HDEL', m, unpack(fields, i, math.min(i + 999, #fields)))
end
if gone > 0 then redis.call('HINCRBY', m, GONE, -gone) end
return { found[1], gone }
