-- The partition a script works on: its meta, its index of decided orders, its stream.
--
-- KEYS[1] meta, KEYS[2] decided, KEYS[3] stream; ARGV[1] the epoch that the caller believes in.
-- Numbers here are counters below 2^53; ids stay strings, because Lua rounds 64-bit integers.
local partition = { lines = {}, marks = {} } -- luacheck: ignore 241

-- A read that answers nil for a key of the wrong type, where `redis.call` would stop the script.
function partition.read(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    return nil
  end
  return reply
end

-- Runs a command with many arguments, a few thousand at a time, as many as Lua's stack takes, and
-- adds up what it answers. `step` arguments belong together.
function partition.many(command, key, arguments, step)
  local sum, most = 0, 2000 * step
  for from = 1, #arguments, most do
    sum = sum + redis.call(command, key, unpack(arguments, from, math.min(from + most - 1, #arguments)))
  end
  return sum
end

-- A counter as text: `tostring` turns to exponents at 1e14.
function partition.text(number)
  return string.format('%.0f', number)
end

-- Milliseconds of Redis's clock, which decides windows.
function partition.now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Reads the partition. Returns what to answer if it cannot be worked on: it is incomplete, or lives
-- in another epoch than the caller believes.
function partition.refusal()
  local meta = partition.read('HMGET', KEYS[1], 'epoch', 'seq', 'applied', 'decided') or {}
  local seq, applied = tonumber(meta[2] or ''), tonumber(meta[3] or '')
  local decided = tonumber(meta[4] or '')
  if not (string.match(meta[1] or '', '^%d+$') and seq and applied and decided) then
    return { 'PARTITION' }
  end
  if meta[1] ~= ARGV[1] then
    return { 'STALE', meta[1] }
  end
  if redis.call('TYPE', KEYS[3]).ok ~= 'stream' or partition.read('HLEN', KEYS[2]) ~= decided then
    return { 'PARTITION' }
  end
  partition.epoch, partition.seq, partition.applied, partition.decided = meta[1], seq, applied, decided
  return nil
end

-- The turn of a buyer who joins by the next decision, as `Ticket::drawn_at`: exact, being below 2^53.
function partition.turn()
  return tonumber(partition.epoch) * 2 ^ 36 + partition.seq + #partition.lines + 1
end

-- An entry's place as the index keeps it: without the counter that most have.
function partition.brief(id)
  return (string.gsub(id, '%-0$', ''))
end

-- Whether an order was decided about by an entry that stands in the stream. What the index knows of
-- an entry that is gone, without being applied, nobody will ever apply.
function partition.stands(order)
  local mark = redis.call('HGET', KEYS[2], order)
  if not mark then
    return false
  end
  local id = string.sub(mark, 2)
  id = string.find(id, '-', 1, true) and id or id .. '-0'
  return #redis.call('XRANGE', KEYS[3], id, id) > 0
end

-- Notes a decision: its line of the entry, and what the index says of it (`g`, `w` or `a`).
function partition.decide(line, order, told)
  local lines, marks = partition.lines, partition.marks
  lines[#lines + 1] = line
  marks[#marks + 1] = order
  marks[#marks + 1] = told
end

-- Writes what was decided: one entry, so that it is there as a whole or not at all; of more than a
-- reader has room for, several, which stand together because Redis lets a script that has written
-- go on. XADD is the first write of every script that decides, and the only one that can fail.
function partition.append()
  local lines, marks, MOST = partition.lines, partition.marks, 128
  if #lines == 0 then
    return
  end
  for from = 1, #lines, MOST do
    local upto = math.min(from + MOST - 1, #lines)
    local id = redis.call('XADD', KEYS[3], '*', 'v', '1', 'e', partition.epoch,
      's', partition.text(partition.seq + from), 'd', table.concat(lines, '\n', from, upto))
    local place = partition.brief(id)
    for at = from, upto do
      marks[2 * at] = marks[2 * at] .. place
    end
  end
  partition.decided = partition.decided + partition.many('HSET', KEYS[2], marks, 2)
  partition.seq = partition.seq + #lines
  redis.call('HSET', KEYS[1], 'seq', partition.text(partition.seq), 'decided', partition.decided)
  partition.lines, partition.marks = {}, {}
end
