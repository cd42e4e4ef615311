//! Flags that bound what one request may spend. It knows no configuration.

use chorus_spec::BudgetSettings;
use clap::Args;
use std::time::Duration;

/// Where `--help` lists them.
const HEADING: &str = "What one request may spend";

/// What one request may spend at most; a configuration, an operating point and a request can only lower it.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Spending {
    /// Model calls (default 64).
    #[arg(long, help_heading = HEADING, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_calls: Option<u32>,
    /// Tokens, read and written, over all calls.
    #[arg(long, help_heading = HEADING, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// US dollars, by the price table of the configuration.
    #[arg(long, help_heading = HEADING, value_name = "USD", value_parser = above_zero)]
    pub(crate) max_cost: Option<f64>,
    /// Seconds from the first byte read to the last byte written.
    #[arg(long, help_heading = HEADING, value_name = "SECONDS", value_parser = above_zero)]
    pub(crate) max_seconds: Option<f64>,
    /// Joules, by the energy profiles of the configuration.
    #[arg(long, help_heading = HEADING, value_name = "J", value_parser = above_zero)]
    pub(crate) max_joules: Option<f64>,
}

impl Spending {
    /// The flags as a budget.
    pub(crate) fn budget(self) -> BudgetSettings {
        BudgetSettings {
            max_calls: self.max_calls,
            max_tokens: self.max_tokens,
            max_micro_usd: self.max_cost.map(|usd| (usd * 1e6).ceil() as u64),
            max_time: self.max_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()),
            max_joules: self.max_joules,
            when_spent: None,
        }
    }
}

fn above_zero(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("it must be a number above 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        spending: Spending,
    }

    #[test]
    fn flags_are_a_budget_and_the_smaller_of_each_counts() {
        let line = "x --max-calls 4 --max-tokens 9000 --max-cost 0.02 --max-seconds 1.5 --max-joules 7";
        let budget = Flags::try_parse_from(line.split(' ')).unwrap().spending.budget();
        assert_eq!(
            (budget.max_calls, budget.max_tokens, budget.max_micro_usd),
            (Some(4), Some(9000), Some(20_000))
        );
        assert_eq!((budget.max_time, budget.max_joules), (Some(Duration::from_millis(1500)), Some(7.0)));
        let limits = chorus_engine::Limits::default().lowered_by(&budget);
        let own = BudgetSettings { max_calls: Some(9), max_tokens: Some(100), ..BudgetSettings::default() };
        let lowered = limits.lowered_by(&own);
        assert_eq!((lowered.max_calls, lowered.max_tokens), (4, Some(100)), "a request lowers, never raises");
        for wrong in ["--max-calls 0", "--max-cost -1", "--max-seconds nan", "--max-tokens 0"] {
            assert!(Flags::try_parse_from(format!("x {wrong}").split(' ')).is_err(), "{wrong}");
        }
    }
}
