-- Serves the waitlist with free units and, when the sale is over, takes waiting buyers off it.
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
-- ARGV[3] max: integer, most promotions or departures
-- RETURN DONE more|idle: whether there is more to do
-- RETURN NOT_LOADED reason: voucher, loading or retired
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale holders waitlist promotion

local stop = partition.refusal() or sale.refusal()
if stop then
  return stop
end
local now, max = partition.now(), tonumber(ARGV[3])
if not (promotion.serve(now, max) and promotion.drain(now, max)) then
  return sale.spoilt()
end
local more = promotion.more(now)
if #partition.lines > 0 then
  partition.append()
  holders.save()
  waitlist.save()
  sale.save()
end
return { 'DONE', more and 'more' or 'idle' }
