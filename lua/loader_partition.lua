-- What a partition is: open, or missing something essential. Changes nothing.
--
-- KEYS[1] meta: hash
-- KEYS[2] decided: hash
-- KEYS[3] stream: stream
-- ARGV[1] epoch: integer
-- ARGV[2] group: word, the consumer group
-- RETURN OPEN epoch sequence applied: it is there
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition

local stop = partition.refusal()
if stop then
  return stop
end
-- A stream that has had an entry with the largest possible id takes no more.
local LARGEST = '18446744073709551615-18446744073709551615'
local facts = redis.call('XINFO', 'STREAM', KEYS[3])
for at = 1, #facts, 2 do
  if facts[at] == 'last-generated-id' and facts[at + 1] == LARGEST then
    return { 'PARTITION' }
  end
end
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[3])) do
  for at = 1, #group, 2 do
    if group[at] == 'name' and group[at + 1] == ARGV[2] then
      return { 'OPEN', partition.epoch, partition.text(partition.seq), partition.text(partition.applied) }
    end
  end
end
return { 'PARTITION' }
