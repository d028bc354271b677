-- Prefix of the scripts that record changed players for servers with watching clients. The last two keys: the changed players
-- by their time in microseconds, and whether a server watches. Both expire. On boards that are not dense the third key is one
-- of them.
local changed, watched = KEYS[#KEYS - 1], KEYS[#KEYS]
if #KEYS == 4 then d = nil end

-- Names kept for servers that read ten times a second; `watch.lua` reports dropped changes to a server that lags further.
local NAMES_MAX, KEPT_MS = 10000, 10000

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function record_changed(fields)
  if #fields == 0 then return end
  local at, args = now(), {}
  for _, field in ipairs(fields) do args[#args + 1], args[#args + 2] = at, field end
  redis.call('ZADD', changed, unpack(args))
  redis.call('ZREMRANGEBYRANK', changed, 0, -NAMES_MAX - 1)
  redis.call('PEXPIRE', changed, KEPT_MS)
end
