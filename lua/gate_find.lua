-- An order of this partition that was decided lately: what the index says of it, and the last
-- decision about it as it stands in the stream. Changes nothing.
--
-- KEYS[1] meta: hash
-- KEYS[2] decided: hash
-- KEYS[3] stream: stream
-- ARGV[1] epoch: integer
-- ARGV[2] order: integer
-- RETURN FOUND g|w entry applied|ahead line: what it was told at first, where and what was decided
--   last, and whether the ledger is known to have that
-- RETURN GONE: it was decided lately, and the decision is not in the stream
-- RETURN NONE: not decided lately
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition

local stop = partition.refusal()
if stop then
  return stop
end
local order = ARGV[2]
local told, millis, counter = string.match(redis.call('HGET', KEYS[2], order) or '', '^(%a)(%d+)(.*)$')
if not told then
  return { 'NONE' }
end
local entry = millis .. (counter == '' and '-0' or counter)
local found = redis.call('XRANGE', KEYS[3], entry, entry)[1]
local fields, number, last = {}, 0, nil
for at = 1, found and #found[2] or 0, 2 do
  fields[found[2][at]] = found[2][at + 1]
end
for line in string.gmatch(fields.d or '', '[^\n]+') do
  if string.match(line, '^%a+ %d+ (%d+) ') == order then
    last = { line = line, seq = (tonumber(fields.s or '') or math.huge) + number }
  end
  number = number + 1
end
if not last then
  return { 'GONE' }
end
return { 'FOUND', told, entry, last.seq <= partition.applied and 'applied' or 'ahead', last.line }
