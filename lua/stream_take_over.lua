-- Makes what other consumers were given and did not acknowledge this consumer's, and forgets
-- consumers that have nothing left. Of theirs, entries that are no longer in the stream leave the
-- pending list.
--
-- KEYS[1] stream: stream
-- ARGV[1] group: word, the consumer group
-- ARGV[2] consumer: word, who takes over
-- ARGV[3] max: integer, most entries to move in one call
-- RETURN PENDING count more|done: how many are pending now, and whether there is more to move

local STREAM, GROUP, ME, left = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local consumers = redis.pcall('XINFO', 'CONSUMERS', STREAM, GROUP)
if consumers.err then
  return { 'PENDING', '0', 'done' }
end

local more = false
for _, facts in ipairs(consumers) do
  local consumer = {}
  for at = 1, #facts, 2 do
    consumer[facts[at]] = facts[at + 1]
  end
  if consumer.name ~= ME then
    local pending = consumer.pending
    if pending > 0 and left > 0 then
      local ids = {}
      for at, entry in ipairs(redis.call('XPENDING', STREAM, GROUP, '-', '+', left, consumer.name)) do
        ids[at] = entry[1]
      end
      left, pending = left - #ids, pending - #ids
      ids[#ids + 1] = 'JUSTID'
      redis.call('XCLAIM', STREAM, GROUP, ME, 0, unpack(ids))
    end
    -- Forgetting a consumer drops what it has pending, so only when that is nothing.
    if pending == 0 then
      redis.call('XGROUP', 'DELCONSUMER', STREAM, GROUP, consumer.name)
    else
      more = true
    end
  end
end
return { 'PENDING', tostring(redis.call('XPENDING', STREAM, GROUP)[1]), more and 'more' or 'done' }
