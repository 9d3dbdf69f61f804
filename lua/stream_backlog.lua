-- How much the stream holds that the ledger does not have. Changes nothing.
--
-- KEYS[1] meta: hash
-- KEYS[2] decided: hash
-- KEYS[3] stream: stream
-- ARGV[1] epoch: integer
-- ARGV[2] group: word, the consumer group
-- RETURN BACKLOG decisions pending length: not yet applied, delivered and not acknowledged, in the
--   stream
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition

local stop = partition.refusal()
if stop then
  return stop
end
local pending = redis.pcall('XPENDING', KEYS[3], ARGV[2])
return { 'BACKLOG', partition.text(math.max(partition.seq - partition.applied, 0)),
  tostring(pending.err and 0 or pending[1]), tostring(redis.call('XLEN', KEYS[3])) }
