//! Pages of the signals that read what comes beside the words: who asks, `metadata`, events.
//!
//! It knows texts only. **Invariant:** each page says what a reader of its signal's file would find.

use super::{Page, key};
use chorus_spec::Family;

pub(super) const AUTHZ: Page = Page {
    family: Family::Authz,
    container: "role_bindings",
    is: "Whether the caller holds a role. A rule emits its **role**, not its own name.",
    keys: &[
        key("role", "required", "the role; what rules ask for"),
        key("subjects[].kind", "required", "`User` or `Group`"),
        key("subjects[].name", "required", "the user's id, or the group's name, compared as written"),
    ],
    about: "\
Identity comes from a proxy that the configuration trusts (`global.services.authz.identity` names the headers that it
sets) or from an API key that Chorus checked. A header that the client wrote itself, a `user` field or `metadata` is
never identity. Several bindings may give one role; any of them suffices. Without an identity a role is absent, so that
no rule that needs it holds, and none that forbids it either; with `global.services.authz.fail_open: true` it is unmatched.
Confidence is 1.",
    example: "\
role_bindings:
  - name: platform_team
    role: operator
    subjects:
      - { kind: Group, name: platform }
      - { kind: User, name: ada }",
    means: "A rule `{ type: authz, name: operator }` holds for ada and for everybody in the group `platform`.",
};

pub(super) const METADATA: Page = Page {
    family: Family::Metadata,
    container: "metadata",
    is: "A key of the request's `metadata`.",
    keys: &[
        key("key", "required", "the key of `metadata`"),
        key("predicate.equals", "", "the value is this text"),
        key("predicate.in", "", "the value is one of these texts"),
        key("predicate.exists", "", "the key is there (`true`) or not (`false`)"),
    ],
    about: "\
A predicate asks for one of the three. Values are compared as text; a number or a truth value by its JSON text. A key
with the value `null` is not there. `metadata` is the client's own word: use it for preferences, never for rights.
Confidence is 1.",
    example: "\
metadata:
  - name: gold_customer
    key: plan
    predicate: { in: [gold, platinum] }",
    means: "Holds for a request with `\"metadata\": {\"plan\": \"gold\"}`.",
};

pub(super) const EVENT: Page = Page {
    family: Family::Event,
    container: "events",
    is: "An event that an application reports.",
    keys: &[
        key("event_types", "", "types that count"),
        key("severities", "", "`critical`, `high`, `medium`, `low`: those that count"),
        key("action_codes", "", "codes that count"),
        key("temporal", "false", "the event must have a time"),
    ],
    about: "\
Each key that is written is a criterion; any met criterion suffices, and a rule without one wants an event of any type.
Fields are `event_type` (or `event`), `severity` (or `level`), `action_code` (or `action`) and `timestamp` (or `time`,
`occurred_at`). They are read from the request's `metadata`, else from the last user message, as JSON, YAML or
`key=value`. A type or a code also counts where it stands in the text as a word; a severity does not, because \"high\" is
an ordinary word; a date with a time of day is a time. Letters are folded, and `-`, `_` and space are one.

Confidence is .5 + .5 · met / written; raw is the number met.",
    example: "\
events:
  - name: outage
    event_types: [disk_full, payment_failed]
    severities: [critical]",
    means: "`{\"event_type\": \"disk_full\", \"severity\": \"low\"}` meets one of two criteria: matched, confidence .75.",
};
