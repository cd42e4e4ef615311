//! Pages of the plugins that need the request's own words only.
//!
//! It knows texts only. **Invariant:** each page says what a reader of its plugin's file would find.

use super::{Page, key};

pub(super) const FAST_RESPONSE: Page = Page {
    kind: "fast_response",
    what: "Answers at once, without a model.",
    when: "What is to be said is known: a refusal, a greeting, a notice that a service is closed.",
    example: r#"plugins:
  - type: fast_response
    configuration: { message: "This desk is closed until Monday." }"#,
    keys: &[
        key("message", "the answer", "required"),
    ],
    beside: "",
    about: "\
## What it does

No candidate is needed, no other plugin takes its turn, nothing is called. The answer comes in the shape of the door that was
asked, whole or streamed; `x-vsr-fast-response: true` and `x-vsr-response-path: fast_response` say what it is. It is recorded
like every other answer, with no call and no cost.",
    cost: "None.",
    fails_when: "It does not.",
    source: "contract §1.10.",
};

pub(super) const SYSTEM_PROMPT: Page = Page {
    kind: "system_prompt",
    what: "Puts an operator's system message in front of the conversation.",
    when: "A route answers in a voice, or under rules, that its clients do not write themselves.",
    example: r#"plugins:
  - type: system_prompt
    configuration: { mode: insert, system_prompt: "Answer in the language of the question." }"#,
    keys: &[
        key("system_prompt", "the message", "required"),
        key("mode", "`replace`: it takes the place of the client's first system message. `insert`: it goes in front of its text", "`replace`"),
        key("enabled", "`false` leaves the plugin out", "`true`"),
    ],
    beside: "",
    about: "\
## What it does

The message stands first, whatever the client sent. A `developer` message of the client stays where it is: it ranks below the
operator's (case E12). Selectors and constraints see the request with it.",
    cost: "None but its own tokens, on every call of the route.",
    fails_when: "It does not. An empty message changes nothing.",
    source: "contract §1.10.",
};

pub(super) const REQUEST_PARAMS: Page = Page {
    kind: "request_params",
    what: "Blocks, caps or strips fields of a request.",
    when: "Clients may not choose everything: a cap on what is written, one answer a request, no field that a backend does not know.",
    example: "\
plugins:
  - type: request_params
    configuration: { max_tokens_limit: 1000, max_n: 1, blocked_params: [logit_bias], strip_unknown: true }",
    keys: &[
        key("blocked_params", "fields that are taken away; `model`, `messages` and `stream` never are", "none"),
        key("max_tokens_limit", "the most of `max_tokens` and `max_completion_tokens`; a request that names neither is left as it is", "none"),
        key("max_n", "the most of `n`", "none"),
        key("strip_unknown", "whether fields that the chat completions API does not define are taken away", "`false`"),
    ],
    beside: "",
    about: "\
## What it does

A greater number is lowered, not refused. `strip_unknown` keeps all that the API defines, `max_completion_tokens`,
`stream_options` and `parallel_tool_calls` among them. To hold an answer to a number of tokens whatever the client says, use a
[budget](../budgets.md).",
    cost: "None.",
    fails_when: "It does not.",
    source: "contract §1.10, §7.1 item 8; OpenAI API description 2.3.0.",
};

pub(super) const HEADER_MUTATION: Page = Page {
    kind: "header_mutation",
    what: "Sets, adds and removes headers of the calls to a route's models.",
    when: "A backend wants a header: a tenant, a feature, a priority.",
    example: r#"plugins:
  - type: header_mutation
    configuration: { add: [{ name: X-Team, value: "${TEAM}" }], delete: [X-Old] }"#,
    keys: &[
        key("add", "headers that are set where none of the name is there, as `{name, value}`", "none"),
        key("update", "headers that are set always, as `{name, value}`", "none"),
        key("delete", "names of headers that are taken away", "none"),
    ],
    beside: "",
    about: "\
## What it does

Deletions come first, then additions, then updates. A value may name variables of the environment (`${NAME}`), which are read
when a call needs them. They are headers of calls only: clients do not get them, and no header of a client is passed on.",
    cost: "None.",
    fails_when: "\
A variable is not set: the request ends with `internal`, and the message names the variable (case H03). A name that is no
header's is an error when the file is read.",
    source: "contract §1.10.",
};
