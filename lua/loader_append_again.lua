-- Appends holders and seats that are in neither ledger nor stream to the stream again, the seats
-- with the turns they had. Those that were decided by an entry which stands in the stream are skipped.
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
-- ARGV[4...] claims: ticket (`-` for a holder), order, buyer, quantity, key (`-` for none) of each
-- RETURN DONE sequence: the partition's last decision now
-- RETURN NOT_MINE: the mark expired, or the epoch changed
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition loading

local stop = partition.refusal()
if stop then
  return stop
end
if not loading.mine() then
  return { 'NOT_MINE' }
end
local VOUCHER, seen = ARGV[2], {}
for at = 4, #ARGV, 5 do
  local ticket, order = ARGV[at], ARGV[at + 1]
  if not seen[order] and not partition.stands(order) then
    seen[order] = true
    local claim = table.concat({ VOUCHER, order, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4] }, ' ')
    if ticket == '-' then
      partition.decide('granted ' .. claim, order, 'g')
    else
      partition.decide('joined ' .. claim .. ' ' .. ticket, order, 'w')
    end
  end
end
if #partition.lines > 0 then
  partition.append()
  redis.call('HSET', KEYS[9], 'seq', partition.text(partition.seq))
end
return { 'DONE', partition.text(partition.seq) }
