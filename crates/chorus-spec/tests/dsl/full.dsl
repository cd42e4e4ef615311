# Everything that the policy language has, once.

ROUTING {
  strategy: "confidence"
}

# Models

MODEL small {
  context_window_size: 32768
  capabilities: ["chat"]
}

MODEL acme/large-2.5 {
  description: "For what is worth it."   # priced accordingly
  quality_score: 0.9
  tags: [
    # where it runs
    "deployment:cloud",
    "tier:high",
  ]
}

# Signals

SIGNAL keyword greeting {
  operator: "OR"
  keywords: ["hello", "你好"]
}

SIGNAL domain "computer science" {
  description: "Programs, and what they run on."
}

SIGNAL language de {}

SIGNAL context long {
  min_tokens: "8K"
  max_tokens: "1M"
}

SIGNAL structure steps {
  feature: { type: "exists", source: { type: "regex", pattern: "(?m)^\\s*\\d+\\." } }
}

SIGNAL complexity task {
  threshold: 0.1
  hard: { candidates: ["prove a theorem"] }
  easy: { candidates: ["say hello"] }
  composer: { operator: "AND", conditions: [{ type: "domain", name: "computer science" }] }
}

PROJECTION score effort {
  method: "weighted_sum"
  inputs: [{ type: "context", name: "long", weight: 0.5 }, { type: "keyword", name: "greeting", weight: -0.25 }]
}

PROJECTION mapping effort_band {
  source: "effort"
  method: "threshold_bands"
  outputs: [{ name: "low", lt: 0.2 }, { name: "high", gte: 0.2 }]
}

PLUGIN polite system_prompt {
  enabled: true
  system_prompt: "Be brief.\nBe kind."
  mode: "insert"
}

ROUTE deep (description = "Hard questions.") {
  PRIORITY 20
  TIER 1
  WHEN projection("high") AND (domain("computer science") OR complexity("task:hard") OR structure("steps")) AND NOT keyword("greeting")
  MODEL "acme/large-2.5" (reasoning = true, effort = "high"),
        "small" (weight = 0.5)
  ALGORITHM fusion {
    model: "small"
    analysis_models: ["acme/large-2.5", "small"]
    min_successful_responses: 1
  }
  annotations: { owner: "science" }
  PLUGIN polite {
    mode: "replace"
  }
  PLUGIN fast-response {
    message: "Soon."
  }
  EMIT retention { ttl_turns: 3, keep_current_model: true }
}

ROUTE spread {
  PRIORITY 10
  DESCRIPTION "One of several."
  WHEN language("de") AND (keyword("greeting") AND context("long"))
  FOR m IN ["small", "acme/large-2.5" (reasoning = false)] { MODEL m }
}

ROUTE rest {
  PRIORITY 1
  MODEL "small"
  ALGORITHM static
}

TEST greetings {
  "Hello there" -> rest
}

ENTRYPOINT {
  model_names: ["acme/triage"]
  recipe: "triage"
}

RECIPE triage (description = "By hand.", strategy = "priority") {
  SIGNAL keyword code {
    keywords: ["fn", "struct"]
  }

  SIGNAL keyword prose {
    keywords: ["poem"]
  }

  DECISION_TREE first {
    IF keyword("code") AND NOT keyword("prose") {
      NAME code
      MODEL "acme/large-2.5"
    }
    ELSE IF keyword("prose") OR keyword("code") {
      TIER 2
      MODEL "small"
    }
    ELSE {
      MODEL "small"
    }
  }

  TEST triage {
    "a struct" -> code
    "a poem" → first__branch_02
  }
}
# the end
