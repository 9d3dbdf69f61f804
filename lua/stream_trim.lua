-- Removes acknowledged entries that are old enough and in the ledger, with their orders from the
-- index. An order stays in the index if something was decided about it later.
--
-- KEYS[1] meta: hash
-- KEYS[2] decided: hash
-- KEYS[3] stream: stream
-- ARGV[1] epoch: integer
-- ARGV[2] group: word, the consumer group
-- ARGV[3] up_to: entry id, the last one in the ledger
-- ARGV[4] keep_ms: integer, how long entries are kept
-- ARGV[5] max: integer, most entries to look at
-- RETURN REMOVED count more|idle: how many were removed, and whether there may be more
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition

local stop = partition.refusal()
if stop then
  return stop
end

local function split(id)
  local millis, counter = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(millis), tonumber(counter)
end

local function earlier(a, b)
  local a_ms, a_counter = split(a)
  local b_ms, b_counter = split(b)
  return a_ms < b_ms or (a_ms == b_ms and a_counter < b_counter)
end

local delivered
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[3])) do
  local facts = {}
  for at = 1, #group, 2 do
    facts[group[at]] = group[at + 1]
  end
  if facts.name == ARGV[2] then
    delivered = facts['last-delivered-id']
  end
end
if not delivered then
  return { 'REMOVED', '0', 'idle' }
end
local old = partition.text(math.max(partition.now() - tonumber(ARGV[4]), 0)) .. '-18446744073709551615'
local upto = ARGV[3]
for _, id in ipairs({ delivered, old }) do
  upto = earlier(id, upto) and id or upto
end

local entries = redis.call('XRANGE', KEYS[3], '-', upto, 'COUNT', ARGV[5])
if #entries == 0 then
  return { 'REMOVED', '0', 'idle' }
end
local pending = {}
for _, entry in ipairs(redis.call('XPENDING', KEYS[3], ARGV[2], entries[1][1], entries[#entries][1], ARGV[5])) do
  pending[entry[1]] = true
end

local ids, orders, entry_of = {}, {}, {}
for _, entry in ipairs(entries) do
  if not pending[entry[1]] then
    ids[#ids + 1] = entry[1]
    for at = 1, #entry[2], 2 do
      for line in string.gmatch(entry[2][at] == 'd' and entry[2][at + 1] or '', '[^\n]+') do
        local kind, second, third = string.match(line, '^(%a+) %d+ (%d+) (%d+)')
        local order = kind == 'withdrawn' and 'a' .. third or second
        if order then
          orders[#orders + 1], entry_of[#orders + 1] = order, entry[1]
        end
      end
    end
  end
end
if #ids == 0 then
  return { 'REMOVED', '0', 'idle' }
end
redis.call('XDEL', KEYS[3], unpack(ids))
for from = 1, #orders, 1000 do
  local till, gone = math.min(from + 999, #orders), {}
  for at, mark in ipairs(redis.call('HMGET', KEYS[2], unpack(orders, from, till))) do
    if mark and string.sub(mark, 2) == entry_of[from + at - 1] then
      gone[#gone + 1] = orders[from + at - 1]
    end
  end
  if #gone > 0 then
    redis.call('HDEL', KEYS[2], unpack(gone))
  end
end
redis.call('HSET', KEYS[1], 'decided', redis.call('HLEN', KEYS[2]))
return { 'REMOVED', tostring(#ids), #entries == tonumber(ARGV[5]) and 'more' or 'idle' }
