# Deep exam questions, answered by as much work as the disagreement is worth. How hard a question looks decides what is
# tried first; how much the answers disagree decides how far it goes:
#
#   agreement      the cheap models say the same: their answer is taken            (accept)
#   disagreement   the strong model is asked too, and the votes are counted anew   (between)
#   confusion      nobody is likely to be right: nobody else is paid for           (hopeless)
#
# Proofs and derivations have no short answer to vote on; they go through rounds that end once the leader is certain.
#
#   chorus policy test examples/recipes/exam.dsl --base examples/recipes/team.base.yaml

SIGNAL keyword derive {
  keywords: ["prove", "proof", "derive", "show that", "deduce"]
}

SIGNAL keyword quantity {
  keywords: ["calculate", "compute", "how many", "how much", "evaluate", "find the value", "determine the"]
}

SIGNAL structure options {
  feature: { type: "count", source: { type: "regex", pattern: "(?m)^\\s*\\(?[A-J][).:]\\s+\\S" } }
  predicate: { gte: 3 }
}

SIGNAL structure formula {
  description: "A formula in TeX, or an equation."
  feature: {
    type: "exists"
    source: { type: "regex", pattern: "\\\\\\(|\\$[^$]+\\$|[a-z0-9)] ?= ?[-a-z0-9(]" }
  }
}

# How deep it looks.
PROJECTION score depth {
  method: "weighted_sum"
  inputs: [
    { type: "keyword", name: "derive", weight: 0.7 },
    { type: "structure", name: "formula", weight: 0.3 },
    { type: "structure", name: "options", weight: 0.2 },
    { type: "keyword", name: "quantity", weight: 0.3 },
  ]
}

PROJECTION mapping depth_band {
  source: "depth"
  method: "threshold_bands"
  outputs: [{ name: "plain", lt: 0.2 }, { name: "exam", gte: 0.2, lt: 0.7 }, { name: "proof", gte: 0.7 }]
}

ROUTE proof (description = "Rounds of reasoning until the leader is certain.") {
  PRIORITY 100
  WHEN projection("proof")
  MODEL "middle",
        "large"
  ALGORITHM remom {
    breadth_schedule: [4, 3]
    synthesis_model: "large"
    stop_when_certain: 0.95
    budget: { max_calls: 10, max_time_seconds: 900 }
  }
}

ROUTE exam (description = "Votes in bands of disagreement.") {
  PRIORITY 90
  WHEN projection("exam")
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
        hopeless: 0.2
      },
      {
        models: ["large"]
        weights: { small: [0.6, 0.9, 0.7], middle: [0.9, 1.3, 1.1], large: [2.4, 3.0, 2.6] }
      },
    ]
    budget: { max_calls: 3, max_time_seconds: 180 }
  }
}

ROUTE plain {
  PRIORITY 1
  MODEL "middle"
}

TEST exam {
  "Prove that $n^2 + n$ is even for every whole number n." -> proof
  "Show that the sum of two continuous functions is continuous, with f(x) = x as an example." -> proof
  "Calculate the resistance of three resistors of 6 ohms in parallel." -> exam
  "Which of these is an alkane?\nA) C2H4\nB) C3H8\nC) C2H2\nD) C6H6" -> exam
  "Why did the Roman Republic fall?" -> plain
  "What is photosynthesis?" -> plain
}
