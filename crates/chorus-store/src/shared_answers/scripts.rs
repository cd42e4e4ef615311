//! What the server does in one step each, so that replicas never see half of it.
//!
//! All names begin with the prefix (`KEYS[1]`):
//!
//! | name | what |
//! |---|---|
//! | `answer:<exact>` | a hash: the answer, its message and vector; gone with its time to live |
//! | `rows:<partition>` | keys of the answers of one partition, by the turn in which they came |
//! | `queue` | names of all answers, by who makes room first |
//! | `ends` | the same, by when their time is over |
//! | `epoch`, `turns`, `tally` | the epoch, the last turn, and what is counted |
//!
//! A name is `<exact>:<partition>:<bytes>`, from which everything that belongs to an answer can be found when the answer
//! itself is gone. Epochs and turns begin with the server's clock in microseconds, so that a server that lost them (a restart,
//! an eviction) does not come back to numbers that answers or replicas still hold.
//!
//! Redis 5 or later, Valkey; one server, for a script names keys that are not among its `KEYS`.

/// What all scripts begin with.
const SHARED: &str = r"
local P = KEYS[1]
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end
local function now() return math.floor(clock() / 1000) end
local function begun(name)
  local it = redis.call('GET', P .. name)
  if it then return it end
  it = string.format('%.0f', clock())
  redis.call('SET', P .. name, it)
  return it
end
local function turn()
  begun('turns')
  return redis.call('INCR', P .. 'turns')
end
local function take_out(name)
  redis.call('ZREM', P .. 'ends', name)
  if redis.call('ZREM', P .. 'queue', name) == 0 then return 0 end
  local exact, partition, bytes = string.match(name, '^([^:]*):([^:]*):(%d+)$')
  redis.call('HINCRBY', P .. 'tally', 'bytes', -tonumber(bytes))
  local kept = redis.call('HGET', P .. 'answer:' .. exact, 'name')
  if not kept or kept == name then
    redis.call('DEL', P .. 'answer:' .. exact)
    redis.call('ZREM', P .. 'rows:' .. partition, exact)
  end
  return 1
end
local function expire()
  local over = redis.call('ZRANGEBYSCORE', P .. 'ends', '-inf', now(), 'LIMIT', 0, 1000)
  for _, name in ipairs(over) do
    redis.call('HINCRBY', P .. 'tally', 'expired', take_out(name))
  end
end
";

/// Gives the epoch.
const EPOCH: &str = "return begun('epoch')";

/// A key, the oldest age in milliseconds or nothing, and 1 where being given again keeps an answer. Gives the epoch, and the
/// answer's name, labels, age and body.
const LOOK: &str = r"
local epoch, answer = begun('epoch'), P .. 'answer:' .. ARGV[1]
local it = redis.call('HMGET', answer, 'epoch', 'id', 'labels', 'at', 'name', 'body')
if it[1] ~= epoch then return {epoch} end
local age = math.max(0, now() - it[4])
if ARGV[2] ~= '' and age > tonumber(ARGV[2]) then return {epoch} end
redis.call('HINCRBY', answer, 'hits', 1)
if ARGV[3] == '1' then redis.call('ZADD', P .. 'queue', 'XX', turn(), it[5]) end
return {epoch, it[2], it[3], age, it[6]}
";

/// A partition, the turn after which rows are wanted, and how many at most. Gives the epoch, the number of all rows, the turn of
/// the last one looked at, whether there may be more, and for each row its key, its answer's name, message and vector.
const ROWS: &str = r"
local epoch, rows = begun('epoch'), P .. 'rows:' .. ARGV[1]
local found = redis.call('ZRANGEBYSCORE', rows, '(' .. ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3])
local last, told = ARGV[2], {}
for at = 1, #found, 2 do
  last = found[at + 1]
  local it = redis.call('HMGET', P .. 'answer:' .. found[at], 'epoch', 'id', 'text', 'vector')
  if it[1] == epoch and it[4] then
    told[#told + 1] = {found[at], it[2], it[3], it[4]}
  else
    redis.call('ZREM', rows, found[at])
  end
end
local more = #found / 2 >= tonumber(ARGV[3])
return {epoch, redis.call('ZCARD', rows), string.format('%.0f', last), more and 1 or 0, told}
";

/// The epoch of the lookup, key, partition, name, labels, body, message, vector, time to live in milliseconds, bytes, and the
/// bounds in answers and bytes. Gives whether it is kept.
const PUT: &str = r"
local epoch = begun('epoch')
if epoch ~= ARGV[1] then return 'epoch' end
local size, entries, bytes = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
if entries < 1 or size > bytes then return 'size' end
expire()
local answer, rows = P .. 'answer:' .. ARGV[2], P .. 'rows:' .. ARGV[3]
local forerunner = redis.call('HGET', answer, 'name')
if forerunner then take_out(forerunner) end
while redis.call('ZCARD', P .. 'queue') >= entries
  or tonumber(redis.call('HGET', P .. 'tally', 'bytes') or 0) + size > bytes do
  local first = redis.call('ZRANGE', P .. 'queue', 0, 0)[1]
  if not first then break end
  redis.call('HINCRBY', P .. 'tally', 'evicted', take_out(first))
end
local at, ttl, order = now(), tonumber(ARGV[9]), turn()
local name = ARGV[2] .. ':' .. ARGV[3] .. ':' .. ARGV[10]
redis.call('DEL', answer)
redis.call('HSET', answer, 'epoch', epoch, 'name', name, 'id', ARGV[4], 'labels', ARGV[5], 'body', ARGV[6],
  'at', string.format('%.0f', at), 'ttl', ARGV[9], 'hits', 0)
redis.call('PEXPIRE', answer, ARGV[9])
redis.call('ZADD', P .. 'queue', order, name)
redis.call('ZADD', P .. 'ends', at + ttl, name)
if ARGV[3] ~= '' then
  redis.call('HSET', answer, 'text', ARGV[7], 'vector', ARGV[8])
  redis.call('ZADD', rows, order, ARGV[2])
  redis.call('PEXPIRE', rows, string.format('%.0f', math.max(ttl, redis.call('PTTL', rows))))
end
redis.call('HINCRBY', P .. 'tally', 'bytes', size)
redis.call('HINCRBY', P .. 'tally', 'stored', 1)
return 'stored'
";

/// From which answer on, latest first, and how many at most. Gives how many names were looked at, and for each answer its name
/// in the queue, its own name, labels, age, what is left of its time, and how often it was given again.
const PAGE: &str = r"
local epoch, at, told = begun('epoch'), now(), {}
local names = redis.call('ZREVRANGE', P .. 'queue', ARGV[1], ARGV[1] + ARGV[2] - 1)
for _, name in ipairs(names) do
  local exact = string.match(name, '^([^:]*):')
  local it = redis.call('HMGET', P .. 'answer:' .. exact, 'epoch', 'name', 'id', 'labels', 'at', 'ttl', 'hits')
  if it[1] == epoch and it[2] == name then
    local age = math.max(0, at - it[5])
    told[#told + 1] = {name, it[3], it[4], age, math.max(0, it[6] - age), it[7]}
  end
end
return {#names, told}
";

/// Names in the queue. Gives how many answers were taken out.
const TAKE_OUT: &str = r"
local gone = 0
for _, name in ipairs(ARGV) do gone = gone + take_out(name) end
redis.call('HINCRBY', P .. 'tally', 'invalidated', gone)
return gone
";

/// Begins another epoch. Gives how many answers there were, and the turn up to which they came.
const FLUSH: &str = r"
local epoch = math.max(begun('epoch') + 1, clock())
redis.call('SET', P .. 'epoch', string.format('%.0f', epoch))
return {redis.call('ZCARD', P .. 'queue'), string.format('%.0f', turn())}
";

/// The turn up to which answers go, and how many at most. Gives how many went.
const SWEEP: &str = r"
local names = redis.call('ZRANGEBYSCORE', P .. 'queue', '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, name in ipairs(names) do redis.call('HINCRBY', P .. 'tally', 'invalidated', take_out(name)) end
return #names
";

/// Gives the epoch, the number of answers, and what is counted.
const TALLY: &str = r"
expire()
local of = redis.call('HMGET', P .. 'tally', 'bytes', 'stored', 'evicted', 'expired', 'invalidated')
return {begun('epoch'), redis.call('ZCARD', P .. 'queue'), of[1] or 0, of[2] or 0, of[3] or 0, of[4] or 0, of[5] or 0}
";

/// All of them.
pub(super) struct Scripts {
    pub(super) epoch: redis::Script,
    pub(super) look: redis::Script,
    pub(super) rows: redis::Script,
    pub(super) put: redis::Script,
    pub(super) page: redis::Script,
    pub(super) take_out: redis::Script,
    pub(super) flush: redis::Script,
    pub(super) sweep: redis::Script,
    pub(super) tally: redis::Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        let script = |text: &str| redis::Script::new(&[SHARED, text].concat());
        Self {
            epoch: script(EPOCH),
            look: script(LOOK),
            rows: script(ROWS),
            put: script(PUT),
            page: script(PAGE),
            take_out: script(TAKE_OUT),
            flush: script(FLUSH),
            sweep: script(SWEEP),
            tally: script(TALLY),
        }
    }
}
