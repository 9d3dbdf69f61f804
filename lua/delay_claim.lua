-- Claims orders that are due by Redis's clock, oldest first. They stay, and are due again once the
-- hold is over: whoever has handled them removes them.
--
-- KEYS[1] delays: sorted set
-- ARGV[1] max: integer, most orders
-- ARGV[2] hold_ms: integer, how long nobody else gets them
-- RETURN CLAIMED order...: nobody else gets these meanwhile

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local due = redis.call('TYPE', KEYS[1]).ok == 'zset'
  and redis.call('ZRANGE', KEYS[1], '-inf', string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, ARGV[1]) or {}
local again, moved, answer = string.format('%.0f', now + tonumber(ARGV[2])), {}, { 'CLAIMED' }
for at, order in ipairs(due) do
  moved[2 * at - 1], moved[2 * at], answer[at + 1] = again, order, order
end
if #due > 0 then
  redis.call('ZADD', KEYS[1], unpack(moved))
end
return answer
