//! Pages of the plugins that look at the answer.
//!
//! It knows texts only. **Invariant:** each page says what a reader of its plugin's file would find.

use super::{Page, key};

pub(super) const HALLUCINATION: Page = Page {
    kind: "hallucination",
    what: "\
Holds an answer against the material of the conversation, statement by statement, and remarks on what the material does not
support. No answer is refused.",
    when: "\
A route whose answers rest on tool results or on retrieved text, and whose readers should know where they do not. Where
nothing unsupported may leave at all, use the operating point `halu` instead ([operating points](../operating-points.md)): it
sends the answer back once and then abstains.",
    example: "\
plugins:
  - type: hallucination
    configuration: { enabled: true, hallucination_action: body, include_hallucination_details: true }",
    keys: &[
        key("enabled", "`false` leaves the plugin out", "`true`"),
        key("use_nli", "besides words, sentences are compared by meaning with the served encoder", "`false`"),
        key("hallucination_action", "where the remark on unsupported statements stands: `header`, `body` or `none`", "header"),
        key("unverified_factual_action", "the same for facts without any material", "header"),
        key("include_hallucination_details", "with `body`: up to 5 unsupported statements are quoted", "`false`"),
    ],
    beside: "",
    about: "\
## What it does

**Material** is what tools returned (messages of the role `tool`), and the passages that `rag` put into the request,
wherever it shows them. What the user states counts as support beside it; an operator's system prompt, a question and
what a model wrote earlier do not.

**Statements** are the sentences and lines of every choice, but for questions, fenced code, and lines with fewer than two
words of content. A statement is supported if one sentence of the material holds 70% of its content words and does not
disagree in a number or a negation: the same check as that of the operating point `halu`. It sees no synonyms and no other
language, so it calls more unsupported than a reader would. With `use_nli`, statements that words do not support are also
compared by the encoder's vectors; numbers and negations still count. It is no model of entailment, and does not claim to be.

**Without material**, the [`fact_check`](../signals/fact_check.md) classifier says whether the client asks for facts. If so,
the answer is `unverified_factual`.

**Remarks.** `header` adds `hallucination` or `unverified_factual` to `x-vsr-response-warnings`. `body` puts a line in front of
the text of every choice; it says how many statements are not supported. An answer that a program reads (`response_format`, or
a decision with `output_contract_spec`) is never written into: there `body` acts as `header`. `none` leaves the finding to the
record. The record always has it (`traces.plugins.hallucination`): verdict, numbers, and whether the answer was held, no word
of the answer.

**Streams.** A stream is held until its end only for `body`. With `header` and `none` it leaves as it is produced:

- headers leave with the first chunk, so what a stream turns out to say is found when it has ended, and stands in the record;
- `unverified_factual` depends on the request alone, so it is in the stream's headers, unless the request offers tools: then
  the answer may be a call and state nothing.

An answer from the response cache is checked like any other; one with a remark in its text has it already.",
    cost: "\
By words: no model; the material is taken apart once, on a thread of its own. `use_nli`: one encoder pass for
each sentence that is compared, at most 500. A check without material: one encoder pass.",
    fails_when: "\
The check has 5 seconds, 2 MiB of material and 256 statements. What is beyond, or an encoder that is not there, is `unchecked`
in the record: the answer leaves without a remark.",
    source: "\
contract §1.10. Unlike there, statements are checked wherever there is material, whether or not the request asks for facts,
and `global.model_catalog.modules.hallucination_mitigation` need not be switched on. Its `detector` and `explainer` configure
models that this engine does without.",
};

pub(super) const RESPONSE_JAILBREAK: Page = Page {
    kind: "response_jailbreak",
    what: "\
Looks at what a model wrote as at text that somebody else wrote, and refuses or marks an answer that looks like an attempt to
take over whoever reads it.",
    when: "\
Answers are read by agents or by other models, or models of the route can be made to repeat what they were fed. It is no
moderation of content: it knows attempts, not topics.",
    example: "\
plugins:
  - type: response_jailbreak
    configuration: { enabled: true, action: block, threshold: 0.8 }",
    keys: &[
        key("enabled", "`false` leaves the plugin out", "`true`"),
        key("threshold", "least score of a finding, in 0..=1; 0 is not set", "`modules.prompt_guard.threshold`"),
        key("action", "`block`, `header` or `none`", "header"),
    ],
    beside: "",
    about: "\
## What it does

Text, reasoning, refusal and tool arguments of every choice go through the classifier of the
[`jailbreak`](../signals/jailbreak.md) signal, whole and in windows, under the stricter measure for text that no user wrote.

| action | a finding | an answer that cannot be looked at | a stream |
|---|---|---|---|
| `block` | 403, code `blocked` | 403, code `blocked` | held until its end |
| `header` | `response_jailbreak` in `x-vsr-response-warnings` | `response_jailbreak_unchecked` there | leaves as it is produced; the record says what was found |
| `none` | in the record | in the record | leaves as it is produced |

With `block` nothing leaves that was not looked at, so the first word of a stream comes when the last one has been written. A
client that waits longer than the keepalive gets status 200 and comments meanwhile, and a refusal is an error event then.

The record has verdict, score, and whether the answer was held (`traces.plugins.response_jailbreak`), no word of the answer.",
    cost: "As the signal: one encoder pass, and at most three short ones for windows that look worse.",
    fails_when: "\
No encoder is loaded and no rule hits: `block` refuses then, the others mark or record it. An attempt that the classifier does
not see passes; its figures are on the [card of the head](../../crates/chorus-infer/heads/injection.md).",
    source: "contract §1.10; case E03.",
};

pub(super) const ROUTER_REPLAY: Page = Page {
    kind: "router_replay",
    what: "Keeps bodies and steps of tools in the run's record.",
    when: "\
Somebody has to see what was said on a route: for evaluation, or to answer for it. Every run has a record without this
plugin; it only adds the words.",
    example: "\
plugins:
  - type: router_replay
    configuration: { enabled: true, max_records: 10000, max_body_bytes: 4096 }",
    keys: &[
        key("max_records", "most records of the route that keep bodies; older ones lose theirs, some requests later", "`10000`"),
        key("`capture_request_body`, `capture_response_body`", "whether each is kept", "true"),
        key("max_body_bytes", "most bytes of each, cut at a whole character and marked", "`4096`"),
        key("max_tool_trace_steps", "most steps of tools, the latest", "`100`"),
        key("max_tool_trace_bytes", "most bytes of their arguments and results together; 0 is no bound of its own", "`0`"),
    ],
    beside: "\
The request is kept as the client sent it, the answer as it left. Records lie where `chorus serve` keeps them, readable by the
process's user alone. An operating point with `no_retention` keeps nothing.

`GET /v1/router_replay` on the management plane lists runs, without a word of a conversation; `…/{id}` shows one with its
bodies, and needs the permission `replay.detail`; `…/aggregate` counts; `…/trajectory?session=…` follows a conversation
over the routes that have this plugin ([HTTP](../http.md#runs)).",
    about: "",
    cost: "A copy of both bodies up to their bounds, after the answer has left.",
    fails_when: "Where run records are not kept, nothing is. A record that cannot be written is the log's.",
    source: "contract §1.10, §4.2, §4.3.",
};
