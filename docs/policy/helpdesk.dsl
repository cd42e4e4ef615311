# A help desk: what must stay in the house stays there, what is hard goes to two models, the rest to the small one.

MODEL house {
  description: "Runs on our own machines."
  context_window_size: 32768
}

MODEL frontier {
  description: "The strongest that money buys."
  context_window_size: 200000
}

MODEL arbiter {
  description: "Compares what the others answered."
  context_window_size: 131072
}

SIGNAL keyword internal {
  keywords: ["internal only", "confidential", "nur intern", "仅限内部"]
}

SIGNAL keyword incident {
  keywords: ["outage", "root cause", "incident", "data loss"]
}

SIGNAL keyword short_answer {
  keywords: ["briefly", "in one sentence", "kurz"]
}

SIGNAL structure steps {
  description: "The user lists steps."
  feature: { type: "exists", source: { type: "regex", pattern: "(?m)^\\s*\\d+\\.\\s" } }
}

SIGNAL context long {
  min_tokens: "4K"
  max_tokens: "1M"
}

# How much work an answer is.
PROJECTION score effort {
  method: "weighted_sum"
  inputs: [
    { type: "keyword", name: "incident", weight: 0.5 },
    { type: "structure", name: "steps", weight: 0.3 },
    { type: "context", name: "long", weight: 0.4 },
    { type: "keyword", name: "short_answer", weight: -0.4 },
  ]
}

PROJECTION mapping effort_band {
  source: "effort"
  method: "threshold_bands"
  outputs: [{ name: "easy", lt: 0.4 }, { name: "hard", gte: 0.4 }]
}

PLUGIN desk system_prompt {
  enabled: true
  system_prompt: "You answer for the help desk. Say which system you mean."
  mode: "insert"
}

ROUTE in_house (description = "Whatever is said to be internal never leaves.") {
  PRIORITY 100
  WHEN keyword("internal")
  MODEL "house"
  PLUGIN desk
}

ROUTE panel (description = "Two models answer, a third compares.") {
  PRIORITY 50
  WHEN projection("hard") AND NOT keyword("internal")
  MODEL "frontier",
        "house"
  ALGORITHM fusion {
    model: "arbiter"
    analysis_models: ["frontier", "house"]
    min_successful_responses: 1
  }
  PLUGIN desk
}

ROUTE desk {
  PRIORITY 1
  MODEL "house"
  PLUGIN desk
}

TEST desk {
  "Where do I reset my password?" -> desk
  "What caused the outage last night?" -> panel
  "Briefly: what caused the outage?" -> desk
  "Confidential: root cause of the outage?" -> in_house
}
