//! Pages of the signals that read text and counts.
//!
//! It knows texts only. **Invariant:** each page says what a reader of its signal's file would find.

use super::{Page, key};
use chorus_spec::Family;

pub(super) const CONTEXT: Page = Page {
    family: Family::Context,
    container: "context",
    is: "How large the request is.",
    keys: &[
        key("min_tokens", "0", "least tokens, inclusive; `K` is 1,000 and `M` 1,000,000"),
        key("max_tokens", "", "greatest tokens, inclusive; without it there is no bound"),
    ],
    about: "\
Where every model that may answer runs in this process, the vocabulary in its file counts the text of all messages, and
the largest count stands. Else, and beyond 64 KiB of text, it is estimated: a quarter of the UTF-8 bytes, and one token
for each Han, Kana or Hangul character. To that come 4 a message, 8,192 an image, 8 a tool call and a tool definition
plus its JSON, and `max_tokens` or `max_completion_tokens`, which the request reserves. `chorus explain` says which of
the two it was.

How far the estimate is from real vocabularies, a language at a time, is printed by
`cargo test -p chorus-signals --test token_estimate -- --ignored --nocapture` (with `CHORUS_MODELS` set). Raw is the
count, matched or not; confidence is 1.",
    example: "\
context:
  - { name: short, min_tokens: 0, max_tokens: 999 }
  - { name: long, min_tokens: 32K, max_tokens: 256K }",
    means: "`short` holds up to 999 tokens, `long` from 32,000 to 256,000.",
};

pub(super) const CONVERSATION: Page = Page {
    family: Family::Conversation,
    container: "conversation",
    is: "Counts over the list of messages.",
    keys: &[
        key("feature.type", "required", "`exists` or `count`"),
        key("feature.source.type", "required", "`message`, `tool_definition`, `assistant_tool_call`, `assistant_tool_cycle`, `active_tool_loop`, `image_content`"),
        key("feature.source.role", "", "for `message`: `user`, `assistant`, `system`, `developer`, `tool`, `non_user`"),
        key("predicate", "gt: 0", "bounds of the count: `gt`, `gte`, `lt`, `lte`"),
    ],
    about: "\
`developer` is the newer name of `system`: a rule on `system` counts both, a rule on `developer` only its own. A count is
a fact: confidence is 1. Raw is the count, matched or not.",
    example: "\
conversation:
  - name: tool_loop
    feature: { type: exists, source: { type: active_tool_loop } }
  - name: long_talk
    feature: { type: count, source: { type: message, role: user } }
    predicate: { gte: 4 }",
    means: "`tool_loop` holds while a tool call is open; `long_talk` from the user's fourth message on.",
};

pub(super) const KEYWORD: Page = Page {
    family: Family::Keyword,
    container: "keywords",
    is: "Words or patterns in what the user wrote.",
    keys: &[
        key("operator", "OR", "`OR` (any keyword), `AND` (all), `NOR` (none)"),
        key("keywords", "required", "words, or patterns"),
        key("case_sensitive", "false", "capital letters count"),
        key("method", "", "how a keyword is looked for, see below"),
        key("fuzzy_match", "false", "the same as `method: fuzzy`"),
        key("fuzzy_threshold", "2", "greatest edit distance"),
        key("bm25_threshold", "0.1", "least score"),
        key("ngram_threshold", "0.4", "least similarity"),
        key("ngram_arity", "3", "characters a gram"),
    ],
    about: "\
| `method` | a keyword is |
|---|---|
| none | looked for as it is, at word edges that fit its script (`C++`, `.NET`, Chinese) |
| `regex` | a pattern, as written |
| `bm25` | scored by its words' rarity |
| `ngram` | compared by character n-grams |
| `fuzzy` | compared by edit distance, whole words |

Confidence: 1 for a literal or a pattern; the score (at most 1) for `bm25` and `ngram`; one less the share of wrong
letters for `fuzzy`. `OR` takes the best keyword, `AND` the mean, `NOR` is certain. All but `regex` read the text in NFKC,
case folded unless `case_sensitive`, white space collapsed.",
    example: "\
keywords:
  - name: asks_for_views
    operator: OR
    keywords: [compare, pros and cons, which is better, 比较]
  - name: ticket
    method: regex
    operator: OR
    case_sensitive: true
    keywords: [\"TKT-[0-9]{4}\"]",
    means: "`asks_for_views` holds for \"Compare these two\", not for \"incomparable\"; `ticket` for \"see TKT-2291\".",
};

pub(super) const STRUCTURE: Page = Page {
    family: Family::Structure,
    container: "structure",
    is: "The countable form of what the user wrote.",
    keys: &[
        key("feature.type", "required", "`exists`, `count`, `density` (occurrences a word), `sequence` (parts in order)"),
        key("feature.source.type", "required", "`regex`, `keyword_set`, `sequence`, `text_bytes`"),
        key("feature.source.pattern", "", "for `regex`"),
        key("feature.source.keywords", "", "for `keyword_set`"),
        key("feature.source.sequences", "", "for `sequence`: lists of phrases, any of which must occur in its order"),
        key("feature.source.case_sensitive", "false", "capital letters count"),
        key("predicate", "gt: 0", "bounds of the value: `gt`, `gte`, `lt`, `lte`"),
    ],
    about: "\
Density is occurrences a unit of language; a unit is a word, or one ideograph, so that one bound serves English and
Chinese alike. Confidence is the logistic of four times the distance to the nearest bound, at least .5. Raw is the
measured value, matched or not.",
    example: "\
structure:
  - name: several_questions
    feature: { type: count, source: { type: regex, pattern: \"[?？]\" } }
    predicate: { gte: 2 }
  - name: steps
    feature: { type: sequence, source: { type: sequence, sequences: [[first, then], [plan, execute]] } }",
    means: "`several_questions` holds from two question marks on; `steps` for \"First sort them, then count\".",
};

pub(super) const LANGUAGE: Page = Page {
    family: Family::Language,
    container: "language",
    is: "The natural language of what the user wrote. The rule's name is an ISO 639-1 code.",
    keys: &[key("threshold", "0.3", "least confidence, in 0..=1")],
    about: "\
Code blocks are not read, and of a text in several scripts the one with most letters counts. Two detectors share the
work: confidence is .9 when they agree or only one knows the language's script, .6 when one had to give way, and .5 for
`en` when there is nothing to detect. How often it is right stands at the head of `language.rs`, with the texts it was
measured on. A name that no detector knows is absent.",
    example: "\
language:
  - { name: de }
  - { name: zh, threshold: 0.6 }",
    means: "`de` holds for German, `zh` for Chinese where the detectors are sure enough.",
};
