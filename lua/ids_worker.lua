-- Leases a worker number for Snowflake ids, or extends the lease. A number's ids may only carry
-- milliseconds up to its recorded limit, and its next holder starts after that limit: so two
-- holders never meet, whatever their clocks or pauses.
--
-- When the registry is new, or Redis was restarted or replaced, records may have been lost. Until
-- one lease after that was noticed a number goes only to whoever holds it by a limit that he
-- remembers and that has not passed; by then all limits that were lost have. The argument is in
-- `adapters/redis/src/order_ids/snowflake.rs`.
--
-- KEYS[1] workers: hash
-- ARGV[1] token: word, the caller's, random
-- ARGV[2] number: integer, the caller's or one to try first
-- ARGV[3] held_ms: integer, the limit up to which the caller holds the number, 0 if he does not
-- ARGV[4] issued_ms: integer, last millisecond the caller may have used
-- ARGV[5] lease_ms: integer
-- ARGV[6] numbers: integer, how many there are
-- RETURN LEASED number start limit now: ids may carry milliseconds after start and up to limit
-- RETURN WAIT ms: records may have been lost; numbers are free for others after that
-- RETURN FULL: every number is leased

local token, held, issued = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local lease, numbers = tonumber(ARGV[5]), tonumber(ARGV[6])
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

-- Whoever is far ahead saw a clock of Redis that has gone back since, and has to go on from there.
local from = issued > now + lease / 2 and issued or now

local function leased(number, start)
  local limit = string.format('%.0f', from + lease)
  redis.call('HSET', KEYS[1], number, token .. ' ' .. limit)
  return { 'LEASED', number, string.format('%.0f', start), limit, string.format('%.0f', now) }
end

local holder, limit = record_of(ARGV[2])
if held >= now and (holder == token or not holder or limit < now) then
  return leased(ARGV[2], 0)
elseif now <= floor then
  return { 'WAIT', string.format('%.0f', floor - now + 1) }
elseif holder == token then
  return leased(ARGV[2], 0)
end
for step = 0, numbers - 1 do
  local number = tostring((tonumber(ARGV[2]) + step) % numbers)
  holder, limit = record_of(number)
  -- A holder that is gone for two leases does not come back to the number.
  if not holder or now > limit + 2 * lease then
    return leased(number, math.max(limit, issued))
  end
end
return { 'FULL' }
