-- What buyers hold. Changes nothing.
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
-- RETURN HELD orders...: of each buyer, as stored; empty if he holds nothing
-- RETURN NOT_LOADED reason: voucher, loading or retired
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale

local stop = partition.refusal() or sale.refusal()
if stop then
  return stop
end
local answer = { 'HELD' }
for at, orders in ipairs(#ARGV > 2 and redis.call('HMGET', KEYS[5], unpack(ARGV, 3)) or {}) do
  answer[at + 1] = orders or ''
end
return answer
