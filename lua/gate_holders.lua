-- Who holds units, a page at a time. Changes nothing.
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
-- luacheck: globals partition sale

local stop = partition.refusal() or sale.refusal()
if stop then
  return stop
end
local page = redis.call('HSCAN', KEYS[5], ARGV[3], 'COUNT', ARGV[4])
local answer = { 'PAGE', page[1] }
for at, word in ipairs(page[2]) do
  answer[at + 2] = word
end
return answer
