-- Loads a part of a snapshot beside what is there. The first chunk of a token clears what an
-- earlier attempt loaded; repeating the last chunk changes nothing. Chunks are counted: a failover
-- may lose some and keep the token.
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
-- ARGV[4] place: integer, of the chunk in the snapshot, from 0
-- ARGV[5] holders: integer, how many
-- ARGV[6] seats: integer, how many
-- ARGV[7...] rest: order, buyer, quantity, p or `-` of each holder; ticket, order, buyer, quantity,
--   key of each seat; buyer, key, g|w, order, quantity of each use of a key
-- RETURN DONE sequence: the partition's last decision
-- RETURN NOT_MINE: the mark expired, the epoch changed, or a chunk before this one is missing
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition loading holders waitlist

local stop = partition.refusal()
if stop then
  return stop
end
if not loading.mine() then
  return { 'NOT_MINE' }
end
local place = tonumber(ARGV[4])
if place > loading.staged or (place > 0 and place < loading.staged - 1) then
  return { 'NOT_MINE' }
end
if place == 0 then
  redis.call('UNLINK', KEYS[10], KEYS[11], KEYS[12], KEYS[13])
end
redis.call('HSET', KEYS[9], 'staged', place + 1)
-- From here on the libraries work on what is staged.
KEYS[5], KEYS[6], KEYS[7], KEYS[8] = KEYS[10], KEYS[11], KEYS[12], KEYS[13]

local at = 7
local function words(count)
  at = at + count
  return unpack(ARGV, at - count, at - 1)
end

for _ = 1, tonumber(ARGV[5]) do
  local order, buyer, quantity, promoted = words(4)
  holders.load({ buyer })
  if not holders.find(buyer, order) then
    holders.add(buyer, order, tonumber(quantity), promoted == 'p', '-')
  end
end
for _ = 1, tonumber(ARGV[6]) do
  local ticket, order, buyer, quantity, key = words(5)
  if not waitlist.of[buyer] and not redis.call('ZSCORE', KEYS[6], buyer) then
    waitlist.join(buyer, tonumber(ticket), order, tonumber(quantity), key)
  end
end
while at < #ARGV do
  local buyer, key, kind, order, quantity = words(5)
  redis.call('HSETNX', KEYS[8], buyer .. ' ' .. key, kind .. ' ' .. order .. ' ' .. quantity)
end
holders.save()
waitlist.save()
return { 'DONE', partition.text(partition.seq) }
