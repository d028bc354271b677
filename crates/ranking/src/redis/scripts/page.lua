-- Reads entry ranges of the ranking.
-- ARGV: run, bytes of a head, bytes of a score, and for each range: mode, low bound, high bound ('' for none), two numbers, what
--   to return of the first entry ('-', 'c' how many have a better score, 'd' how many distinct better ones), a field or ''.
-- Modes: 'best' and 'worst' skip a number of entries from that end of the bounded range, then return at most a number;
--   'up', from a position towards better ones, at most a number; 'near', a number above and below the low bound; 'player', the
--   same around the player of the field.
-- Returns for each range the total, the positions between the bounds, the position of the first entry, its requested count, and
-- the entries, best first; nothing for a player that is not there.
local fields = {}
for i = 10, #ARGV, 7 do
  fields[#fields + 1] = ARGV[i]
end
local state, total, _, kept = open(unpack(fields))
if not state then return redis.status_reply('LOST') end
if state == 'L' then return redis.status_reply('LOADING') end

local head, width = tonumber(ARGV[2]), tonumber(ARGV[3])

local function stretch(mode, low, high, a, b, want, field, kept)
  local from = low == '' and 0 or before(low)
  local to = high == '' and total or before(high)
  local start, stop  -- half-open: `stop` is excluded
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
      local found = kept and member(field, kept, head)
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
end

local answers = {}
for i = 4, #ARGV, 7 do
  local mode, low, high, a, b, want, field = unpack(ARGV, i, i + 6)
  local nth = (i - 4) / 7 + 1
  answers[nth] = stretch(mode, low, high, tonumber(a), tonumber(b), want, field, kept[2 + nth])
end
return answers
