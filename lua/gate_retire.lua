-- Takes a voucher that is over out of the gate and leaves a marker. Refuses while anybody waits.
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
-- KEYS[10] staged_holders: hash
-- KEYS[11] staged_waiters: sorted set
-- KEYS[12] staged_seats: hash
-- KEYS[13] staged_uses: hash
-- ARGV[1] epoch: integer
-- ARGV[2] voucher: integer
-- RETURN RETIRED: it is out, now or by an earlier call
-- RETURN REFUSED: it is not over, or somebody waits, or it is not loaded
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale

local stop = partition.refusal()
if stop then
  return stop
end
stop = sale.refusal()
if stop then
  return { stop[2] == 'retired' and 'RETIRED' or 'REFUSED' }
end
if sale.waiting > 0 or not sale.over(partition.now()) then
  return { 'REFUSED' }
end
redis.call('HSET', KEYS[4], 'status', 'retired')
redis.call('HDEL', KEYS[4], 'opens_at', 'closes_at', 'limit', 'capacity', 'total', 'free', 'version', 'epoch',
  'holders', 'waiters', 'seats', 'uses', 'opened_by')
for at = 5, #KEYS do
  redis.call('UNLINK', KEYS[at])
end
return { 'RETIRED' }
