-- A buyer's place on the waitlist. Changes nothing, unless the data contradicts itself: then the
-- gate of this sale is closed.
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
-- ARGV[3] buyer: integer
-- RETURN WAITING order position length: he waits
-- RETURN PROMOTED order length: he waited and was given units
-- RETURN NONE: neither
-- RETURN NOT_LOADED reason: voucher, loading or retired
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale holders waitlist

local stop = partition.refusal() or sale.refusal()
if stop then
  return stop
end
local buyer = ARGV[3]
local ticket = redis.call('ZSCORE', KEYS[6], buyer)
if ticket then
  if not waitlist.load({ buyer }, { ticket }) then
    return sale.spoilt()
  end
  local position = redis.call('ZRANK', KEYS[6], buyer) + 1
  return { 'WAITING', waitlist.of[buyer].order, tostring(position), tostring(sale.waiting) }
end
if not holders.load({ buyer }) then
  return sale.spoilt()
end
for _, held in ipairs(holders.of[buyer]) do
  if held.promoted then
    return { 'PROMOTED', held.order, tostring(sale.waiting) }
  end
end
return { 'NONE' }
