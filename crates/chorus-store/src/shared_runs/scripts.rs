//! What the server does in one step each, so that replicas never see half of it.
//!
//! All names begin with the prefix (`KEYS[1]`):
//!
//! | name | what |
//! |---|---|
//! | `run:<id>` | a hash: the record, its content apart, and what lists ask for; gone with its time to live |
//! | `runs` | the ids of all runs, in their order, which is that of time |
//! | `of:decision:…`, `of:model:…`, `of:status:…`, `of:spec:…` | the same of one decision, model, status or configuration |
//!
//! A client may send any model name, so names of lists hold the SHA-1 of what they are of. An id begins with the time of its
//! making, so each list can leave out what is too old by the ids alone, and a list that nobody adds to is gone with the time
//! to live of its latest run.
//!
//! Redis 5 or later, Valkey; one server, for a script names keys that are not among its `KEYS`.

/// What all scripts begin with. Source of an id's time: RFC 9562 §5.7, the first 48 bits.
const SHARED: &str = r"
local P = KEYS[1]
local function run(id) return P .. 'run:' .. id end
local function list(kind, of) return P .. 'of:' .. kind .. ':' .. redis.sha1hex(of) end
local function lists(it)
  local all = {P .. 'runs', list('model', it[1]), list('status', it[3]), list('spec', it[4])}
  if it[2] and it[2] ~= '' then all[#all + 1] = list('decision', it[2]) end
  return all
end
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function drop(id)
  local it = redis.call('HMGET', run(id), 'model', 'decision', 'status', 'spec')
  if it[1] then
    for _, name in ipairs(lists(it)) do redis.call('ZREM', name, id) end
  end
  redis.call('ZREM', P .. 'runs', id)
  redis.call('DEL', run(id))
end
";

/// The time to live in milliseconds, how many runs at most, and for each record its id, start, model, decision or nothing,
/// status, configuration, itself, and its content or nothing. Gives the ids of those that were not there before.
const PUT: &str = r"
local ttl, most, at = tonumber(ARGV[1]), tonumber(ARGV[2]), now()
local old = string.format('(run_%012x', math.max(0, at - ttl))
local new = {}
for n = 3, #ARGV, 8 do
  local id = ARGV[n]
  if redis.call('EXISTS', run(id)) == 0 then
    new[#new + 1] = id
    local left = ttl - math.max(0, at - ARGV[n + 1])
    if left > 0 then
      redis.call('HSET', run(id), 'at', ARGV[n + 1], 'model', ARGV[n + 2], 'decision', ARGV[n + 3],
        'status', ARGV[n + 4], 'spec', ARGV[n + 5], 'record', ARGV[n + 6])
      if ARGV[n + 7] ~= '' then redis.call('HSET', run(id), 'content', ARGV[n + 7]) end
      redis.call('PEXPIRE', run(id), string.format('%.0f', left))
      for _, name in ipairs(lists({ARGV[n + 2], ARGV[n + 3], ARGV[n + 4], ARGV[n + 5]})) do
        redis.call('ZADD', name, 0, id)
        redis.call('ZREMRANGEBYLEX', name, '-', old)
        redis.call('PEXPIRE', name, ARGV[1])
      end
    end
  end
end
local over = math.min(redis.call('ZCARD', P .. 'runs') - most, 1000)
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', P .. 'runs', 0, over - 1)) do drop(id) end
end
return new
";

/// The id before which runs are wanted or nothing, how many are looked at and how many are wanted, and then of decision, model,
/// status and configuration each `=` and the word, or nothing, and the earliest start. Gives the last id that was looked at,
/// whether there may be more, and for each run its record and its content or nothing.
const PAGE: &str = r"
local wanted, kinds, name = {}, {'decision', 'model', 'spec', 'status'}, P .. 'runs'
for n = #kinds, 1, -1 do
  local word = ARGV[3 + n]
  if word ~= '' then
    wanted[kinds[n]] = string.sub(word, 2)
    name = list(kinds[n], wanted[kinds[n]])
  end
end
local from = ARGV[1] == '' and '+' or '(' .. ARGV[1]
local ids = redis.call('ZREVRANGEBYLEX', name, from, '-', 'LIMIT', 0, ARGV[2])
local last, told, since = '', {}, tonumber(ARGV[8])
for _, id in ipairs(ids) do
  last = id
  local it = redis.call('HMGET', run(id), 'decision', 'model', 'spec', 'status', 'at')
  if not it[2] then
    redis.call('ZREM', name, id)
  else
    local fits = tonumber(it[5]) >= since
    for n, kind in ipairs(kinds) do
      if wanted[kind] and wanted[kind] ~= it[n] then fits = false end
    end
    if fits then
      local whole = redis.call('HMGET', run(id), 'record', 'content')
      told[#told + 1] = {whole[1], whole[2] or ''}
      if #told >= tonumber(ARGV[3]) then return {last, 1, told} end
    end
  end
end
return {last, #ids >= tonumber(ARGV[2]) and 1 or 0, told}
";

/// A decision, the id before which its runs are, or nothing, how many of those are left out, and how many are looked at. Gives
/// the last id that was looked at, how many were, and how many lost their content.
const TRIM: &str = r"
local from = ARGV[2] == '' and '+' or '(' .. ARGV[2]
local ids = redis.call('ZREVRANGEBYLEX', list('decision', ARGV[1]), from, '-', 'LIMIT', ARGV[3], ARGV[4])
local gone = 0
for _, id in ipairs(ids) do gone = gone + redis.call('HDEL', run(id), 'content') end
return {ids[#ids] or '', #ids, gone}
";

/// All of them.
pub(super) struct Scripts {
    pub(super) put: redis::Script,
    pub(super) page: redis::Script,
    pub(super) trim: redis::Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        let script = |text: &str| redis::Script::new(&[SHARED, text].concat());
        Self { put: script(PUT), page: script(PAGE), trim: script(TRIM) }
    }
}
