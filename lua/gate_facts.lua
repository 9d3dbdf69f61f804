-- A sale as the gate sees it. Changes nothing.
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
-- RETURN FACTS status opens_at closes_at limit capacity total free waiting version: the sale
-- RETURN NOT_LOADED reason: voucher, loading or retired
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale

local stop = partition.refusal() or sale.refusal()
if stop then
  return stop
end
return { 'FACTS', sale.status, sale.opens_at, sale.closes_at, tostring(sale.limit), tostring(sale.capacity),
  tostring(sale.total), tostring(sale.free), tostring(sale.waiting), sale.version }
