-- Reserves a block of the daily counter. Seconds never go back here, and a counter that is new, or
-- whose Redis was restarted or replaced and may have lost some of it, gives nothing out in the
-- second in which that is noticed: what an earlier life gave out carries earlier seconds.
--
-- KEYS[1] counter: hash
-- ARGV[1] size: integer, ids of a block
-- ARGV[2] start_s: integer, Unix second that ids count from
-- ARGV[3] max: integer, most ids of a day
-- RETURN BLOCK second from: second since start, and the first number of the block
-- RETURN WAIT ms: give nothing out for so long
-- RETURN FULL: the day has no more numbers

local time = redis.call('TIME')
local clock, micros = tonumber(time[1]), tonumber(time[2])
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then
  redis.call('DEL', KEYS[1])
end
local life = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') ..
  string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
local known = redis.call('HMGET', KEYS[1], 'life', 'begun', 'second', 'used')
local begun, last, used = tonumber(known[2] or ''), tonumber(known[3] or '') or 0, tonumber(known[4] or '') or 0
if known[1] ~= life or not begun then
  begun = math.max(clock, last)
  redis.call('HSET', KEYS[1], 'life', life, 'begun', string.format('%.0f', begun))
end
local second = math.max(clock, last)
if second <= begun then
  return { 'WAIT', tostring((begun - clock) * 1000 + 1000 - math.floor(micros / 1000)) }
end
local DAY = 86400
if math.floor(second / DAY) > math.floor(last / DAY) then
  used = 0
end
if used + tonumber(ARGV[1]) > tonumber(ARGV[3]) then
  return { 'FULL' }
end
redis.call('HSET', KEYS[1], 'second', string.format('%.0f', second),
  'used', string.format('%.0f', used + tonumber(ARGV[1])))
return { 'BLOCK', string.format('%.0f', second - tonumber(ARGV[2])), string.format('%.0f', used + 1) }
