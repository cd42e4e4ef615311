//! Types and ranges of the request parameters that Chorus or every backend relies on. It knows no messages; what it
//! does not name is the backend's to judge.

use crate::body::RawObject;
use crate::content::text;
use crate::fault::RequestFault;
use crate::raw::{elements, number};

/// Checks one parameter that is there and not `null`.
struct Rule {
    param: &'static str,
    must_be: &'static str,
    holds: fn(&str) -> bool,
}

/// Source: OpenAI's API reference, chat completions.
const RULES: &[Rule] = &[
    Rule {
        param: "temperature",
        must_be: "a number from 0 to 2",
        holds: |raw| number(raw).is_some_and(|n| (0.0..=2.0).contains(&n)),
    },
    Rule {
        param: "top_p",
        must_be: "a number from 0 to 1",
        holds: |raw| number(raw).is_some_and(|n| (0.0..=1.0).contains(&n)),
    },
    Rule { param: "n", must_be: "a whole number from 1 to 128", holds: |raw| is_whole(raw, 128.0) },
    Rule {
        param: "max_tokens",
        must_be: "a whole number of at least 1",
        holds: |raw| is_whole(raw, f64::MAX),
    },
    Rule {
        param: "max_completion_tokens",
        must_be: "a whole number of at least 1",
        holds: |raw| is_whole(raw, f64::MAX),
    },
    Rule { param: "stream", must_be: "true or false", holds: |raw| matches!(raw, "true" | "false") },
    Rule { param: "stream_options", must_be: "an object", holds: is_object },
    Rule {
        param: "stop",
        must_be: "a string or a list of strings",
        holds: |raw| {
            text(raw).is_some() || elements(raw).is_some_and(|all| all.into_iter().all(|s| text(s).is_some()))
        },
    },
    Rule { param: "tools", must_be: "a list of objects", holds: is_list_of_objects },
    Rule { param: "plugins", must_be: "a list of objects", holds: is_list_of_objects },
];

/// The first parameter that breaks its rule. `null` is as good as absent.
pub(crate) fn check(body: &RawObject) -> Result<(), RequestFault> {
    for Rule { param, must_be, holds } in RULES {
        if body.get_set(param).is_some_and(|raw| !holds(raw)) {
            return Err(RequestFault::of(*param, format!("`{param}` must be {must_be}")));
        }
    }
    Ok(())
}

fn is_whole(raw: &str, most: f64) -> bool {
    number(raw).is_some_and(|n| n.fract() == 0.0 && (1.0..=most).contains(&n))
}

fn is_object(raw: &str) -> bool {
    raw.starts_with('{')
}

fn is_list_of_objects(raw: &str) -> bool {
    elements(raw).is_some_and(|all| all.into_iter().all(is_object))
}
