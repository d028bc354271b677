-- Reads players and counts in one call.
-- ARGV: run, bytes of a head, bytes of a score, what to return for each player, how many players, their fields, how many
--   bounds, these bounds, bounds in the distinct scores.
-- What to return: '-' the kept value only; with it, 'o' the position, 'c' how many have a better score, 'd' that and how many
--   distinct better scores there are, 's' how many have the same score.
-- Returns the total, one item for each player (or nothing), and one count for each bound.
local players = tonumber(ARGV[5])
local state, total, _, kept = open(unpack(ARGV, 6, 5 + players))
if not state then return redis.status_reply('LOST') end
if state == 'L' then return redis.status_reply('LOADING') end

local head, width, want = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local answer = { total }

local function look(field, kept)
  local found = want ~= '-' and member(field, kept, head)
  if not found then return { kept } end
  -- -1 means: the hash names a member or a score that the ranking does not have.
  if want == 'o' then return { kept, redis.call('ZRANK', z, found) or -1 } end
  local score = string.sub(found, 1, width)
  if want == 's' then return { kept, same(score) } end
  if want == 'c' then return { kept, before(score) } end
  return { kept, before(score), redis.call('ZRANK', d, score) or -1 }
end

for i = 1, players do
  answer[#answer + 1] = kept[2 + i] and look(ARGV[5 + i], kept[2 + i])
end

local first = 6 + players
local bounds = tonumber(ARGV[first])
for i = first + 1, first + bounds do
  answer[#answer + 1] = before(ARGV[i])
end
for i = first + bounds + 1, #ARGV do
  answer[#answer + 1] = redis.call('ZLEXCOUNT', d, '-', '(' .. ARGV[i])
end
return answer
