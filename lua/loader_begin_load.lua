-- Marks a voucher as loading: nothing is admitted until it is opened, even if the mark expires.
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
-- ARGV[3] token: word
-- ARGV[4] ttl_ms: integer, life of the mark
-- RETURN BEGUN epoch sequence: the partition's last decision
-- RETURN BUSY: another loader's mark is alive
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition loading

local stop = partition.refusal()
if stop then
  return stop
end
if loading.mine() then
  redis.call('PEXPIRE', KEYS[9], ARGV[4])
  return { 'BEGUN', partition.epoch, partition.text(partition.seq) }
end
if partition.read('HGET', KEYS[9], 'epoch') == partition.epoch then
  return { 'BUSY' }
end
redis.call('DEL', KEYS[9])
redis.call('HSET', KEYS[9], 'token', ARGV[3], 'epoch', partition.epoch,
  'seq', partition.text(partition.seq), 'staged', '0')
redis.call('PEXPIRE', KEYS[9], ARGV[4])
-- The sale stays shut even if the mark expires; what it says is kept for whoever looks.
if partition.read('HLEN', KEYS[4]) == nil then
  redis.call('DEL', KEYS[4])
end
redis.call('HSET', KEYS[4], 'epoch', '0', 'status', 'unloaded')
return { 'BEGUN', partition.epoch, partition.text(partition.seq) }
