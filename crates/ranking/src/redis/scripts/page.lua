-- A stretch of the order.
-- ARGV: run, mode, low bound, high bound ('' for none), two numbers, bytes of a score, what is wanted of the first entry
--   ('-', 'c' how many have a better score, 'd' how many distinct better ones), and for 'player' its field and the bytes
--   of a head.
-- Modes: 'best' and 'worst', so many from that end of the stretch between the bounds, at most so many; 'up', from a place
--   towards better ones, at most so many; 'near', so many above and below the low bound; 'player', the same around one.
-- Gives the total, the places between the bounds, the place of the first entry, what is wanted of it, and the entries,
-- best first; nothing for a player who is not there.
local state, total, _, kept = open(unpack(ARGV, 9, math.min(9, #ARGV)))
if not state then return redis.status_reply('LOST') end
if state == 'L' then return redis.status_reply('LOADING') end

local mode, low, high = ARGV[2], ARGV[3], ARGV[4]
local a, b, width, want = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]

local from = low == '' and 0 or before(low)
local to = high == '' and total or before(high)
local start, stop  -- from one, up to but without the other
if mode == 'best' then
  start = from + a
  stop = math.min(to, start + b)
elseif mode == 'worst' then
  stop = to - a
  start = math.max(from, stop - b)
elseif mode == 'up' then
  stop = math.min(total, a + 1)
  start = math.max(0, stop - b)
else
  local place = from
  if mode == 'player' then
    local found = kept[3] and member(ARGV[9], kept[3], tonumber(ARGV[10]))
    if not found then return false end
    place = redis.call('ZRANK', z, found)
    if not place then return redis.status_reply('LOST') end
  end
  from, to = place, place
  start = math.max(0, place - a)
  stop = math.min(total, place + b)
end

local answer = { total, from, to, start, 0 }
if start < 0 or start >= stop then return answer end
local entries = redis.call('ZRANGE', z, start, stop - 1)
if want == 'c' then
  answer[5] = before(string.sub(entries[1], 1, width))
elseif want == 'd' then
  answer[5] = redis.call('ZLEXCOUNT', d, '-', '(' .. string.sub(entries[1], 1, width))
end
answer[6] = entries
return answer
