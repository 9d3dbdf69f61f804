-- When the next order is due. Changes nothing.
--
-- KEYS[1] delays: sorted set
-- RETURN NEXT in_ms at_ms: so long from now (0 if it is due), at this Unix millisecond
-- RETURN NONE: nothing is scheduled

local first = redis.call('TYPE', KEYS[1]).ok == 'zset' and redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES') or {}
local at = tonumber(first[2] or '')
if not at then
  return { 'NONE' }
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
return { 'NEXT', string.format('%.0f', math.max(at - now, 0)), string.format('%.0f', at) }
