-- Records as lost what a process answered about a sale that has left the gate for good. What was
-- decided by an entry that stands is left as it is.
--
-- KEYS[1] meta: hash
-- KEYS[2] decided: hash
-- KEYS[3] stream: stream
-- ARGV[1] epoch: integer
-- ARGV[2] voucher: integer
-- ARGV[3...] claims: order, buyer, quantity, key (`-` for none) of each
-- RETURN TAKEN: each is on the stream, or known
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition

local stop = partition.refusal()
if stop then
  return stop
end
for at = 3, #ARGV, 4 do
  local order = ARGV[at]
  if not partition.stands(order) then
    partition.decide('lost ' .. table.concat({ ARGV[2], unpack(ARGV, at, at + 3) }, ' '), order, 'g')
  end
end
partition.append()
return { 'TAKEN' }
