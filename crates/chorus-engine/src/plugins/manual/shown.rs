//! Pages of the plugins that add to what a model is shown, and of the one that shortens it.
//!
//! It knows texts only. **Invariant:** each page says what a reader of its plugin's file would find.

use super::{Page, key};

pub(super) const MEMORY: Page = Page {
    kind: "memory",
    what: "Shows the model what the user has stated in earlier conversations, and remembers what they state now.",
    when: "\
Assistants that people come back to. Every memory belongs to one user, so somebody must vouch for the caller: an
[API key, a token or a trusted proxy](../identity.md). Without that nothing is remembered and nothing is shown.",
    example: "\
plugins:
  - type: memory
    configuration: { enabled: true, auto_store: true, retrieval_limit: 5 }",
    keys: &[
        key("retrieval_limit", "most memories in one request, 1 to 100 (in the store: `default_retrieval_limit`)", "`5`"),
        key("similarity_threshold", "least similarity to the user's last message, 0 to 1 (in the store: `default_similarity_threshold`)", "`0.70`"),
        key("auto_store", "whether statements are kept", "`false`"),
        key("`hybrid_search`, `hybrid_mode`", "words count beside meaning: `weighted` (0.7 meaning, 0.3 BM25) or `rrf`", "off"),
        key("reflection.enabled", "weigh by age, drop near repetitions, hold the budget", "`true`"),
        key("reflection.recency_decay_days", "age at which a memory counts half", "`30`"),
        key("reflection.dedup_threshold", "similarity from which two say the same", "`0.90`"),
        key("reflection.max_inject_tokens", "most tokens of memories in one request", "`2048`"),
        key("reflection.block_patterns", "regular expressions, in any case: what they find is neither kept nor shown", "none"),
    ],
    beside: "\
What a route leaves out is filled from `global.stores.memory`, which also has `disabled_models`, and
`quality_scoring`: `max_memories_per_user` (1000; the weakest make room), `initial_strength_days` (30) and `prune_threshold`
(0: nothing is forgotten by age).

`backend` says where memories lie: `embedded` (default), a file of this process; or `qdrant`, a server that replicas share.
`milvus` and `valkey` are known, not supported.

| key under `global.stores.memory.qdrant` | meaning | default |
|---|---|---|
| `host`, `port` | the server's REST API (6334 is its other one, which is not spoken) | `localhost`, 6333 |
| `api_key`, `use_tls` | the key by reference (`${NAME}`); encrypted | none, false |
| `connect_timeout` | seconds that one question may take, 1 to 300 | 5 |
| `collection` | made when the first memory comes, as wide as the encoder's vectors | `agentic_memory` |

Every question to the server names the user, and what comes back is looked at again: another user's memory is dropped whatever
the server says. Without `hybrid_search` the memories nearest to the question are asked for, eight times as many as may be shown
and at least 64; with it, all of the user's are read (10,000 at most). Two replicas that are told the same at once may both keep
it. Tested against Qdrant's own client in its local mode (`acceptance/qdrant.sh`); it has not met a real server.

`redis_cache` keeps what was found lately in a Redis (or Valkey) server, which replicas share, in front of Qdrant:

| key under `global.stores.memory.redis_cache` | meaning | default |
|---|---|---|
| `enabled` | whether there is one | false |
| `address`, `db` | the server | `localhost:6379`, 0 |
| `password`, `use_tls`, `tls_skip_verify` | by reference (`${NAME}`); the last two are an extension | none, false, false |
| `ttl_seconds` | how long what was found is found there | 300 |
| `key_prefix` | what names of keys begin with | `vllm-sr:memory:` |

The same question of the same user is answered from there until a memory of that user is kept or forgotten at any replica.
Names hold digests of users, and what comes back is looked at again as above. At most 16 questions of a user
(`max_found_questions`) and 256 KiB of each (`max_found_memory_bytes`) are kept. While it is away Qdrant is asked, and memories
are kept but not forgotten: that request is refused (`recall_store_failed`), for what was forgotten could be found again.

Thresholds are on the scale of configuration files ([encoders](../encoders.md)).",
    about: "\
`global.stores.memory.enabled: true` puts the plugin on every route that does not name it; `disabled_routes` are left out,
and a route's own `enabled: false` means no.

## What it does

**Before the call** the user's memories are compared with the user's last message. Those above the threshold are ordered by
similarity times `2^(-age / recency_decay_days)`, near repetitions are dropped, and what fits the budget stands at the end of
the system message: fenced, dated, and declared to be information and no instruction.

**After a whole answer has left** the lasting statements of the user's last message are kept: sentences in the first person
that say who somebody is, what they have, like, use or avoid, or that ask to be remembered (English, German, French, Spanish,
Chinese, some Japanese). Questions, tasks, quotations and code are none. It is a rule, not a model: it misses what is said in
other ways. Not kept are statements with

- what a `block_patterns` entry finds;
- secrets and personal data by which others could do harm (cards, accounts, identity numbers, e-mail and street addresses,
  telephone numbers, passwords, keys). Names, ages, places, employers may be kept;
- an attempt to give a model orders.

A statement that says what a memory says already makes that memory fresh instead of a second one.

`x-disable-router-memory: true` on a request: nothing is shown or kept. Users see and delete their memories at
[`/v1/memory`](../doors/files.md), operators those of everybody.

The record (`traces.plugins.memory`) has ids, similarities, scores, how many were held back and why, and the ids of what was
kept; no text.",
    cost: "\
One encoder pass for the question, which signals often have made already, and a scan of one user's vectors. Writing happens
after the answer: one pass a statement.",
    fails_when: "A store or an encoder that cannot be used: the request goes on without memories, with the warning `memory_unavailable`.",
    source: "contract §1.9, §1.10, §4.9; forgetting after MemoryBank (2023). Unlike there, no model rewrites queries or extracts facts.",
};

pub(super) const RAG: Page = Page {
    kind: "rag",
    what: "Looks the user's question up before a model sees it, and shows what was found.",
    when: "A route whose answers should rest on documents.",
    example: "\
plugins:
  - type: rag
    configuration:
      enabled: true
      backend: vectorstore
      similarity_threshold: 0.6
      backend_config: { vector_store_id: handbook }",
    keys: &[
        key("backend", "`vectorstore`, `qdrant`, `openai`, `external_api`, `mcp`; `milvus` and `hybrid` are known and refused at their line", "needed"),
        key("top_k", "most passages, 1 to 50", "`5`"),
        key("similarity_threshold", "least score of a passage that has one, 0 to 1", "`0.7`"),
        key("min_confidence_threshold", "score that the best passage must have for any to be shown", "none"),
        key("max_context_length", "most characters of passages", "16000"),
        key("injection_mode", "`tool_role` or `system_prompt`", "`tool_role`"),
        key("on_failure", "`skip`, `warn` (`x-vsr-response-warnings`) or `block`", "`skip`"),
        key("`cache_results`, `cache_ttl_seconds`", "what was found answers the same question of the same caller again", "off, 3600"),
    ],
    beside: "\
| `backend` | `backend_config` |
|---|---|
| `vectorstore` | `vector_store_id` (id or name), `file_ids[]`: a store of this process, or of the Qdrant server that keeps its passages ([files and vector stores](../doors/files.md)) |
| `qdrant` | `collection`, `content_field` (`content`): a collection that somebody else fills with vectors of the same encoder, on the server of `global.stores.vector_store.qdrant`, or with `reuse_cache_connection` on that of `global.stores.memory.qdrant` where there is one; everybody who may use the route is shown what is in it |
| `openai` | `vector_store_id`, `base_url` (`https://api.openai.com/v1`), `api_key`, `max_num_results`, `file_ids[]`, `filter`, `timeout_seconds` |
| `external_api` | `endpoint`, `request_format` (`pinecone`, `weaviate`, `elasticsearch`, `custom`), `request_template`, `api_key`, `auth_header`, `headers`, `timeout_seconds` |
| `mcp` | `endpoint` (or an address as `server_name`), `tool_name`, `tool_arguments`, `timeout_seconds`: streamable HTTP; programs are not started |

`request_template` and `tool_arguments` have the slots `${user_content}`, `${top_k}` and `${threshold}`. A template is read as
JSON before the question stands in its slot, so no question can change it. `custom` reads `results`, `documents` or `data` (a
list of objects with `content` or `text`, `score`, `source`), or one `content` or `text`. `timeout_seconds` is 10 by default.",
    about: "\
## What it does

Passages above the threshold, best first, stand in fences with the name of their source, declared to be information and no
instruction.

- `tool_role`: as the result of a call of `retrieve_context` behind the user's last message, so that checks of grounding see
  it. Where the model is none that speaks OpenAI's API, where it runs in this process, or where several models work together,
  they stand in the system message all the same: those refuse results of tools that were not offered, or never see tools.
- `system_prompt`: at the end of the system message.

A route looks up shared vector stores (made by an operator) and those of the caller, the caller's own first; never another
caller's. The record (`traces.plugins.rag`) has the backend, how many were found, sources and scores of what was shown, where,
and the tokens that it adds; no text.",
    cost: "\
One encoder pass and a scan of the store's vectors, which stay in memory between changes (four bytes a
number; `cargo bench -p chorus-recall` measures the scan, see [benchmarks](../benchmarks.md)). Other backends: one HTTP exchange, `mcp` three.",
    fails_when: "\
The word of the warning says why: `rag_no_vector`, `rag_no_store`, `rag_store_failed`, `rag_misconfigured`, `rag_timeout`,
`rag_unreachable`, `rag_malformed`. It stands in the trace also where `on_failure` is `skip`. Nothing near enough is no
failure.",
    source: "\
contract §1.10; Pinecone `/query`, Weaviate GraphQL, Elasticsearch `_search`, OpenAI vector store search, Model Context Protocol
2025-06-18. Tested against recorded shapes of these, not against their servers.",
};

pub(super) const CONTEXT_COMPRESSION: Page = Page {
    kind: "context_compression",
    what: "Shortens what a model is shown besides its task to what matters for it.",
    when: "Agents whose tools say more than anybody reads, and long conversations.",
    example: "\
plugins:
  - type: context_compression
    configuration:
      enabled: true
      targets:
        tool_outputs: { mode: recoverable, min_tokens: 2000, target_tokens: 1000 }
        history: { mode: extractive }
      recovery: { enabled: true }",
    keys: &[
        key("mode", "`auto`: from the trigger on; `always`", "`auto`"),
        key("budget.trigger_tokens", "tokens of a prompt from which it is shortened", "80% of the room"),
        key("budget.target_tokens", "tokens at which shortening stops", "60% of the room"),
        key("budget.reserve_output_tokens", "tokens kept free for the answer", "the request's own limit, else 4096; at most a quarter of the window"),
        key("`targets.{tool_outputs,history,rag,memory}.mode`", "`preserve`, `extractive`, `recoverable`", "`extractive` for `tool_outputs`, else `preserve`"),
        key("`targets.….min_tokens`, `target_tokens`", "from which length a part is shortened, and to which", "2000, 1000"),
        key("scoring.method", "`bm25`, `embedding`, `hybrid`", "`bm25`"),
        key("recovery.enabled", "whether originals wait in this process", "`false`"),
        key("`recovery.ttl_seconds`, `max_bytes_per_request`, `max_total_bytes`, `max_retrievals`", "how long, how much, how often", "900, 10 MiB, 256 MiB, 8"),
        key("`request_controls.enabled`, `header`, `allowed`, `max_target_tokens`", "`bypass` and `target=N` in a header", "off, `x-vsr-compression-control`, both, 16000"),
        key("failure_mode", "`fail_open`, `fail_closed`", "`fail_open`"),
    ],
    beside: "\
The room is the chosen model's context window less what is reserved; of several models the smallest window, and 32,768 where
none is declared.",
    about: "\
## What it does

Parts are shortened in this order until the target is reached (in `always`: all of them): results of tools, the oldest first;
what `rag` and `memory` put there; earlier turns. **Never touched:** system messages of client or operator, the user's last
message, the latest answer, tool calls, and ids.

A text falls into lines and sentences. A fenced block of code and a JSON value inside prose stay whole or go whole. Of a text
that is JSON as a whole only long strings are shortened: keys, numbers (with their digits), order and shape stay. Passages
are ranked against the user's last message, and against the call that a result answers; the first and the last line stay before
others. `[… 12 passages left out …]` stands where something is missing. The same request gives the same bytes.

`recoverable` keeps the original under a key and offers the tool `vsr_context_retrieve`. When the model calls it, the engine
answers and asks again, `max_retrievals` times at most; then the tool is taken back. Calls of the client's tools in the same
turn are left for the model's next turn. The client sees neither tool nor calls, gets one answer with the usage of all turns,
and a stream is held until then. It takes one model that is offered tools anyway, and no output contract or operating point
that holds the answer; else the part is `extractive`.

The record (`traces.plugins.context_compression`) has tokens before and after, of the request and by kind of part, passages
left out, originals kept and asked for; no text.",
    cost: "\
`bm25`: no model; `cargo bench -p chorus-recall` measures it ([benchmarks](../benchmarks.md)). `embedding` and `hybrid` encode the 64 best passages by words of each part
(`max_encoded_passages`).",
    fails_when: "\
A prompt that stays longer than its target is sent as far as it could be shortened, with the warning
`context_compression_incomplete`, or refused with `context_length_exceeded` (`fail_closed`). Without an encoder passages are
ranked by words (`scoring: bm25_only` in the trace). Candidates whose window is too small for the whole request are removed
before anything is shortened, as on every route, as long as one is left that takes it whole. Where it is too long for all of
them, those of the largest window (of several models that work together: all) stay, the request is shortened for them, and then
their windows are judged: what still does not fit is refused with `context_length_exceeded`. A client that asks for `bypass`
is refused then.",
    source: "contract §1.10; BM25 after Robertson and Zaragoza (2009).",
};
