-- Gives a buyer's place on the waitlist up, if he still has it.
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
-- RETURN LEFT order: his place was given up
-- RETURN NOT_WAITING: there was none
-- RETURN ALREADY_PROMOTED order: he has been given his units
-- RETURN NOT_LOADED reason: voucher, loading or retired
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale holders waitlist

local stop = partition.refusal() or sale.refusal()
if stop then
  return stop
end
local VOUCHER, buyer = ARGV[2], ARGV[3]
local ticket = redis.call('ZSCORE', KEYS[6], buyer)
if ticket then
  if not waitlist.load({ buyer }, { ticket }) then
    return sale.spoilt()
  end
  local seat = waitlist.of[buyer]
  local words = { 'left', VOUCHER, seat.order, buyer, seat.quantity, seat.key, 'withdrawn' }
  partition.decide(table.concat(words, ' '), seat.order, 'w')
  waitlist.leave(seat)
  partition.append()
  sale.save(0, waitlist.save())
  return { 'LEFT', seat.order }
end
if not holders.load({ buyer }) then
  return sale.spoilt()
end
for _, held in ipairs(holders.of[buyer]) do
  if held.promoted then
    return { 'ALREADY_PROMOTED', held.order }
  end
end
return { 'NOT_WAITING' }
