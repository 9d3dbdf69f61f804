-- An order of this partition that was decided lately: what the index says of it, and its decision
-- as it stands in the stream. Changes nothing.
--
-- KEYS[1] meta: hash
-- KEYS[2] decided: hash
-- KEYS[3] stream: stream
-- ARGV[1] epoch: integer
-- ARGV[2] order: integer
-- RETURN FOUND g|w entry line: what it was told at first, and where and what was decided last
-- RETURN NONE: not decided lately
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition

local stop = partition.refusal()
if stop then
  return stop
end
local order = ARGV[2]
local told, entry = string.match(redis.call('HGET', KEYS[2], order) or '', '^(%a)(%d+%-%d+)$')
if not told then
  return { 'NONE' }
end
local found = redis.call('XRANGE', KEYS[3], entry, entry)[1]
for at = 1, found and #found[2] or 0, 2 do
  if found[2][at] == 'd' then
    for line in string.gmatch(found[2][at + 1], '[^\n]+') do
      if string.match(line, '^%a+ %d+ (%d+) ') == order then
        return { 'FOUND', told, entry, line }
      end
    end
  end
end
return { 'NONE' }
