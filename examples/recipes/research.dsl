# Open research: contested questions go to a panel whose answers are held against each other; questions that want breadth
# are thought through by several seats in rounds; what can be looked up is one call.
#
#   chorus policy test examples/recipes/research.dsl --base examples/recipes/team.base.yaml

# Sides are to be weighed.
SIGNAL keyword contested {
  keywords: [
    "compare",
    "versus",
    "pros and cons",
    "evidence for",
    "evidence against",
    "critique",
    "controversy",
    "debate",
    "trade-offs",
    "better supported",
  ]
}

# The breadth of a field is asked for.
SIGNAL keyword survey {
  keywords: [
    "state of research",
    "survey",
    "overview of",
    "open problems",
    "literature",
    "what is known about",
    "research agenda",
    "hypotheses",
  ]
}

SIGNAL keyword brief {
  keywords: ["briefly", "in one sentence", "short answer", "tl;dr"]
}

ROUTE contested (description = "A panel, checked against itself.") {
  PRIORITY 100
  WHEN keyword("contested") AND NOT keyword("brief")
  MODEL "small",
        "middle",
        "large"
  ALGORITHM fusion {
    model: "judge"
    analysis_models: ["small", "middle", "large"]
    min_successful_responses: 2
    grounding: { enabled: true, reference: "panel", policy: "annotate" }
    budget: { max_calls: 6, max_time_seconds: 300 }
  }
}

ROUTE survey (description = "Two rounds: many views, then fewer that have seen them.") {
  PRIORITY 90
  WHEN keyword("survey") AND NOT keyword("brief")
  MODEL "middle" (weight = 1),
        "large" (weight = 1)
  ALGORITHM remom {
    breadth_schedule: [4, 2]
    model_distribution: "weighted"
    synthesis_model: "large"
    compaction_strategy: "last_n_tokens"
    compaction_tokens: 1500
    min_successful_responses: 1
    budget: { max_calls: 8, max_time_seconds: 600 }
  }
}

ROUTE rest {
  PRIORITY 1
  MODEL "middle"
}

TEST research {
  "Compare the evidence for dark matter and for modified gravity." -> contested
  "What are the pros and cons of carbon taxes, and how certain are they?" -> contested
  "What is the state of research on room-temperature superconductors?" -> survey
  "List open problems in the theory of deep learning." -> survey
  "Briefly: compare TCP and UDP." -> rest
  "Who wrote the Origin of Species?" -> rest
}
