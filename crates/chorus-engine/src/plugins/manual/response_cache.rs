//! The page of `response_cache`.
//!
//! It knows texts only. **Invariant:** each page says what a reader of its plugin's file would find.

use super::{Page, key};

pub(super) const RESPONSE_CACHE: Page = Page {
    kind: "response_cache",
    what: "Gives a request the answer to an earlier one: the very same, or one of the same meaning.",
    when: "Many users ask the same, and an answer stays true for a while. Not where an answer depends on what only this user knows.",
    example: "\
plugins:
  - type: response_cache
    configuration: { enabled: true, mode: exact_then_semantic, ttl_seconds: 600 }",
    keys: &[
        key("mode", "`semantic`, `exact`, `exact_then_semantic`", "`semantic`"),
        key("scope", "whose answers: below", "user"),
        key("`semantic.similarity_threshold` (or `similarity_threshold`)", "least similarity, on the scale of configuration files ([encoders](../encoders.md))", "the store's; else the built-in one, as `chorus lab cache-eval` chose it"),
        key("ttl_seconds", "how long an answer is good", "the store's"),
        key("request_controls", "`enabled`, `header`, `allowed`, `max_ttl_seconds`; below. The older `allow_request_controls` and `control_header` mean the first two", "off, `x-vsr-cache-control`, all, none"),
        key("personalized.mode", "`disabled`, `exact`", "`disabled`"),
        key("revision", "`cache_epoch`, `model_revision`, `prompt_revision`, `policy_revision`: part of the key", "empty"),
    ],
    beside: "\
| key under `global.stores.response_cache` | meaning | default |
|---|---|---|
| `enabled` | whether there is a cache at all | true |
| `backend_type` | `memory`, `redis`, `valkey`, `qdrant`; all others are errors at their line | `memory` |
| `max_entries`, `ttl_seconds` | bounds | 1,000; 3,600 |
| `eviction_policy` | `fifo`, `lru` | `fifo` |
| `similarity_threshold` | where a route names none | none |

With `memory` the cache is the process's own, and gone when it stops. Besides, 256 MiB in all (`cache_bytes`) and 1 MiB an
answer (`cache_entry_bytes`).

| key under `…response_cache.redis`, or `.valkey` | meaning | default |
|---|---|---|
| `connection.host`, `.port`, `.database` | the server | `localhost`, 6379, 0 |
| `connection.password` | by reference: `${NAME}` | none |
| `connection.tls.enabled` | encrypted, the certificate checked against public roots; `cert_file`, `key_file`, `ca_file` are known, not supported | false |
| `connection.timeout` | seconds that one question may take, its connection included, 1 to 60: a request waits for it | 1 |
| `index.prefix` | what names of keys begin with | `vllm-sr:cache:` |

`search`, `logging`, `development` and the rest of `index` configure a search module that is not needed.

| key under `…response_cache.qdrant` | meaning | default |
|---|---|---|
| `host`, `port`, `use_tls` | the server, asked over HTTP | `localhost`, 6333, false |
| `api_key` | by reference: `${NAME}` | none |
| `connect_timeout` | seconds that one question may take, 1 to 300: a request waits for it | 5 |
| `collection_name` | the collection of messages; answers are in one beside it, whose name ends in `_answers` | `semantic_cache` |

Qdrant looks for what is alike by itself. It has no step of several questions, no clock and no time to live: ages are told by
the clocks of replicas, what is over is taken out when something is stored, `max_entries` may be passed by as many answers as
are stored at once, `cache_bytes` does not count, and each replica counts what it stored and took out for itself.",
    about: r#"## Which requests are the same

An answer is found under a key over everything that it depends on: recipe, decision, algorithm, chosen model, the digests
of the file, the bundle, its binding and its lock, the encoder, the revision words, whose request it is, and every field of the
request: the whole conversation, tools, `tool_choice`, `response_format`, and every parameter, also one that this version
does not know. Left out are `stream`, `stream_options`, `store`, `service_tier` and the `prompt_cache_*` fields, so that a
buffered answer serves a stream and the reverse. `user`, `safety_identifier` and `metadata` keep answers apart: a client
that sends a request id in `metadata` finds nothing.

- **`exact`**: the very same request. Used where an answer would repeat itself anyway (`temperature: 0`, or a `seed`), or
  where the client asks for it (`max-age` or `ttl`, with `request_controls`). An omitted temperature is not 0.
- **`semantic`** (default): everything is the same but the wording of the last message, which is a user's. The operator
  says by it that a similar answer is good enough, so a sampled one is too. The very same request is found first, without an
  encoder pass.
- **`exact_then_semantic`**: the same; the word of the contract for it.

By meaning, the vectors of the two messages must be alike by `similarity_threshold`, the more the more words they share, and
**no guard** may tell them apart.

Two messages that share most of their words are alike for that reason alone: "how do I see the rewards of my card", "how do
I redeem the rewards of my card". So the threshold is that of messages that share no word; it grows with the part of all
their words that both have, by 0.25 where they share all, and to no more than 0.94. A threshold above 0.94 stays as it is.

An encoder puts "turn on" beside "turn off", and 10 mg beside 100 mg, nearer than many a paraphrase; no threshold helps.
The guards look at words: another language; one says *not*; opposite words, or a word of time or size that only one has;
another number, unit or day; another name, quotation or piece of code; *when* against *where*; *to* and *from* the other way
round; another word in the same place. Each errs on the side of a call. A message of more than 2,048 bytes
(`cache_text_bytes`) is looked up exactly only.

## Whose answers

| `scope` | who shares answers |
|---|---|
| `user` (default) | the same user, as a trusted proxy or an API key names them |
| `team` | users of the same groups |
| `global` | everybody |

`tenant` is known, not supported: answers are kept apart by user instead. Requests of nobody known share their own answers,
and are given no one else's; where the file names a scope, they have no cache. A route with `memory` or `rag` has none
either, unless `personalized: { mode: exact }`: then the very request that models would get is looked up, of a known user. An
operating point with `no_retention` has no cache.

## What is stored

Whole answers: every choice ended with `stop` or a tool call, nothing on the way was given up (a degraded panel, a spent
budget, a warning of another plugin), and the client got all of it. A stream is put together without loss: reasoning, tool
calls, annotations, log-probabilities, refusals. A hit has a new id and time; its usage is the first answer's, and the record
says that nothing was spent.

## Several replicas

```yaml
global:
  stores:
    response_cache:
      backend_type: redis
      redis:
        connection: { host: redis.internal, password: "${REDIS_PASSWORD}", tls: { enabled: true } }
```

Replicas that serve the same file share answers, epochs, bounds, invalidation and flush in one Redis (5 or later, no module) or
Valkey server; the time of an answer is the server's. Each act is one script, so that no replica sees half of it. The very same
request is one question to the server. By meaning, texts and vectors of a partition are read once and followed from then on;
they are compared in the replica, and what is found is asked for in the server once more, so that nothing is given that was
taken out. What lies in the replica for this stays within `cache_bytes`. Counts of hits and the journal of acts are each
replica's own.

Messages and answers lie in that server in the clear: whoever reads it reads them, whoever writes to it can put words into an
answer. Give it a password, TLS where it is not on this machine, and no other users. Keys hold whose answer it is, so one tenant's
are never looked up for another.

A server that cannot be asked in time is a miss: the request goes on, nothing is stored, the trace says `the store did not
answer`, `unanswered` of the stats counts it, and the server is left alone for a second (`cache_rest`). The management plane
answers `store_unavailable`. A server that lost its data (a restart, an eviction) begins an epoch that never was.

## What a client can say

`Cache-Control: no-cache` passes an answer by (and takes the new one in its place), `no-store` keeps this one out,
`max-age=N` wants none older. The route's own header says the same, and `bypass` for both; with `request_controls.enabled`
also `ttl=N`, up to `max_ttl_seconds`, and an `exact` route then caches what the client asks for.

| header of the answer | says |
|---|---|
| `x-vsr-cache-hit: true`, `x-vsr-response-path: cache` | it is an earlier answer |
| `x-vsr-cache-kind` | `exact` or `semantic` |
| `x-vsr-cache-entry` | which one: what `DELETE /api/v1/response-cache/entries/{id}` takes |
| `x-vsr-cache-similarity` | how alike; also of the nearest answer that a guard refused |
| `age` | seconds |

The management plane lists, counts and takes out: [HTTP](../http.md#the-response-cache)."#,
    cost: "\
A digest over the request; by meaning an encoder pass, which is shared with signals that read the same text, and a scan of
the answers to the same question in other words: `cargo bench -p chorus-cache --bench lookup`. How many paraphrases it
finds, and how many other questions it takes for one: `chorus lab cache-eval`. Both in [benchmarks](../benchmarks.md).",
    fails_when: "\
It never fails a request. Without an encoder, only the very same request is found. The guards know English words best;
German, French and Spanish negations and a few opposites; in other languages they see numbers, names and the language.",
    source: "contract §1.9, §1.10; cases F01, F02, F04–F09.",
};
