//! Pages of the plugins about tools, and of the one that draws.
//!
//! It knows texts only. **Invariant:** each page says what a reader of its plugin's file would find.

use super::{Page, key};

pub(super) const TOOLS: Page = Page {
    kind: "tools",
    what: "Keeps, filters or removes the client's tools on a route.",
    when: "A route may use some tools of a client and not others, or its models cannot use any.",
    example: "\
plugins:
  - type: tools
    configuration: { mode: filtered, allow_tools: [search, open_page] }",
    keys: &[
        key("mode", "`passthrough`: all stay. `filtered`: some do. `none`: none do", "`passthrough`"),
        key("allow_tools", "names that stay with `filtered`; all where none is named", "all"),
        key("block_tools", "names that go with `filtered`", "none"),
        key(
            "strip_tool_history",
            "with `none`: calls and results of earlier turns become plain text, in whole pairs",
            "`false`",
        ),
        key("enabled", "`false` leaves the plugin out", "`true`"),
    ],
    beside: "",
    about:
        "\
## What it does

Where no tool stays, `tools`, `tool_choice` and `parallel_tool_calls` go. `semantic_selection`, `strategy` and
`dynamic_retrieval` are known, not supported: [`tool_selection`](tool_selection.md) chooses by what is asked.",
    cost: "None.",
    fails_when: "`tool_choice` asks for a tool that the route does not allow: the request is refused with 400 at `tool_choice`.",
    source: "contract §1.10; case B24.",
};

pub(super) const TOOL_SELECTION: Page = Page {
    kind: "tool_selection",
    what: "Chooses the tools that a model is offered: adds some of a file's, or keeps some of the client's.",
    when: "\
Clients that send dozens of tools, which small models confuse and large ones are paid to read; or routes that should offer
tools without their clients knowing them.",
    example: "\
plugins:
  - type: tool_selection
    configuration: { enabled: true, mode: filter, relevance_threshold: 0.35, preserve_count: 2 }",
    keys: &[
        key("mode", "`add` or `filter`", "`add`"),
        key("tools_db_path", "the file of `add`: a list of `{tool, description, category, tags}`, `tool` as in a request; looked for beside the configuration and above it", "`config/tools_db.json`"),
        key("top_k", "most tools that are added, or kept besides those that must stay", "3 in `add`, any in `filter`"),
        key("similarity_threshold", "least similarity of a tool that is added", "`0.2`"),
        key("relevance_threshold", "least similarity of a tool that is kept", "`0`"),
        key("preserve_count", "tools that a filter keeps at least", "`1`"),
        key("fallback_to_empty", "a request goes on as it is when tools cannot be told apart; else it is refused", "`true`"),
        key("advanced_filtering.enabled", "the keys below count", "`false`"),
        key("`….weights.{embed,lexical,tag,name,category}`", "share of each measure", "0.6, 0.15, 0.1, 0.1, 0.05"),
        key("`….candidate_pool_size`, `min_lexical_overlap`, `min_combined_score`", "bounds before the choice", "none"),
        key("`….use_category_filter`, `category_confidence_threshold`", "only tools of the task's [domain](../signals/domain.md), where it is known that well", "off, 0"),
        key("`….allow_tools`, `block_tools`", "names that may, and may not be chosen", "any, none"),
    ],
    beside: r#"`global.integrations.tools` fills what a route leaves out. `enabled: true` there adds tools on every route, to requests that say
`tool_choice: "auto"` and name no tool. `strategy` and `retrieval_strategy`: `weighted`; `hybrid_history` is known and runs as
`weighted`, with a warning."#,
    about: r#"## What it does

The user's last message is the task. Without `advanced_filtering` meaning alone counts: the cosine of task and tool (name,
description, tags), on the scale of configuration files.

A filter never removes a tool that `tool_choice` names, that the conversation has calls of, or that has no name of its own
kind. Tools stay in the request's order, with the bytes of their definitions. Where none is left, `tools`, `tool_choice` and
`parallel_tool_calls` go. `tool_choice: "none"` leaves everything as it is.

`add` offers; somebody else must execute: the client gets the calls. Relevance is no permission: use `tools` to forbid.

The record (`traces.plugins.tool_selection`) has names and scores of what was added, or the names of what was removed."#,
    cost: "One encoder pass for the task. Vectors of tools are kept (8,192, `max_tool_vectors`), so that only new tools are encoded.",
    fails_when: "\
Without an encoder, or with a file that cannot be read: `tool_selection_unavailable` or `tool_selection_no_tools` as a
warning, or the refusal `misconfigured`.",
    source: "contract §1.9, §1.10.",
};

pub(super) const IMAGE_GEN: Page = Page {
    kind: "image_gen",
    what: "Answers with an image: the last user message is the description, a server of images draws it.",
    when: "\
A route that wishes for images reach, usually by the [`modality`](../signals/modality.md) signal, so that clients of the chat
API need no second API.",
    example: r#"plugins:
  - type: image_gen
    configuration:
      enabled: true
      backend: openai
      backend_config: { api_key: "${OPENAI_API_KEY}", model: gpt-image-1 }"#,
    keys: &[
        key("enabled", "`false` leaves the plugin out", "`true`"),
        key("backend", "`openai` or `vllm_omni`", "required"),
        key("backend_config.base_url", "address of the server, with or without `/v1`", "`https://api.openai.com`; required for `vllm_omni`"),
        key("backend_config.api_key", "sent as a bearer token; `${NAME}`", "required for OpenAI itself"),
        key("backend_config.model", "the model there", "`gpt-image-1`; the server's own for `vllm_omni`"),
        key("`backend_config.quality`, `.style`", "`openai`: passed on", "not sent"),
        key("backend_config.num_inference_steps", "`vllm_omni`: steps of diffusion, 1..=1000", "`50`"),
        key("backend_config.cfg_scale", "`vllm_omni`: sent as `true_cfg_scale`", "`4`"),
        key("backend_config.seed", "`vllm_omni`: makes images repeatable", "not sent"),
        key("max_inference_steps", "`vllm_omni`: most steps, whatever `backend_config` says", "none"),
        key("`default_width`, `default_height`", "in pixels, 16..=8192", "1024"),
        key("timeout_seconds", "how long one image may take", "60; 120 for `vllm_omni`"),
        key("modality_detection", "where it is written, only requests that want an image get one; how that is told is `modules.modality_detector`'s", "every request of the route"),
    ],
    beside: "",
    about: "\
## What it does

`POST /v1/images/generations` with one image of that size; both kinds of server speak it. The answer is one assistant message
whose text is a Markdown image: the address that the server gave, or the bytes as a `data:` URL. It has the same shape by
every door and as a stream (`x-vsr-response-path: image_generation`). An address that is neither `http(s)` nor an image's
`data:` URL, or that would end the Markdown, counts as no image.

The call asks the request's budget and is a row of its ledger; tokens are those that the server reports. They cost
what a model of that name costs under `providers.models`, and nothing where there is none. At the operating point `secu` personal data is taken out of the description before it
leaves. The record says whether an image was drawn, by whom and how large (`traces.plugins.image_gen`).",
    cost: "What the server takes.",
    fails_when: "\
The server's failure is the request's: `upstream_failed`, `upstream_timeout`, `upstream_rejected`; nothing is tried again. A
last user message without text, or with more than 32,000 characters, is `invalid_request`. Where it cannot be told whether an
image is wanted, the request goes on to the route's model.",
    source: r#"contract §1.10; OpenAI API reference, "Create image"; vLLM-Omni, "Image Generation API". The contract's engine calls
vLLM-Omni's chat completions instead; both are documented there, and this one is the same for both servers."#,
};
