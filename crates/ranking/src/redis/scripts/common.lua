-- Prefix of every script. KEYS: the ranking, the players, and on dense boards the distinct scores, all in one slot.
-- ARGV[1]: the expected process of the Redis server (its run_id), and the stamp of the owner: store, generation, term.
local z, m, d = KEYS[1], KEYS[2], KEYS[3]

-- Our own fields in the hash of players; no field of a player begins so.
local STATE, GONE = '\255state', '\255gone'

-- Returns the state of the data ('R' ready or 'L' loading), the total of players, the epoch of the load, and a list with the
-- kept values of these fields from the third on. Returns nothing when the data is not what was loaded: flushed, restored by
-- another process from a file, copied from a newer master, a whole key evicted, or loaded from another store.
local function open(...)
  local kept = redis.call('HMGET', m, STATE, GONE, ...)
  local state, gone = kept[1], tonumber(kept[2] or '')
  if not state or not gone or string.sub(state, 2, 1 + #ARGV[1]) ~= ARGV[1] then return nil end
  local total = redis.call('ZCARD', z)
  if redis.call('HLEN', m) ~= total + gone + 2 then return nil end
  if d and total > 0 and redis.call('EXISTS', d) == 0 then return nil end
  return string.sub(state, 1, 1), total, string.sub(state, 2 + #ARGV[1]), kept
end

-- Whether this process has the ranking of another store: the first 40 bytes are the process, the next 32 the store.
local function foreign()
  local state, store = redis.call('HGET', m, STATE), string.sub(ARGV[1], 41, 72)
  return state and #state >= 89 and #store == 32 and string.sub(state, 2, 41) == string.sub(ARGV[1], 1, 40)
    and string.sub(state, 42, 73) ~= store
end

local function before(bound)
  return redis.call('ZLEXCOUNT', z, '-', '(' .. bound)
end

-- How many have exactly this score: `after` is longer than all that can follow it.
local after = string.rep('\255', 17)
local function same(score)
  return redis.call('ZLEXCOUNT', z, '[' .. score, '(' .. score .. after)
end

-- The member of a player: the kept value behind its 8 bytes of version, around the field. Nothing for a removed player.
local function member(field, kept, head)
  if #kept <= 8 then return nil end
  return string.sub(kept, 9, 8 + head) .. field .. string.sub(kept, 9 + head)
end
