//! `header_mutation`: static edits of the headers sent upstream.
//!
//! `add` sets a header that is not there yet, `update` sets it always, `delete` removes it. Values may name
//! environment variables; they are resolved here, when they are used. Source: contract §1.10.

use crate::env::Env;
use crate::fault::{Code, Fault};
use chorus_spec::{Decision, HeaderMutation, Plugin};

/// The headers of a route's upstream calls, after all its mutations; names in lower case.
///
/// # Errors
/// An environment variable that is not set.
pub fn headers(decision: &Decision, env: &Env) -> Result<Vec<(String, String)>, Fault> {
    let mut headers = Vec::new();
    for plugin in &decision.plugins {
        if let Plugin::HeaderMutation(mutation) = plugin {
            mutate(mutation, env, &mut headers)?;
        }
    }
    Ok(headers)
}

fn mutate(mutation: &HeaderMutation, env: &Env, headers: &mut Vec<(String, String)>) -> Result<(), Fault> {
    for name in &mutation.delete {
        headers.retain(|(have, _)| !have.eq_ignore_ascii_case(name));
    }
    let entries = mutation.add.iter().map(|e| (e, false)).chain(mutation.update.iter().map(|e| (e, true)));
    for ((name, value), replace) in entries {
        let name = name.to_ascii_lowercase();
        let there = headers.iter().any(|(have, _)| *have == name);
        if there && !replace {
            continue;
        }
        headers.retain(|(have, _)| *have != name);
        let value = env.resolve(value).map_err(|missing| Fault::new(Code::Internal, missing.to_string()))?;
        headers.push((name, value));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_spec::Template;

    fn pair(name: &str, value: &str) -> (String, Template) {
        (name.to_owned(), Template::new(value))
    }

    #[test]
    fn add_keeps_update_replaces_delete_removes() {
        let env = Env::having(&[("TEAM", "blue")]);
        let mut headers = vec![("x-a".to_owned(), "1".to_owned()), ("x-b".to_owned(), "1".to_owned())];
        let mutation = HeaderMutation {
            add: vec![pair("X-A", "2"), pair("X-C", "${TEAM}")],
            update: vec![pair("X-A", "3")],
            delete: vec!["X-B".to_owned()],
        };
        mutate(&mutation, &env, &mut headers).unwrap();
        headers.sort();
        assert_eq!(headers, [("x-a".into(), "3".into()), ("x-c".into(), "blue".into())]);
    }

    #[test]
    fn h03_an_unset_variable_is_an_error_that_names_it() {
        let mutation = HeaderMutation { add: vec![pair("X-A", "${NOPE}")], ..HeaderMutation::default() };
        let fault = mutate(&mutation, &Env::having(&[]), &mut Vec::new()).unwrap_err();
        assert!(fault.public.contains("NOPE"));
    }
}
