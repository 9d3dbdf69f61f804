-- Takes free units out of the sale, once per adjustment.
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
-- ARGV[3] units: integer
-- ARGV[4] adjustment: integer
-- RETURN WITHDRAWN: they are out, now or by an earlier call
-- RETURN NOT_ENOUGH free: nothing changed
-- RETURN NOT_LOADED reason: voucher, loading or retired
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale

local stop = partition.refusal() or sale.refusal()
if stop then
  return stop
end
local VOUCHER, units, mark = ARGV[2], tonumber(ARGV[3]), 'a' .. ARGV[4]
if redis.call('HEXISTS', KEYS[2], mark) == 1 then
  return { 'WITHDRAWN' }
elseif units > sale.free then
  return { 'NOT_ENOUGH', tostring(sale.free) }
end
partition.decide(table.concat({ 'withdrawn', VOUCHER, ARGV[3], ARGV[4] }, ' '), mark, 'a')
sale.free, sale.total = sale.free - units, math.max(sale.total - units, 0)
partition.append()
sale.save()
return { 'WITHDRAWN' }
