# Code: one model plans, one writes, one looks for what would break, and the writer delivers. Small questions about code
# go to one model; so does whatever brings tools, because an agent has a plan of its own.
#
#   chorus policy test examples/recipes/code.dsl --base examples/recipes/team.base.yaml

# Something is to be made or changed.
SIGNAL keyword build {
  keywords: [
    "implement",
    "refactor",
    "write a function",
    "write a class",
    "write a script",
    "build a",
    "add support for",
    "fix the bug",
    "migrate",
    "port this",
  ]
}

SIGNAL keyword code {
  keywords: [
    "code",
    "function",
    "class",
    "compile",
    "compiler",
    "api",
    "endpoint",
    "parser",
    "regex",
    "unit test",
    "stack trace",
    "thread",
    "python",
    "rust",
    "typescript",
    "java",
    "sql",
    "c++",
  ]
}

SIGNAL structure block {
  description: "A block of code is in the question."
  feature: { type: "exists", source: { type: "regex", pattern: "```" } }
}

SIGNAL conversation agent {
  description: "The conversation has results of tools."
  feature: { type: "count", source: { type: "message", role: "tool" } }
  predicate: { gte: 1 }
}

ROUTE agent (description = "In a loop with tools one model keeps the thread.") {
  PRIORITY 200
  WHEN conversation("agent")
  MODEL "large"
}

ROUTE build (description = "Plan, write, review for what tests would find, deliver.") {
  PRIORITY 100
  WHEN keyword("build") AND (keyword("code") OR structure("block"))
  MODEL "large",
        "middle",
        "judge"
  ALGORITHM workflows {
    mode: "static"
    template: "plan-write-review"
    roles: [
      {
        name: "planner"
        models: ["large"]
        prompt: "Plan the change: what is asked, which cases are at the edges, which interfaces are touched. Write no code."
      },
      {
        name: "writer"
        models: ["middle"]
        prompt: "Write the code by the plan, whole and ready to run."
        access_list: ["planner"]
      },
      {
        name: "test-risk reviewer"
        models: ["judge"]
        prompt: "Find what would fail: inputs at the edges, errors that are not handled, tests that are missing. Name the line and the input. Praise nothing."
        access_list: ["planner", "writer"]
      },
    ]
    final: {
      model: "large"
      prompt: "Give the code with every justified finding of the review mended, then the tests that the review asks for."
    }
    on_error: "skip"
    budget: { max_calls: 5, max_time_seconds: 300 }
  }
}

ROUTE question (description = "A question about code is one answer.") {
  PRIORITY 50
  WHEN keyword("code") OR structure("block")
  MODEL "middle"
}

ROUTE rest {
  PRIORITY 1
  MODEL "small"
}

TEST code {
  "Implement an LRU cache in Rust with an API for peeking." -> build
  "Refactor this so that it does not block:\n```python\nwhile True: poll()\n```" -> build
  "What does the borrow checker of Rust forbid?" -> question
  "Why does this fail?\n```\nlet x = vec![1]; drop(x); x.len()\n```" -> question
  "Build a bird house with my daughter: what do we need?" -> rest
  "What is a good name for a cat?" -> rest
}
