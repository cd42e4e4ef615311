//! A budget in one line, `calls=4;tokens=8000;usd=0.02;seconds=30;joules=900`, as a header or a flag has it.
//!
//! **Invariant:** every word is understood or the whole line is refused.

use chorus_spec::BudgetSettings;
use std::time::Duration;

/// Why a line is not a budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetFault {
    /// A word that no budget has.
    #[error("`{0}` is not a bound; write calls, tokens, usd, seconds or joules, each as `name=number`")]
    Unknown(String),
    /// A bound that is not a number above zero.
    #[error("`{name}` is `{value}`; it must be a {kind} above 0")]
    Value {
        /// The bound.
        name: &'static str,
        /// As written.
        value: String,
        /// What it must be.
        kind: &'static str,
    },
    /// One bound twice.
    #[error("`{0}` stands twice")]
    Twice(String),
}

/// Reads the line; bounds are separated by `;` or `,`.
///
/// # Errors
/// [`BudgetFault`].
pub fn parse(line: &str) -> Result<BudgetSettings, BudgetFault> {
    let mut budget = BudgetSettings::default();
    let mut seen: Vec<&str> = Vec::new();
    for part in line.split([';', ',']).map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let (name, value) = (name.trim(), value.trim());
        if seen.contains(&name) {
            return Err(BudgetFault::Twice(name.to_owned()));
        }
        match name {
            "calls" => budget.max_calls = Some(u32::try_from(whole("calls", value)?).unwrap_or(u32::MAX)),
            "tokens" => budget.max_tokens = Some(whole("tokens", value)?),
            "usd" => budget.max_micro_usd = Some((number("usd", value)? * 1e6).round() as u64),
            "seconds" => {
                let seconds = Duration::try_from_secs_f64(number("seconds", value)?);
                budget.max_time = Some(seconds.unwrap_or(Duration::MAX));
            }
            "joules" => budget.max_joules = Some(number("joules", value)?),
            _ => return Err(BudgetFault::Unknown(name.chars().take(40).collect())),
        }
        seen.push(name);
    }
    Ok(budget)
}

fn whole(name: &'static str, value: &str) -> Result<u64, BudgetFault> {
    let fault = || BudgetFault::Value { name, value: shown(value), kind: "whole number" };
    value.parse().ok().filter(|n| *n > 0).ok_or_else(fault)
}

fn number(name: &'static str, value: &str) -> Result<f64, BudgetFault> {
    let fault = || BudgetFault::Value { name, value: shown(value), kind: "number" };
    value.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0).ok_or_else(fault)
}

/// A value comes from outside; an error repeats no more than a line of it.
fn shown(value: &str) -> String {
    value.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_can_be_said() {
        let budget = parse("calls=4; tokens=8000;usd=0.02,seconds=1.5;joules=900").unwrap();
        assert_eq!(
            (budget.max_calls, budget.max_tokens, budget.max_micro_usd),
            (Some(4), Some(8000), Some(20_000))
        );
        assert_eq!((budget.max_time, budget.max_joules), (Some(Duration::from_millis(1500)), Some(900.0)));
        assert_eq!(parse("").unwrap(), BudgetSettings::default());
    }

    #[test]
    fn what_is_not_understood_is_refused_whole() {
        for (line, said) in [
            ("calls=4;mana=3", "`mana` is not a bound"),
            ("calls", "`calls` is ``"),
            ("calls=0", "must be a whole number above 0"),
            ("tokens=-3", "must be a whole number above 0"),
            ("usd=nan", "must be a number above 0"),
            ("seconds=inf", "must be a number above 0"),
            ("calls=1;calls=2", "`calls` stands twice"),
        ] {
            let fault = parse(line).unwrap_err().to_string();
            assert!(fault.contains(said), "{line}: {fault}");
        }
    }
}
