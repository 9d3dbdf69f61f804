-- Puts what was loaded in place of what was there and admits buyers again, unless something of the
-- voucher was appended after the snapshot.
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
-- ARGV[3] token: word
-- ARGV[4] applied: integer, the last decision in the snapshot
-- ARGV[5] status: word
-- ARGV[6] opens_at: integer
-- ARGV[7] closes_at: integer
-- ARGV[8] limit: integer
-- ARGV[9] capacity: integer
-- ARGV[10] total: integer
-- ARGV[11] free: integer
-- ARGV[12] version: integer
-- ARGV[13] chunks: integer, how many were loaded
-- RETURN OPENED: the sale is at the gate
-- RETURN BEHIND sequence: the snapshot has to contain this decision
-- RETURN NOT_MINE: the mark expired, the epoch changed, or chunks are missing
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition loading

local stop = partition.refusal()
if stop then
  return stop
end
if not loading.mine() then
  -- A repeat of the call that opened it is answered as that call was.
  local got = partition.read('HMGET', KEYS[4], 'opened_by', 'epoch') or {}
  return { got[1] == ARGV[3] and got[2] == partition.epoch and 'OPENED' or 'NOT_MINE' }
end
if tonumber(ARGV[4]) < loading.seq then
  return { 'BEHIND', partition.text(loading.seq) }
end
if tonumber(ARGV[13]) ~= loading.staged then
  return { 'NOT_MINE' }
end
local staged = loading.staged > 0
local TYPES = { 'hash', 'zset', 'hash', 'hash' }
for at = 1, 4 do
  local kind = redis.call('TYPE', KEYS[9 + at]).ok
  if staged and kind ~= 'none' and kind ~= TYPES[at] then
    return { 'NOT_MINE' }
  end
end
for at = 1, 4 do
  -- RENAME would free what is there at once, which takes long if it is much.
  redis.call('UNLINK', KEYS[4 + at])
  if not staged then
    redis.call('UNLINK', KEYS[9 + at])
  elseif redis.call('EXISTS', KEYS[9 + at]) == 1 then
    redis.call('RENAME', KEYS[9 + at], KEYS[4 + at])
  end
end
redis.call('DEL', KEYS[4], KEYS[9])
redis.call('HSET', KEYS[4], 'epoch', partition.epoch, 'opened_by', ARGV[3], 'status', ARGV[5],
  'opens_at', ARGV[6], 'closes_at', ARGV[7], 'limit', ARGV[8], 'capacity', ARGV[9], 'total', ARGV[10],
  'free', ARGV[11], 'version', ARGV[12], 'holders', redis.call('HLEN', KEYS[5]),
  'waiters', redis.call('ZCARD', KEYS[6]), 'seats', redis.call('HLEN', KEYS[7]), 'uses', redis.call('HLEN', KEYS[8]))
return { 'OPENED' }
