//! Pages of the signals that compare meaning: prototype banks and heads over the encoder.
//!
//! It knows texts only. **Invariant:** each page says what a reader of its signal's file would find.

use super::{Page, key};
use chorus_spec::Family;

pub(super) const EMBEDDING: Page = Page {
    family: Family::Embedding,
    container: "embeddings",
    is: "Nearness to example sentences.",
    keys: &[
        key("threshold", "required", "least similarity, in 0..=1, on the scale of the contract's own encoder"),
        key("candidates", "required", "the examples"),
        key("aggregation_method", "max", "`max`, `mean`, `any`"),
        key("query_modality", "text", "`text`; `image` and `audio` are known, not supported yet"),
    ],
    about: "\
`max` is .75 of the best prototype and .25 of the mean of the best two, `mean` the mean over all examples, `any` the best
example. A long text is as near as its nearest window. The rules are judged together: those at or above their own
`threshold` match; only when there is none, those at or above `min_score_threshold` (.5) do; of these the best `top_k` (1)
stay, the members of one partition taking one place. Confidence is the score, raw too, matched or not.",
    example: "\
embeddings:
  - name: travel
    threshold: 0.6
    candidates: [Plan a trip to Lisbon, Find me a hotel near the station]",
    means: "Holds for requests near to either example.",
};

pub(super) const DOMAIN: Page = Page {
    family: Family::Domain,
    container: "domains",
    is: "The subject matter.",
    keys: &[
        key("mmlu_categories", "its name", "categories that count as this domain"),
        key("model_scores", "[]", "known quality of models on it, for the algorithm `static`: `model`, `score`, `use_reasoning`"),
    ],
    about: "\
The categories: biology, business, chemistry, computer science, economics, engineering, health, history, law, math,
other, philosophy, physics, psychology. Probabilities are averaged over windows. A rule says that the text is of *any* of
its categories; they are disjoint, so its probability is their sum, and it matches at or above the threshold
(`model_catalog.modules.classifier.domain.threshold`, .5). When the normalised entropy over all categories is below .4 the
head is sure of one, and only rules that cover it can match. Both the rule's name and its categories' names are emitted.
Confidence is that sum, and raw too, matched or not. How good the head is: [heads.md](../heads.md).",
    example: "\
domains:
  - name: science
    mmlu_categories: [biology, chemistry, physics]",
    means: "Holds for a question that is of one of the three, also when the head wavers between them.",
};

pub(super) const COMPLEXITY: Page = Page {
    family: Family::Complexity,
    container: "complexity",
    is: "How hard the question is. A rule emits `name:easy`, `name:medium` or `name:hard`.",
    keys: &[
        key("threshold", "required", "half-width of `medium` around a margin of 0"),
        key("easy_certainty", "0.5", "least probability of the head that the text is easy for `easy`, in 0..=1; 0 asks the examples alone"),
        key("hard.candidates", "[]", "hard examples"),
        key("easy.candidates", "[]", "easy examples"),
        key("composer", "", "a rule tree that must hold as well"),
    ],
    about: "\
Margin = score(hard) − score(easy), the contract's formula. A trained head adds two things: where it finds the text likelier
hard than easy, the margin moves towards hard by P(hard) − P(easy) times the threshold, so that it settles what the examples
leave open; and where its P(easy) is below `easy_certainty`, the label is at least `medium`, because few examples are near to
an expert's question, and what is unknown belongs into the middle (D13). Above the threshold `hard`, below minus the
threshold `easy`, else `medium`. Confidence is the logistic of four times the distance to the label's edge; raw is the
margin. How good the head is, by language: [heads.md](../heads.md).",
    example: "\
complexity:
  - name: needs_reasoning
    threshold: 0.05
    hard: { candidates: [Explain the mechanism step by step and discuss its limits] }
    easy: { candidates: [What is the capital of France?, Say hello in Spanish] }",
    means: "A decision asks `{ type: complexity, name: \"needs_reasoning:hard\" }`.",
};

pub(super) const KB: Page = Page {
    family: Family::Kb,
    container: "kb",
    is: "Nearness to a part of a knowledge base.",
    keys: &[
        key("kb", "required", "the knowledge base: of `global.model_catalog.kbs`, or `privacy_kb` or `mmlu_kb`, which need no declaration"),
        key("target.kind", "required", "`label` or `group`"),
        key("target.value", "required", "the label, or the group"),
        key("match", "threshold", "`threshold`: a label of the target reaches its threshold; `best`: the best label of all does, and is of the target"),
    ],
    about: "\
A knowledge base is a file of labels with example sentences each (`labels.json`: `{\"labels\": {\"NAME\": {\"description\": …,
\"exemplars\": […]}}}`). Its `source.path` is looked for from the configuration's folder upwards, then in
`--knowledge DIR`, and for `privacy_kb` and `mmlu_kb` the project's own exemplars come last; `chorus explain` says which
was used. A file that is missing, or a label without exemplars, is an error when the configuration is loaded.

A label's score is the nearness to its exemplars' prototypes; its threshold is `label_thresholds`, else the base's
`threshold`. Confidence is the score of the label that held, raw the best score of the target.

A metric of a base (`type: group_margin`) is the best score of its positive group less the best of its negative one.
Scores read it as `{ type: kb_metric, kb: …, metric: …, value_source: score }`.",
    example: "\
kb:
  - name: private_matter
    kb: privacy_kb
    target: { kind: group, value: privacy_policy }
    match: best",
    means: "Holds when, of all labels of `privacy_kb`, the nearest is one of the group `privacy_policy`.",
};

pub(super) const PREFERENCE: Page = Page {
    family: Family::Preference,
    container: "preferences",
    is: "Which kind of wish the request is.",
    keys: &[
        key("examples", "[]", "example requests"),
        key("threshold", "0.5", "least score, in 0..=1"),
    ],
    about: "\
A rule's examples and its `description` are its bank, scored like `embedding`. Rules compete: the nearest one matches if
it reaches its own threshold, and another never does. Confidence is the score, raw too, matched or not.",
    example: "\
preferences:
  - name: code
    description: write, explain or repair a program
    examples: [Fix this function, Why does this test fail?]
  - name: travel
    description: plan a journey
    examples: [Find a train to Vienna]",
    means: "At most one of the two holds for a request.",
};

pub(super) const REASK: Page = Page {
    family: Family::Reask,
    container: "reasks",
    is: "The user asks again what they asked before.",
    keys: &[
        key("threshold", "0.8", "least likeness of two turns, in 0..=1"),
        key("lookback_turns", "1", "how many of the user's turns before must all be alike"),
    ],
    about: "\
Two turns that differ in case, width, white space or punctuation only are alike by 1; else their likeness is the cosine of
their vectors, on the contract's scale. A turn that only agrees (\"yes\", \"go on\") asks nothing. Of the rules that hold,
those with the largest lookback stay. Confidence is the least likeness within the lookback; raw too, matched or not, and 0
where there are fewer turns than that.",
    example: "\
reasks:
  - { name: asked_again, threshold: 0.8, lookback_turns: 1 }
  - { name: asked_thrice, threshold: 0.8, lookback_turns: 2 }",
    means: "The second question in a row gives `asked_again`, the third `asked_thrice` alone.",
};

pub(super) const CLASSIFIER: Page = Page {
    family: Family::Classifier,
    container: "classifiers",
    is: "A classifier of the operator's own. A rule emits `name:label` for each of its labels.",
    keys: &[
        key("type", "required", "`local` (a head over the encoder), or `llm` (a model that is asked)"),
        key("model_path", "", "for `local`: the head's file, looked for like a knowledge base"),
        key("model", "", "for `llm`: the model; for `local`: the file, where `model_path` is not written"),
        key("labels", "required", "the labels"),
        key("instructions", "", "for `llm`: what the labels mean, in words for the model"),
    ],
    about: "\
A decision asks a label with a predicate over its probability, which is raw; without one a label holds from .5 on. The
file is a head as `chorus lab train-head` writes it (safetensors: `weight`, `bias`, and a card in its metadata). A head
that lacks a label, or was trained on another encoder than the loaded one, is refused when the configuration is loaded.
A model that is asked (`type: llm`) gets the labels, the instructions and the text between tags that it cannot forge,
and names one label: confidence and raw are 1 for it and 0 for the others. It is asked only when nothing cheaper settles
the route, within `classifier_time` (5 s) and the request's budget, and its call stands in the record with the role
`signal`. The evaluation endpoint, `explain` and `policy test` call no model, so there the rule is absent.",
    example: "\
classifiers:
  - name: mood
    type: local
    model_path: heads/mood.safetensors
    labels: [glad, cross]",
    means: "A decision asks `{ type: classifier, name: mood, label: cross, predicate: { gte: 0.7 } }`.",
};

pub(super) const FACT_CHECK: Page = Page {
    family: Family::FactCheck,
    container: "fact_check",
    is: "Whether the answer will hold claims that need checking.",
    keys: &[],
    about: "\
The rule's name is the label that it stands for: `needs_fact_check` or `no_fact_check_needed`. The threshold is
`global.model_catalog.modules.hallucination_mitigation.fact_check.threshold`, .6. Confidence and raw are the label's
probability. How good the head is: [heads.md](../heads.md).",
    example: "\
fact_check:
  - name: needs_fact_check
  - name: no_fact_check_needed",
    means: "The first holds for \"When was the bridge opened?\", the second for \"Write a poem about bridges\".",
};

pub(super) const USER_FEEDBACK: Page = Page {
    family: Family::UserFeedback,
    container: "user_feedbacks",
    is: "What the user thinks of the answer before.",
    keys: &[],
    about: "\
The rule's name is the label that it stands for: `satisfied`, `need_clarification`, `wrong_answer` or `want_different`.
It holds only where an assistant has answered before; a first message is no feedback. The threshold is
`global.model_catalog.modules.feedback_detector.threshold`, .7. Confidence and raw are the label's probability: the head's,
after phrases of sixteen languages (“das stimmt nicht”) have raised the odds of the kind that they name. How good both are:
[heads.md](../heads.md).",
    example: "\
user_feedbacks:
  - name: wrong_answer
  - name: need_clarification",
    means: "The first holds for \"That is not correct\" after an answer, the second for \"I do not follow the last step\".",
};

pub(super) const MODALITY: Page = Page {
    family: Family::Modality,
    container: "modality",
    is: "Whether text, an image or both are wanted.",
    keys: &[],
    about: "\
The rule's name is the label that it stands for: `AR` (text), `DIFFUSION` (an image) or `BOTH`. The method is
`global.model_catalog.modules.modality_detector.method`: `classifier`, `keyword` or `hybrid`. A text *about* images is
`AR`. Confidence is the label's probability, or how sure the words are. How good the head is: [heads.md](../heads.md).",
    example: "\
modality:
  - name: AR
  - name: DIFFUSION
  - name: BOTH",
    means: "\"Draw a fox in the snow\" is `DIFFUSION`; \"Explain how cameras focus\" is `AR`.",
};
