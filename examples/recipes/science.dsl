# Multiple-choice science: two cheap models vote, and the strong one is asked only where they disagree. The answer is one
# letter, whatever the models wrote around it. Measured on recorded answers in docs/replay.md.
#
#   chorus policy test examples/recipes/science.dsl --base examples/recipes/team.base.yaml

SIGNAL structure options {
  description: "Lettered options, one a line."
  feature: { type: "count", source: { type: "regex", pattern: "(?m)^\\s*\\(?[A-J][).:]\\s+\\S" } }
  predicate: { gte: 3 }
}

SIGNAL domain science {
  description: "Natural science, mathematics, engineering, health."
  mmlu_categories: ["biology", "chemistry", "computer science", "engineering", "health", "math", "physics"]
}

ROUTE multiple_choice (description = "Votes until one letter is likely enough.") {
  PRIORITY 100
  WHEN structure("options")
  MODEL "small",
        "middle",
        "large"
  ALGORITHM poll {
    alternatives: 5
    steps: [
      {
        models: ["small", "middle"]
        weights: { small: [1.2, 1.8, 1.5], middle: [1.6, 2.4, 2.0] }
        accept: 0.85
      },
      {
        models: ["large"]
        weights: { small: [0.6, 0.9, 0.7], middle: [0.9, 1.3, 1.1], large: [2.4, 3.0, 2.6] }
      },
    ]
    budget: { max_calls: 3, max_time_seconds: 120 }
  }
  output_contract_spec: {
    type: "choice"
    choice_set: { values: ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"] }
    extract: { sources: ["content"] }
    render: { mode: "template", template: "ANSWER: {{choice}}" }
  }
}

ROUTE open_science (description = "No letters to vote on: a cascade by the model's own certainty.") {
  PRIORITY 50
  WHEN domain("science")
  MODEL "small",
        "large"
  ALGORITHM confidence {
    confidence_method: "quantile_logprob"
    escalation_order: "size"
  }
}

ROUTE rest {
  PRIORITY 1
  MODEL "small"
}

TEST science {
  "Which particle carries the strong force?\nA) photon\nB) gluon\nC) W boson\nD) graviton" -> multiple_choice
  "A solution has a pH of 3. What is its concentration of hydrogen ions?\n(A) 10^-3\n(B) 3\n(C) 10^3" -> multiple_choice
  "Explain how enzymes lower the activation energy of a chemical reaction." -> open_science
  "Derive the period of a simple pendulum for small angles." -> open_science
  "Write a birthday card for my aunt." -> rest
  "Recommend a film for tonight:\nA) a comedy\nB) a thriller" -> rest
}
