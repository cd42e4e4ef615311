//! What each code means, by example, and what to do about it: the source of `docs/diagnostics`.
//!
//! Plain data. **Invariant:** every example, read and checked, brings its own code about (held by a test).

use super::code;

/// One code that a diagnostic can carry.
#[derive(Debug, Clone, Copy)]
pub struct DiagnosticCode {
    /// The code.
    pub code: &'static str,
    /// What is wrong.
    pub says: &'static str,
    /// The part of a file that brings it about; whole when it begins with `version`, else below two models `m` and
    /// `n`. `None` where it takes more than one file.
    pub example: Option<&'static str>,
    /// What to do about it.
    pub fix: &'static str,
}

/// Every code, in the order of the manual: reading, then preparing, then the checks of a whole policy.
pub const DIAGNOSTIC_CODES: &[DiagnosticCode] = &[
    DiagnosticCode {
        code: code::YAML,
        says: "The text is not YAML that this reader takes: its syntax, its size or depth, a second document, \
               a tag, a merge key (`<<`), an alias inside the value that it names.",
        example: Some(
            r#"version: v0.3
routing: [
  a: ]b
"#,
        ),
        fix: "Mend the line that is named; often the cause is one line above. Merge keys are refused because \
              they hide which keys a mapping has: write the keys out, or alias a whole value.",
    },
    DiagnosticCode {
        code: code::UNKNOWN_KEY,
        says: "The contract has no such key at this place, so nobody would read it.",
        example: Some(
            r#"routing:
  decision: []
"#,
        ),
        fix: "Take the name that the help proposes, or remove the key.",
    },
    DiagnosticCode {
        code: code::NOT_SUPPORTED_YET,
        says: "The contract has it, and this version does not run it. As a warning: the file is served without \
               it. As an error: what stands around it would not do what it says, such as a store whose server this \
               version does not speak to.",
        example: Some(
            r#"global:
  router:
    streamed_body: { enabled: true }
"#,
        ),
        fix: "Remove it, switch it off (`enabled: false`), choose what the help names, or live with the warning.",
    },
    DiagnosticCode {
        code: code::NOT_NEEDED,
        says: "It configures machinery that this engine does without: it runs in one process, with models of \
               its own.",
        example: Some(
            r#"global:
  integrations:
    looper: { endpoint: "http://localhost:8899/v1/chat/completions" }
"#,
        ),
        fix: "Nothing needs to be done; the key may stay for the program that it was written for.",
    },
    DiagnosticCode {
        code: code::UNUSED,
        says: "It is read, and something beside it makes it idle.",
        example: Some(
            r#"routing:
  signals:
    keywords:
      - { name: k, method: regex, fuzzy_match: true, keywords: [hello] }
"#,
        ),
        fix: "Remove one of the two.",
    },
    DiagnosticCode {
        code: code::MISSING_KEY,
        says: "A key that must be there is not, or it is empty.",
        example: Some(
            r#"routing:
  signals:
    embeddings:
      - { name: planning, candidates: [plan a trip] }
"#,
        ),
        fix: "Write the key that is named.",
    },
    DiagnosticCode {
        code: code::WRONG_TYPE,
        says: "The value has another shape than the key takes: text for a number, a list for a mapping. A \
               number in quotes is text.",
        example: Some(
            r#"routing:
  decisions:
    - { name: d, priority: "100", modelRefs: [{ model: m }] }
"#,
        ),
        fix: "Write the shape that is named. Numbers and truth values stand without quotes; sizes such as \
              `32K` are taken where tokens are counted (`min_tokens`, `max_tokens`), and nowhere else.",
    },
    DiagnosticCode {
        code: code::BAD_VALUE,
        says: "The value has the right shape and is not one that the key takes.",
        example: Some(
            r#"routing:
  strategy: best
"#,
        ),
        fix: "Take one of the values that the help lists.",
    },
    DiagnosticCode {
        code: code::BAD_RANGE,
        says: "A number is out of its range, or two bounds contradict each other.",
        example: Some(
            r#"routing:
  signals:
    context:
      - { name: long, min_tokens: 32K, max_tokens: 8K }
"#,
        ),
        fix: "Write a number within the bounds that are named.",
    },
    DiagnosticCode {
        code: code::BAD_PATTERN,
        says: "A regular expression does not compile, or compiles to more than a pattern may take (2 MiB).",
        example: Some(
            r#"routing:
  signals:
    keywords:
      - { name: ticket, method: regex, keywords: ["TKT-([0-9]{4}"] }
"#,
        ),
        fix: "Mend the pattern at the character that is named. Look-around and back-references do not exist: \
              patterns run in linear time. Plain words need no pattern; leave `method` out.",
    },
    DiagnosticCode {
        code: code::BAD_RULE,
        says: "A node of a rule tree is neither one leaf nor one operator over its children. No malformed \
               node is given a meaning.",
        example: Some(
            r#"routing:
  signals: { keywords: [{ name: k, keywords: [a] }] }
  decisions:
    - name: d
      modelRefs: [{ model: m }]
      rules: { operator: XOR, conditions: [{ type: keyword, name: k }] }
"#,
        ),
        fix: "Write a leaf (`type` and `name`) or a branch (`operator: AND`, `OR` or `NOT`, and \
              `conditions`). `NOT` takes one condition.",
    },
    DiagnosticCode {
        code: code::UNKNOWN_REFERENCE,
        says: "A name that nothing in the file declares, or that no signal emits in this form.",
        example: Some(
            r#"routing:
  decisions:
    - { name: d, modelRefs: [{ model: mm }] }
"#,
        ),
        fix: "Declare it, or take the name that the help proposes. A complexity rule emits `name:hard`, \
              `name:medium` and `name:easy`, a classifier `name:label`.",
    },
    DiagnosticCode {
        code: code::UNKNOWN_LABEL,
        says: "A rule of `fact_check`, `user_feedbacks` or `modality` is named after a label that no head \
               gives, so it could never match; or a `pii` rule allows a type that nothing is found as, so it allows \
               nothing (a warning).",
        example: Some(
            r#"routing:
  signals:
    user_feedbacks: [{ name: angry }]
"#,
        ),
        fix: "Name the rule after one of the labels that the help lists, in the same case; of a type, any case will do.",
    },
    DiagnosticCode {
        code: code::DUPLICATE_KEY,
        says: "One key stands twice in one mapping. Which of the two counts would be a matter of luck.",
        example: Some(
            r#"routing:
  decisions: []
  strategy: priority
  decisions: []
"#,
        ),
        fix: "Keep one of them; both lines are named.",
    },
    DiagnosticCode {
        code: code::DUPLICATE_NAME,
        says: "Two things of one kind share a name.",
        example: Some(
            r#"routing:
  signals:
    keywords:
      - { name: k, keywords: [a] }
      - { name: k, keywords: [b] }
"#,
        ),
        fix: "Rename one of them.",
    },
    DiagnosticCode {
        code: code::NAME_COLLISION,
        says: "A name is taken by an automatic name, a looper or a model, so a client could not say which is \
               meant.",
        example: Some(
            r#"entrypoints:
  - { model_names: [vllm-sr/fusion], recipe: default }
"#,
        ),
        fix: "Choose another name.",
    },
    DiagnosticCode {
        code: code::CYCLE,
        says: "Scores or composers depend on themselves.",
        example: Some(
            r#"routing:
  projections:
    scores:
      - { name: a, inputs: [{ type: projection, name: b, weight: 1, value_source: score }] }
      - { name: b, inputs: [{ type: projection, name: a, weight: 1, value_source: score }] }
"#,
        ),
        fix: "Break the circle that is named at one of its arrows.",
    },
    DiagnosticCode {
        code: code::RECURSION,
        says: "A looper, an automatic name or an entrypoint stands where a model must: answering would ask \
               the router again.",
        example: Some(
            r#"routing:
  decisions:
    - { name: d, modelRefs: [{ model: MoM }] }
"#,
        ),
        fix: "Name a model of `providers.models`.",
    },
    DiagnosticCode {
        code: code::NEVER_MATCHES,
        says: "A rule, or a part of one, can never match: a blank keyword, a category that no head gives, a \
               band that earlier bands take whole or that no score reaches, conditions that contradict each \
               other.",
        example: Some(
            r#"routing:
  signals:
    domains: [{ name: cooking }]
"#,
        ),
        fix: "Remove it, or mend what makes it impossible.",
    },
    DiagnosticCode {
        code: code::LITERAL_SECRET,
        says: "A credential is written into the file.",
        example: Some(
            r#"version: v0.3
providers:
  models:
    - { name: m, backend_refs: [{ endpoint: "h:1", api_key: sk-123 }] }
"#,
        ),
        fix: "Write `${NAME}`, or name the variable in `api_key_env`.",
    },
    DiagnosticCode {
        code: code::JUDGE_IS_MEMBER,
        says: "The judge also sits on the panel that it judges, and is kind to its own answer.",
        example: Some(
            r#"routing:
  decisions:
    - name: d
      modelRefs: [{ model: m }, { model: n }]
      algorithm: { type: fusion, fusion: { model: m } }
"#,
        ),
        fix: "Name a judge of another family.",
    },
    DiagnosticCode {
        code: code::SAME_MODEL_TWICE,
        says: "Two panel members are one model under two names: one voice is counted twice.",
        example: Some(
            r#"version: v0.3
providers:
  models:
    - { name: a, provider_model_id: x, backend_refs: [{ endpoint: "h:1" }] }
    - { name: b, provider_model_id: x, backend_refs: [{ endpoint: "h:1" }] }
routing:
  decisions:
    - { name: d, algorithm: { type: fusion, fusion: { analysis_models: [a, b] } } }
"#,
        ),
        fix: "Take one of them out. Who wants one model to answer twice writes its name twice.",
    },
    DiagnosticCode {
        code: code::TEMPLATE_PLACEHOLDER,
        says: "A template lacks a placeholder, so it hides what it should show.",
        example: Some(
            r#"routing:
  decisions:
    - name: d
      modelRefs: [{ model: m }, { model: n }]
      algorithm: { type: fusion, fusion: { analysis_template: "Compare {{responses}}" } }
"#,
        ),
        fix: "Put the placeholder in.",
    },
    DiagnosticCode {
        code: code::UNPREPARED,
        says: "A signal reads and cannot be prepared: the manifest of its knowledge base or the file of its head is \
               not where the file says, is not what it should be, or has a label without exemplars.",
        example: None,
        fix: "Mend the path, or name the folder with `--knowledge`. A manifest is JSON with at least one exemplar for \
              each label that a group or rule names: `{\"labels\": {\"name\": {\"exemplars\": [\"…\"]}}}`.",
    },
    DiagnosticCode {
        code: code::UNREACHABLE_DECISION,
        says: "Whenever this decision holds, one that ranks above it holds too, so it never wins.",
        example: Some(
            r#"routing:
  signals: { keywords: [{ name: a, keywords: [a] }, { name: b, keywords: [b] }] }
  decisions:
    - { name: wide, priority: 9, rules: { type: keyword, name: a }, modelRefs: [{ model: m }] }
    - name: narrow
      priority: 1
      rules: { operator: AND, conditions: [{ type: keyword, name: a }, { type: keyword, name: b }] }
      modelRefs: [{ model: n }]
    - { name: rest, modelRefs: [{ model: m }] }
"#,
        ),
        fix: "Give the narrower decision the greater `priority` (or the smaller `tier`), or narrow the other.",
    },
    DiagnosticCode {
        code: code::MISSING_FALLBACK,
        says: "A recipe has neither an unconditional decision nor a default model: a request that no decision \
               claims is refused.",
        example: Some(
            r#"routing:
  signals: { keywords: [{ name: k, keywords: [a] }] }
  decisions:
    - { name: d, rules: { type: keyword, name: k }, modelRefs: [{ model: m }] }
"#,
        ),
        fix: "Set `providers.defaults.default_model`, or add a last decision without `rules`.",
    },
    DiagnosticCode {
        code: code::OVERLAPPING_BANDS,
        says: "Two bands of one mapping hold the same scores, so the order in which they are written decides.",
        example: Some(
            r#"routing:
  signals: { keywords: [{ name: k, keywords: [a] }] }
  projections:
    scores: [{ name: s, inputs: [{ type: keyword, name: k, weight: 1 }] }]
    mappings:
      - { name: m, source: s, outputs: [{ name: low, lte: 0.5 }, { name: high, gte: 0.5 }] }
  decisions:
    - { name: d, rules: { type: projection, name: high }, modelRefs: [{ model: m }] }
    - { name: rest, rules: { type: projection, name: low }, modelRefs: [{ model: m }] }
"#,
        ),
        fix: "Let one band end where the next begins, one with `lt` and the other with `gte`; or write \
              `method: multi_emit` if both are meant.",
    },
    DiagnosticCode {
        code: code::BAND_GAP,
        says: "Some scores fall between the bands of a mapping, and none of its outputs is emitted for them.",
        example: Some(
            r#"routing:
  signals: { keywords: [{ name: k, keywords: [a] }], structure: [{ name: q, feature: { type: count, source: { type: text_bytes } } }] }
  projections:
    scores:
      - { name: s, inputs: [{ type: keyword, name: k, weight: 0.5 }, { type: structure, name: q, weight: 0.5, value_source: confidence }] }
    mappings:
      - { name: m, source: s, outputs: [{ name: low, lt: 0.4 }, { name: high, gte: 0.6 }] }
  decisions:
    - { name: d, rules: { type: projection, name: high }, modelRefs: [{ model: m }] }
    - { name: rest, rules: { type: projection, name: low }, modelRefs: [{ model: m }] }
"#,
        ),
        fix: "Let the bands meet.",
    },
    DiagnosticCode {
        code: code::UNUSED_SIGNAL,
        says: "No decision depends on this signal, neither by itself nor through a projection or a composer, \
               so it is never computed for a route.",
        example: Some(
            r#"routing:
  signals: { keywords: [{ name: k, keywords: [a] }] }
  decisions:
    - { name: d, modelRefs: [{ model: m }] }
"#,
        ),
        fix: "Use it in a rule, or remove it.",
    },
    DiagnosticCode {
        code: code::UNUSED_PROJECTION,
        says: "No decision depends on this partition, score or mapping.",
        example: Some(
            r#"routing:
  signals: { keywords: [{ name: k, keywords: [a] }] }
  projections:
    scores: [{ name: s, inputs: [{ type: keyword, name: k, weight: 1 }] }]
  decisions:
    - { name: d, modelRefs: [{ model: m }] }
"#,
        ),
        fix: "Use an output of it in a rule, or remove it.",
    },
    DiagnosticCode {
        code: code::GUARD_BYPASSED,
        says: "A decision that no guard narrows ranks above one that a jailbreak or personal-data signal \
               leads to, so a request that both would take passes the guard by.",
        example: Some(
            r#"routing:
  signals:
    keywords: [{ name: k, keywords: [a] }]
    jailbreak: [{ name: j }]
  decisions:
    - { name: open, priority: 9, rules: { type: keyword, name: k }, modelRefs: [{ model: m }] }
    - { name: contain, priority: 5, rules: { type: jailbreak, name: j }, modelRefs: [{ model: n }] }
    - { name: rest, modelRefs: [{ model: m }] }
"#,
        ),
        fix: "Rank the guarded decision above, or narrow the other with `NOT` over the guard.",
    },
    DiagnosticCode {
        code: code::UNTRUSTED_IDENTITY,
        says: "Rules ask for a role, and the file does not say that a proxy sets the identity headers. A \
               client's own header is never identity, so only an API key can give the role.",
        example: Some(
            r#"routing:
  signals:
    role_bindings: [{ name: staff, role: admin, subjects: [{ kind: User, name: ada }] }]
  decisions:
    - { name: d, rules: { type: authz, name: admin }, modelRefs: [{ model: m }] }
    - { name: rest, modelRefs: [{ model: n }] }
"#,
        ),
        fix: "Where a proxy in front authenticates callers, sets these headers and strips a client's own, \
              name them under `global.services.authz.identity`.",
    },
];
