-- Players and counts, in one question.
-- ARGV: run, bytes of a head, bytes of a score, what is wanted ('-' what is kept, 'o' the place too, 'c' how many have a
--   better score too, 'd' how many distinct ones and how many share it too), how many players, their fields, how many
--   bounds, these bounds, bounds in the distinct scores.
-- Gives the total, one item per player (nothing, or what is wanted of it), one count per bound.
local state, total = open()
if not state then return redis.status_reply('LOST') end
if state == 'L' then return redis.status_reply('LOADING') end

local head, width, want = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local players = tonumber(ARGV[5])
local answer = { total }

local function look(field, kept)
  local item = { kept }
  local found = member(field, kept, head)
  if not found or want == '-' then return item end
  -- A place of -1: the hash names a member that is not there.
  item[2] = redis.call('ZRANK', z, found) or -1
  if want == 'o' then return item end
  local score = string.sub(found, 1, width)
  item[3] = before(score)
  if want == 'c' then return item end
  item[4] = redis.call('ZRANK', d, score) or -1
  item[5] = same(score)
  return item
end

if players > 0 then
  local all = redis.call('HMGET', m, unpack(ARGV, 6, 5 + players))
  for i = 1, players do
    answer[#answer + 1] = all[i] and look(ARGV[5 + i], all[i])
  end
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
