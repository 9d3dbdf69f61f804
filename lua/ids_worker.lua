-- Leases a worker number for Snowflake ids, or extends the lease. A number's ids may only carry
-- milliseconds up to its recorded limit, and its next holder starts after that limit: so two
-- holders never meet, whatever their clocks or pauses. When the registry is new, or Redis was
-- restarted or replaced, limits may have been lost: then new holders start one lease later than
-- now, by when the limits of all that is lost have passed.
--
-- KEYS[1] workers: hash
-- ARGV[1] token: word, the caller's, random
-- ARGV[2] number: integer, the caller's or one to try first
-- ARGV[3] issued_ms: integer, last millisecond the caller may have used
-- ARGV[4] lease_ms: integer
-- ARGV[5] numbers: integer, how many there are
-- RETURN LEASED number start limit now: ids may carry milliseconds after start and up to limit
-- RETURN FULL: every number is leased

local token, issued, lease, numbers = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then
  redis.call('DEL', KEYS[1])
end
local life = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') ..
  string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
local known = redis.call('HMGET', KEYS[1], 'life', 'floor')
local floor = tonumber(known[2] or '') or 0
if known[1] ~= life then
  floor = math.max(floor, now + lease)
  redis.call('HSET', KEYS[1], 'life', life, 'floor', string.format('%.0f', floor))
end

local function record_of(number)
  local holder, limit = string.match(redis.call('HGET', KEYS[1], number) or '', '^(%S+) (%d+)$')
  return holder, tonumber(limit or '') or 0
end

local function leased(number, start, limit)
  redis.call('HSET', KEYS[1], number, token .. ' ' .. string.format('%.0f', limit))
  return { 'LEASED', number, string.format('%.0f', start), string.format('%.0f', limit), string.format('%.0f', now) }
end

if record_of(ARGV[2]) == token then
  return leased(ARGV[2], 0, math.max(now, issued) + lease)
end
for step = 0, numbers - 1 do
  local number = tostring((tonumber(ARGV[2]) + step) % numbers)
  local holder, limit = record_of(number)
  -- A holder that is gone for two leases does not come back to the number.
  if not holder or now > limit + 2 * lease then
    return leased(number, math.max(floor, limit, issued), math.max(now, issued) + lease)
  end
end
return { 'FULL' }
