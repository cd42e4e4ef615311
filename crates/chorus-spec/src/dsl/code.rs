//! What the language's own codes mean, by example, and what to do about them.
//!
//! Plain data, beside the reader's table. **Invariant:** every example brings its own code about (held by a test).

use crate::DiagnosticCode;

/// `syntax`, as the table says.
pub const SYNTAX: &str = "syntax";
/// `unknown-word`, as the table says.
pub const UNKNOWN_WORD: &str = "unknown-word";
/// `open-block`, as the table says.
pub const OPEN_BLOCK: &str = "open-block";
/// `decision-tree`, as the table says.
pub const DECISION_TREE: &str = "decision-tree";

/// Every code of the language itself; their examples are policies, not YAML. The reader's own codes are in
/// [`DIAGNOSTIC_CODES`](crate::DIAGNOSTIC_CODES).
pub const CODES: &[DiagnosticCode] = &[
    DiagnosticCode {
        code: SYNTAX,
        says: "The policy language takes something else at this place.",
        example: Some("ROUTE greeting {\n  WHEN keyword(\"hello\") and language(\"en\")\n}\n"),
        fix: "Write what the message expects. Only the line, field or block that is named was passed over; the rest of \
              the file has been checked too.",
    },
    DiagnosticCode {
        code: UNKNOWN_WORD,
        says: "The policy language has no such block, clause, signal family or projection here.",
        example: Some("SIGNAL keywrd greeting {\n  keywords: [\"hello\"]\n}\n"),
        fix: "Take the word that the help proposes. Blocks and clauses are written in capitals; a key of the contract \
              that has no clause is written as a field, `key: value`.",
    },
    DiagnosticCode {
        code: OPEN_BLOCK,
        says: "A bracket is never closed.",
        example: Some("SIGNAL keyword greeting {\n  keywords: [\"hello\"]\n\nSIGNAL language en {}\n"),
        fix: "Close it before the line that the help names. The message points at the bracket that was opened.",
    },
    DiagnosticCode {
        code: DECISION_TREE,
        says: "A decision tree lacks its `ELSE`, has a branch out of order, or stands beside routes.",
        example: Some("DECISION_TREE triage {\n  IF keyword(\"hello\") { MODEL \"m\" }\n}\n"),
        fix: "Begin with `IF`, go on with `ELSE IF`, end with `ELSE`, and write routes as branches: a tree's branches \
              have priorities above any that a route would have.",
    },
];
