-- Starts a new life of a partition: an empty stream with its group at the start, an empty index,
-- the sequence going on from what the ledger has applied. Vouchers stay and count as not loaded.
--
-- KEYS[1] meta: hash
-- KEYS[2] decided: hash
-- KEYS[3] stream: stream, of the epoch the caller knows
-- KEYS[4] previous: stream, of the epoch before the new one
-- KEYS[5] next: stream, of the new epoch
-- ARGV[1] epoch: integer, the one the caller knows
-- ARGV[2] new: integer, the new epoch
-- ARGV[3] applied: integer
-- ARGV[4] group: word, the consumer group
-- RETURN BEGUN: it lives in the new epoch
-- RETURN NOT_NEWER epoch: nothing changed
-- RETURN STALE epoch: it lives in this one

local meta = redis.pcall('HMGET', KEYS[1], 'epoch', 'seq', 'applied', 'decided')
local epoch = tonumber(not meta.err and meta[1] or '')
if epoch and meta[2] and meta[3] and meta[4] then
  if epoch >= tonumber(ARGV[2]) then
    return { 'NOT_NEWER', meta[1] }
  elseif meta[1] ~= ARGV[1] then
    return { 'STALE', meta[1] }
  end
end
redis.call('UNLINK', KEYS[3], KEYS[4], KEYS[5], KEYS[2], KEYS[1])
redis.call('XGROUP', 'CREATE', KEYS[5], ARGV[4], '0', 'MKSTREAM')
redis.call('HSET', KEYS[1], 'epoch', ARGV[2], 'seq', ARGV[3], 'applied', ARGV[3], 'decided', '0')
return { 'BEGUN' }
