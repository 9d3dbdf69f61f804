-- Acknowledges entries and records how far the ledger has applied the stream. Nothing for a
-- partition that has moved on to another epoch.
--
-- KEYS[1] meta: hash
-- KEYS[2] stream: stream
-- ARGV[1] epoch: integer
-- ARGV[2] group: word, the consumer group
-- ARGV[3] applied: integer, the last decision in the ledger
-- ARGV[4...] ids: entry ids
-- RETURN DONE: acknowledged, and recorded if the partition is whole enough to know its epoch
-- RETURN MOVED: it lives in another epoch

local epoch = redis.pcall('HGET', KEYS[1], 'epoch')
if type(epoch) == 'string' and epoch ~= ARGV[1] then
  return { 'MOVED' }
end
if #ARGV > 3 then
  redis.pcall('XACK', KEYS[2], ARGV[2], unpack(ARGV, 4))
end
if type(epoch) == 'string' and tonumber(ARGV[3]) > (tonumber(redis.call('HGET', KEYS[1], 'applied') or '') or 0) then
  redis.call('HSET', KEYS[1], 'applied', ARGV[3])
end
return { 'DONE' }
