-- The gate's side of a voucher's balance, in one step: free units, and the units that decisions
-- about it took in the stream after an entry. Changes nothing.
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
-- ARGV[3] after: entry id
-- ARGV[4] max: integer, most decisions to count
-- RETURN TALLY epoch sequence free version units: the balance
-- RETURN TOO_MANY: more decisions stand there than may be counted
-- RETURN NOT_LOADED reason: voucher, loading or retired
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale

local stop = partition.refusal() or sale.refusal()
if stop then
  return stop
end
local VOUCHER, from, left, units = ARGV[2], '(' .. ARGV[3], tonumber(ARGV[4]), 0
-- Which word of a line says how many units the decision took.
local TAKES = {
  granted = '^%a+ (%d+) %d+ %d+ (%d+)', promoted = '^%a+ (%d+) %d+ %d+ (%d+)', withdrawn = '^%a+ (%d+) (%d+)',
}
local PAGE = 100

local function count(entry)
  for at = 1, #entry[2], 2 do
    if entry[2][at] == 'd' then
      for line in string.gmatch(entry[2][at + 1], '[^\n]+') do
        local pattern = TAKES[string.match(line, '^%a+') or '']
        local voucher, taken = string.match(line, pattern or '^$')
        if voucher == VOUCHER then
          units = units + tonumber(taken)
        end
        left = left - 1
      end
    end
  end
end

while true do
  local page = redis.call('XRANGE', KEYS[3], from, '+', 'COUNT', PAGE)
  for _, entry in ipairs(page) do
    count(entry)
  end
  if left < 0 then
    return { 'TOO_MANY' }
  elseif #page < PAGE then
    return { 'TALLY', partition.epoch, partition.text(partition.seq), tostring(sale.free), sale.version,
      partition.text(units) }
  end
  from = '(' .. page[#page][1]
end
