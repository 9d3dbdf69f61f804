-- Notes when orders are due; an order that is there already goes by its new time. Tells those who
-- wait when the first one is due earlier than before.
--
-- KEYS[1] delays: sorted set
-- ARGV[1] channel: word, on which those who wait listen
-- ARGV[2...] due: integer, Unix milliseconds, and order of each
-- RETURN SCHEDULED: they are there

if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then
  redis.call('DEL', KEYS[1])
end
local function first()
  return tonumber(redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or '')
end
local before = first()
redis.call('ZADD', KEYS[1], unpack(ARGV, 2))
local now_first = first()
if not before or now_first < before then
  redis.call('PUBLISH', ARGV[1], string.format('%.0f', now_first))
end
return { 'SCHEDULED' }
