-- What buyers hold, and their places. Changes nothing.
--
-- KEYS[1] meta: hash
-- KEYS[2] decided: hash
-- KEYS[3] stream: stream
-- KEYS[4] sale: hash
-- KEYS[5] holders: hash
-- KEYS[6] waiters: sorted set
-- KEYS[7] seats: hash
-- KEYS[8] uses: hash
-- KEYS[9] loading: hash
-- ARGV[1] epoch: integer
-- ARGV[2] voucher: integer
-- ARGV[3...] buyers: integer, at most 1,000
-- RETURN HELD word...: of each buyer his orders as stored, empty if he holds nothing, and his place
--   as lib/waitlist tells it, empty if he has none
-- RETURN NOT_LOADED reason: voucher, loading or retired
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale waitlist

local stop = partition.refusal() or sale.refusal()
if stop then
  return stop
end
local buyers = { unpack(ARGV, 3) }
local answer = { 'HELD' }
if #buyers == 0 then
  return answer
end
if sale.waiting > 0 then
  -- A place that cannot be read is none: whoever compares finds him missing.
  waitlist.load(buyers, redis.call('ZMSCORE', KEYS[6], unpack(buyers)))
end
for at, orders in ipairs(redis.call('HMGET', KEYS[5], unpack(buyers))) do
  answer[2 * at] = orders or ''
  answer[2 * at + 1] = waitlist.told(buyers[at])
end
return answer
