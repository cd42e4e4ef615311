//! `lab eval-injection`: the jailbreak signal, as requests meet it, over sets that nothing was learnt from.
//!
//! It asks the signal and reads its raw score; it knows no weight. Invariant: every figure of a report comes from the
//! signal that a recipe gets, with the contract's default threshold.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Instant;

use chorus_infer::mixed::MixedHead;
use chorus_infer::{EncodeFault, TextEncoder, heads};
use chorus_policy::Observation;
use chorus_signals::jailbreak::Jailbreak;
use chorus_signals::{SharedPass, Subject};
use chorus_spec::{JailbreakMethod, JailbreakSignal};
use chorus_wire::{ChatRequest, Message, Role};

use crate::fault::LabFault;
use crate::injection_data::{Probe, ProbeSet, probes};

/// The contract's default threshold. Source: contract, `prompt_guard.threshold`.
const THRESHOLD: f64 = 0.7;
/// Thresholds of the curves.
const CURVE: [f64; 11] = [0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 0.95];
/// A prompt of about 30 tokens, for the cost.
const PROMPT: &str = "Please compare the two train connections from Hamburg to Basel on Friday evening and tell me \
                      which one leaves more time for changing in Frankfurt";
/// How often the cost is taken.
const REPEATS: usize = 200;

/// A measurement of the jailbreak signal.
#[derive(Debug, Clone)]
pub struct EvalInjection {
    /// Folder of the public datasets: `safety/`, `tasks/`.
    pub data_dir: PathBuf,
}

impl EvalInjection {
    /// Measures the encoder's built-in head through the signal; `progress` gets a line now and then.
    ///
    /// # Errors
    /// [`LabFault`] when a dataset is absent or broken, no head is built in, or the signal could not run.
    pub fn run(
        &self,
        encoder: &dyn TextEncoder,
        progress: &mut dyn FnMut(&str),
    ) -> Result<InjectionReport, LabFault> {
        let head = heads::for_encoder(encoder.digest()).injection;
        let head = head.ok_or_else(|| EncodeFault("no injection head is built in".to_owned()))?;
        evaluate(&self.data_dir, head, encoder, progress)
    }
}

/// What the signal said of every measured text, and what it costs. Its text form is Markdown.
#[derive(Debug, Clone, PartialEq)]
pub struct InjectionReport {
    sets: Vec<ScoredSet>,
    costs: Vec<Cost>,
}

/// A set and the signal's raw scores of its texts.
#[derive(Debug, Clone, PartialEq)]
struct ScoredSet {
    name: &'static str,
    rows: Vec<(Probe, f64)>,
}

/// What the signal adds to an encoder pass.
#[derive(Debug, Clone, PartialEq)]
struct Cost {
    what: &'static str,
    median_us: u128,
    /// Texts that the encoder read, the shared pass included.
    passes: usize,
}

impl InjectionReport {
    /// The share of a set's texts of one kind that reach a threshold, and how many there are.
    #[must_use]
    pub fn share(&self, set: &str, attack: bool, threshold: f64) -> (f64, usize) {
        let rows = self.sets.iter().filter(|known| known.name == set).flat_map(|known| &known.rows);
        share(rows.filter(|(probe, _)| probe.attack == attack), threshold)
    }
}

fn share<'r>(rows: impl Iterator<Item = &'r (Probe, f64)>, threshold: f64) -> (f64, usize) {
    let (hits, count) = rows.fold((0_usize, 0_usize), |(hits, count), (_, raw)| {
        (hits + usize::from(*raw >= threshold), count + 1)
    });
    (hits as f64 / count.max(1) as f64, count)
}

/// Measures every set.
pub(crate) fn evaluate(
    data: &std::path::Path,
    head: &'static MixedHead,
    encoder: &dyn TextEncoder,
    progress: &mut dyn FnMut(&str),
) -> Result<InjectionReport, LabFault> {
    let rule = classifier(head);
    let mut sets = Vec::new();
    for ProbeSet { name, probes } in probes(data)? {
        progress(&format!("measuring {}: {name}", probes.len()));
        let rows: Result<Vec<(Probe, f64)>, LabFault> =
            probes.into_iter().map(|probe| Ok((probe.clone(), score(&rule, encoder, &probe)?))).collect();
        sets.push(ScoredSet { name, rows: rows? });
    }
    let long = PROMPT.repeat(16_000 / PROMPT.len());
    let costs = vec![
        cost("a prompt of 30 tokens", PROMPT, &rule, encoder),
        cost("4,000 tokens", &long, &rule, encoder),
    ];
    Ok(InjectionReport { sets, costs })
}

fn classifier(head: &'static MixedHead) -> Jailbreak {
    let signal = JailbreakSignal {
        method: JailbreakMethod::Classifier,
        threshold: None,
        include_history: false,
        jailbreak_patterns: Vec::new(),
        benign_patterns: Vec::new(),
    };
    Jailbreak::prepare(&signal, THRESHOLD, Some(head))
}

fn request(probe: &Probe) -> ChatRequest {
    let messages = if probe.tool {
        vec![Message::new(Role::User, "Please go on."), Message::new(Role::Tool, &probe.text)]
    } else {
        vec![Message::new(Role::User, &probe.text)]
    };
    ChatRequest::new("m", messages)
}

fn score(rule: &Jailbreak, encoder: &dyn TextEncoder, probe: &Probe) -> Result<f64, LabFault> {
    let request = request(probe);
    match rule.observe(Some(encoder), &Subject::of(&request), &mut SharedPass::new()) {
        Observation::Matched { raw: Some(raw), .. } | Observation::Unmatched { raw: Some(raw) } => Ok(raw),
        other => Err(LabFault::Encode(EncodeFault(format!("the signal did not run: {other:?}")))),
    }
}

/// The median time of the signal on a text that the encoder has read already.
fn cost(what: &'static str, text: &str, rule: &Jailbreak, encoder: &dyn TextEncoder) -> Cost {
    let request = ChatRequest::new("m", vec![Message::new(Role::User, text)]);
    let mut passes = 0;
    let mut times: Vec<u128> = (0..REPEATS)
        .map(|_| {
            let mut pass = SharedPass::new();
            let _read = pass.encode(encoder, text);
            let start = Instant::now();
            let _said = rule.observe(Some(encoder), &Subject::of(&request), &mut pass);
            passes = pass.runs();
            start.elapsed().as_micros()
        })
        .collect();
    times.sort_unstable();
    Cost { what, median_us: times.get(REPEATS / 2).copied().unwrap_or_default(), passes }
}

impl fmt::Display for InjectionReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "At the threshold {THRESHOLD}; attempts found, harmless texts left alone:\n")?;
        writeln!(out, "| set | attempts | found | harmless | left alone |\n|---|---|---|---|---|")?;
        for set in &self.sets {
            let cell = |(share, count): (f64, usize), found: bool| match count {
                0 => "– | –".to_owned(),
                _ => format!("{count} | {:.3}", if found { share } else { 1.0 - share }),
            };
            let attacks = cell(self.share(set.name, true, THRESHOLD), true);
            let harmless = cell(self.share(set.name, false, THRESHOLD), false);
            writeln!(out, "| {} | {attacks} | {harmless} |", set.name)?;
        }
        self.curves(out)?;
        self.kinds(out)?;
        writeln!(out, "\nCost beyond the pass that signals share, median of {REPEATS}:\n")?;
        writeln!(out, "| text | microseconds | passes of the encoder in all |\n|---|---|---|")?;
        self.costs
            .iter()
            .try_for_each(|cost| writeln!(out, "| {} | {} | {} |", cost.what, cost.median_us, cost.passes))
    }
}

impl InjectionReport {
    fn curves(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "\nBoth curves:\n")?;
        writeln!(
            out,
            "| threshold | slabs recall | slabs false positives | NotInject one left alone | two left alone | \
             XSTest safe left alone | own everyday left alone |\n|---|---|---|---|---|---|---|"
        )?;
        for threshold in CURVE {
            let of = |set, attack| self.share(set, attack, threshold).0;
            writeln!(
                out,
                "| {threshold:.2} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} |",
                of("slabs validation", true),
                of("slabs validation", false),
                1.0 - of("NotInject one", false),
                1.0 - of("NotInject two", false),
                1.0 - of("XSTest safe", false),
                1.0 - of("own, by language", false),
            )?;
        }
        Ok(())
    }

    /// Figures by language or category, for sets that have one.
    fn kinds(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "\nBy language or category, at {THRESHOLD}:\n")?;
        writeln!(
            out,
            "| set | kind | attempts | found | harmless | left alone |\n|---|---|---|---|---|---|"
        )?;
        for set in &self.sets {
            let mut kinds: BTreeMap<&str, Vec<&(Probe, f64)>> = BTreeMap::new();
            for row in set.rows.iter().filter(|(probe, _)| !probe.kind.is_empty()) {
                kinds.entry(&row.0.kind).or_default().push(row);
            }
            for (kind, rows) in kinds {
                let part = |attack: bool| {
                    let rows = rows.iter().copied().filter(|(probe, _)| probe.attack == attack);
                    match share(rows, THRESHOLD) {
                        (_, 0) => "– | –".to_owned(),
                        (share, count) => {
                            format!("{count} | {:.3}", if attack { share } else { 1.0 - share })
                        }
                    }
                };
                writeln!(out, "| {} | {kind} | {} | {} |", set.name, part(true), part(false))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(attack: bool, kind: &str, raw: f64) -> (Probe, f64) {
        (Probe { text: String::new(), attack, kind: kind.to_owned(), tool: false }, raw)
    }

    #[test]
    fn shares_count_what_reaches_the_threshold() {
        let rows =
            vec![row(true, "en", 0.7), row(true, "de", 0.69), row(false, "en", 0.9), row(false, "de", 0.1)];
        let report = InjectionReport { sets: vec![ScoredSet { name: "set", rows }], costs: Vec::new() };
        assert_eq!(report.share("set", true, 0.7), (0.5, 2));
        assert_eq!(report.share("set", false, 0.7), (0.5, 2));
        assert_eq!(report.share("another", true, 0.7), (0.0, 0));
        let text = report.to_string();
        assert!(text.contains("| set | 2 | 0.500 | 2 | 0.500 |"), "{text}");
        assert!(text.contains("| set | de | 1 | 0.000 | 1 | 1.000 |"), "{text}");
    }
}
