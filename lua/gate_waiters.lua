-- Who waits, by rising turn, a page at a time. Changes nothing, unless the data contradicts itself
-- (somebody waits for nothing, or two for one order): then the gate of this sale is closed.
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
-- ARGV[3] after: integer, the last turn of the page before, 0 at first
-- ARGV[4] count: integer, how many to look at
-- RETURN PAGE turn place...: the last turn of this page (0 at the end), then each place as
--   lib/waitlist tells it
-- RETURN NOT_LOADED reason: voucher, loading or retired
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale waitlist

local stop = partition.refusal() or sale.refusal()
if stop then
  return stop
end
local range = { KEYS[6], '(' .. ARGV[3], '+inf', 'BYSCORE', 'LIMIT', '0', ARGV[4], 'WITHSCORES' }
local buyers, tickets = {}, {}
local function read(page)
  for at = 1, #page, 2 do
    buyers[#buyers + 1], tickets[#tickets + 1] = page[at], page[at + 1]
  end
end
read(redis.call('ZRANGE', unpack(range)))
local last = '0'
if #buyers >= tonumber(ARGV[4]) then
  last = tickets[#tickets]
  -- A Redis that went back draws turns again that it had drawn: all who share one are on one page.
  while tickets[#tickets] == last do
    buyers[#buyers], tickets[#tickets] = nil, nil
  end
  read(redis.call('ZRANGE', KEYS[6], last, last, 'BYSCORE', 'WITHSCORES'))
end
if not waitlist.load(buyers, tickets) then
  return sale.spoilt()
end
local answer, seen = { 'PAGE', partition.text(tonumber(last)) }, {}
for _, buyer in ipairs(buyers) do
  local order = waitlist.of[buyer].order
  if seen[order] then
    return sale.spoilt()
  end
  seen[order] = true
  answer[#answer + 1] = waitlist.told(buyer)
end
return answer
