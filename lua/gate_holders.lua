-- Who holds units, a page at a time. Changes nothing, unless what somebody holds cannot be read: then
-- the gate of this sale is closed.
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
-- ARGV[3] cursor: integer, 0 at first
-- ARGV[4] count: integer, how many to look at
-- RETURN PAGE cursor word...: where the next page starts (0 at the end), then buyer and orders as
--   stored of each holder
-- RETURN NOT_LOADED reason: voucher, loading or retired
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale holders

local stop = partition.refusal() or sale.refusal()
if stop then
  return stop
end
local page = redis.call('HSCAN', KEYS[5], ARGV[3], 'COUNT', ARGV[4])
local answer = { 'PAGE', page[1] }
local words = page[2]
for at = 1, #words, 2 do
  if not holders.readable(words[at], words[at + 1]) then
    return sale.spoilt()
  end
  answer[at + 2], answer[at + 3] = words[at], words[at + 1]
end
return answer
