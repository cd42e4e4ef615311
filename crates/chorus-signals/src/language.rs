//! `language`: the natural language of what the user wrote.
//!
//! *Measures:* the language, as an ISO 639-1 code.
//! *Inputs:* the last user message without its code blocks; of a long one, evenly spaced excerpts.
//! *Cost:* 2, two detectors over at most 256 bytes
//! *Fails when:* the text is a word or two, or mixes languages of one script.
//! *Source:* contract §1.4 (`language`); own measurement, below.
//!
//! The script of most letters (an ideograph or a Hangul syllable weighs three) chooses the stretch of text that is
//! looked at. Two detectors share the work, because neither is good alone: `whichlang` knows 16 languages and hardly errs
//! among them; `whatlang` knows the others, and is believed against it from a confidence of 0.2 (it is not asked about
//! what `whichlang` calls English where two English words say so too: it costs most of the time; and neither is asked about
//! a longer text of which such words are an eighth). Confidence is 0.9
//! when the two agree or only one knows the language's script, 0.6 when one had to give way, and 0.5 for `en` when there
//! is nothing to detect. Measured over `tests/data/language.tsv` (64 short texts, 21 languages): both together 62,
//! whatlang alone 53 (58 when told the 21), whichlang alone 49 (all of its own 49), lingua 64, for 95 MB of binary and 75 MB
//! of memory more. On 42 further texts that no threshold was chosen by (`language_held_out.tsv`): 40.
//! **Invariant:** the rules of a request share one detection.

use crate::doc::SignalDoc;
use crate::english::English;
use crate::text::excerpts;
use chorus_policy::{AbsentReason, Evidence, Observation};
use chorus_spec::{Family, Recipe, SignalKey, SignalKind};
use std::borrow::Cow;
use std::sync::LazyLock;
use whatlang::{Detector, Lang};

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Language,
    measures: "the language, as an ISO 639-1 code.",
    inputs: "the last user message without its code blocks; of a long one, evenly spaced excerpts.",
    cost: 2,
    fails_when: "the text is a word or two, or mixes languages of one script.",
    source: "contract §1.4 (`language`); own measurement, below.",
};

/// Confidence from which `whatlang` is believed for a language that `whichlang` does not know; of the measured texts,
/// the wrong answers stay below 0.18 and the right ones above 0.2.
const BELIEVED: f64 = 0.2;

const AGREED: f64 = 0.9;
const DISPUTED: f64 = 0.6;

/// Source: contract §1.4 (`language`).
const UNDETECTED: Detected = Detected { code: "en", confidence: 0.5 };

/// What of a text the detectors see: 2 excerpts of 128 bytes.
const EXCERPTS: (usize, usize) = (2, 128);

#[derive(Debug, Clone, Copy, PartialEq)]
struct Detected {
    code: &'static str,
    confidence: f64,
}

/// The language of a text as an ISO 639-1 code, apart from any rule; `None` where there is nothing to detect. Of a text of a
/// few words it may be wrong.
#[must_use]
pub fn language_of(text: &str) -> Option<&'static str> {
    static DETECTOR: LazyLock<Languages> = LazyLock::new(|| Languages::prepare(&Recipe::default()));
    Some(DETECTOR.detect(text)).filter(|found| found.confidence >= DISPUTED).map(|found| found.code)
}

/// All language rules of a recipe.
#[derive(Debug)]
pub(crate) struct Languages {
    rules: Vec<Rule>,
    detector: Detector,
}

#[derive(Debug)]
struct Rule {
    key: SignalKey,
    /// `None` when no detector knows the language.
    code: Option<&'static str>,
    threshold: f64,
}

impl Languages {
    pub(crate) fn prepare(recipe: &Recipe) -> Self {
        let rules: Vec<Rule> = recipe
            .signals
            .iter()
            .filter_map(|signal| match &signal.kind {
                SignalKind::Language(language) => Some(Rule {
                    key: SignalKey::new(Family::Language, &signal.name),
                    code: known_code(&signal.name),
                    threshold: language.threshold,
                }),
                _ => None,
            })
            .collect();
        // Fewer languages to choose from is fewer mistakes: the usual ones, and those that the recipe asks for.
        let asked = |code: &str| rules.iter().any(|rule| rule.code == Some(code));
        let allowed = LANGUAGES.iter().filter(|(code, _, usual)| *usual || asked(code));
        let detector = Detector::with_allowlist(allowed.map(|(_, language, _)| *language).collect());
        Self { rules, detector }
    }

    /// What every rule says of a text.
    pub(crate) fn observe(&self, text: &str, evidence: &mut Evidence) {
        let detected = self.detect(text);
        for rule in &self.rules {
            evidence.insert(rule.key.clone(), rule.judge(detected));
        }
    }

    fn detect(&self, text: &str) -> Detected {
        let prose = prose(text);
        let Some(text) = main_script(&prose) else {
            return UNDETECTED;
        };
        let text = excerpts(&text, EXCERPTS.0, EXCERPTS.1).join(" ");
        let english = English::of(&text);
        if english.is_all_of_it() {
            return Detected { code: "en", confidence: AGREED };
        }
        let narrow = whichlang_code(&text);
        if narrow == "en" && english.is_plain() {
            return Detected { code: "en", confidence: AGREED };
        }
        let wide = self.detector.detect(&text);
        let wide = wide.and_then(|info| Some((whatlang_code(info.lang())?, info.confidence())));
        match wide {
            Some((code, _)) if code == narrow => Detected { code, confidence: AGREED },
            Some((code, 1.0)) if !NARROW.contains(&code) => Detected { code, confidence: AGREED },
            Some((code, sure)) if !NARROW.contains(&code) && sure >= BELIEVED => {
                Detected { code, confidence: DISPUTED }
            }
            _ => Detected { code: narrow, confidence: DISPUTED },
        }
    }
}

impl Rule {
    fn judge(&self, detected: Detected) -> Observation {
        match self.code {
            None => Observation::Absent(AbsentReason::Failed(format!(
                "no detector knows the language `{}`",
                self.key.name()
            ))),
            Some(code) if code != detected.code => Observation::Unmatched { raw: Some(0.0) },
            Some(_) => {
                let (confidence, raw) = (detected.confidence, Some(detected.confidence));
                if confidence >= self.threshold {
                    Observation::Matched { confidence, raw }
                } else {
                    Observation::Unmatched { raw }
                }
            }
        }
    }
}

/// The text without fenced blocks and inline code.
fn prose(text: &str) -> Cow<'_, str> {
    if memchr::memchr(b'`', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for part in text.split("```").step_by(2) {
        let pieces: Vec<&str> = part.split('`').collect();
        // An even number of pieces is an odd number of ticks: not code, but somebody's quotation mark.
        let step = if pieces.len() % 2 == 1 { 2 } else { 1 };
        for piece in pieces.iter().step_by(step) {
            out.push_str(piece);
            out.push(' ');
        }
    }
    Cow::Owned(out)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Latin,
    Cyrillic,
    Arabic,
    Devanagari,
    Hangul,
    /// Han and Kana, which Japanese mixes.
    Cjk,
    /// Every script that one language, or a few, have to themselves.
    Other,
}

impl Script {
    const ALL: [Self; 7] =
        [Self::Latin, Self::Cyrillic, Self::Arabic, Self::Devanagari, Self::Hangul, Self::Cjk, Self::Other];

    fn of(c: char) -> Option<Self> {
        if !c.is_alphabetic() {
            return None;
        }
        Some(match u32::from(c) {
            0..=0x024F | 0x1E00..=0x1EFF => Self::Latin,
            0x0400..=0x052F => Self::Cyrillic,
            0x0600..=0x06FF | 0x0750..=0x077F | 0xFB50..=0xFDFF | 0xFE70..=0xFEFF => Self::Arabic,
            0x0900..=0x097F => Self::Devanagari,
            0x1100..=0x11FF | 0x3130..=0x318F | 0xAC00..=0xD7FF => Self::Hangul,
            0x3005..=0x30FF | 0x31F0..=0x31FF | 0x3400..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF => {
                Self::Cjk
            }
            _ => Self::Other,
        })
    }

    /// About how many Latin letters say as much as one of this script.
    fn weight(self) -> usize {
        if matches!(self, Self::Cjk | Self::Hangul) { 3 } else { 1 }
    }
}

/// The text with the letters of minority scripts blanked; `None` without any letter.
fn main_script(text: &str) -> Option<Cow<'_, str>> {
    if text.is_ascii() {
        return text.bytes().any(|b| b.is_ascii_alphabetic()).then_some(Cow::Borrowed(text));
    }
    let mut weights = [0_usize; Script::ALL.len()];
    for script in text.chars().filter_map(Script::of) {
        if let Some(weight) = weights.get_mut(script as usize) {
            *weight += script.weight();
        }
    }
    let (main, weight) = Script::ALL.into_iter().zip(weights).max_by_key(|(_, weight)| *weight)?;
    (weight > 0).then(|| {
        text.chars()
            .map(|c| if Script::of(c).is_none_or(|script| script == main) { c } else { ' ' })
            .collect()
    })
}

/// The primary subtag of a rule's name, if a detector knows it (`pt-BR` is `pt`, `no` is `nb`).
fn known_code(name: &str) -> Option<&'static str> {
    let lower = name.trim().to_lowercase();
    let primary = lower.split(['-', '_']).next()?;
    let primary = if primary == "no" { "nb" } else { primary };
    LANGUAGES.iter().find(|(code, ..)| *code == primary).map(|(code, ..)| *code)
}

fn whatlang_code(language: Lang) -> Option<&'static str> {
    LANGUAGES.iter().find(|(_, known, _)| *known == language).map(|(code, ..)| *code)
}

fn whichlang_code(text: &str) -> &'static str {
    use whichlang::Lang as L;
    match whichlang::detect_language(text) {
        L::Ara => "ar",
        L::Cmn => "zh",
        L::Deu => "de",
        L::Eng => "en",
        L::Fra => "fr",
        L::Hin => "hi",
        L::Ita => "it",
        L::Jpn => "ja",
        L::Kor => "ko",
        L::Nld => "nl",
        L::Por => "pt",
        L::Rus => "ru",
        L::Spa => "es",
        L::Swe => "sv",
        L::Tur => "tr",
        L::Vie => "vi",
    }
}

/// The languages that `whichlang` knows.
const NARROW: [&str; 16] =
    ["ar", "zh", "de", "en", "fr", "hi", "it", "ja", "ko", "nl", "pt", "ru", "es", "sv", "tr", "vi"];

/// Code, language, and whether it is looked for even if no rule asks: the common ones, and those with a script of
/// their own.
const LANGUAGES: &[(&str, Lang, bool)] = &[
    ("en", Lang::Eng, true),
    ("zh", Lang::Cmn, true),
    ("es", Lang::Spa, true),
    ("fr", Lang::Fra, true),
    ("de", Lang::Deu, true),
    ("ja", Lang::Jpn, true),
    ("ko", Lang::Kor, true),
    ("ru", Lang::Rus, true),
    ("pt", Lang::Por, true),
    ("it", Lang::Ita, true),
    ("ar", Lang::Ara, true),
    ("hi", Lang::Hin, true),
    ("nl", Lang::Nld, true),
    ("tr", Lang::Tur, true),
    ("pl", Lang::Pol, true),
    ("vi", Lang::Vie, true),
    ("th", Lang::Tha, true),
    ("id", Lang::Ind, true),
    ("uk", Lang::Ukr, true),
    ("cs", Lang::Ces, true),
    ("sv", Lang::Swe, true),
    ("am", Lang::Amh, true),
    ("bn", Lang::Ben, true),
    ("el", Lang::Ell, true),
    ("gu", Lang::Guj, true),
    ("he", Lang::Heb, true),
    ("hy", Lang::Hye, true),
    ("ka", Lang::Kat, true),
    ("km", Lang::Khm, true),
    ("kn", Lang::Kan, true),
    ("ml", Lang::Mal, true),
    ("my", Lang::Mya, true),
    ("or", Lang::Ori, true),
    ("pa", Lang::Pan, true),
    ("si", Lang::Sin, true),
    ("ta", Lang::Tam, true),
    ("te", Lang::Tel, true),
    ("af", Lang::Afr, false),
    ("ak", Lang::Aka, false),
    ("az", Lang::Aze, false),
    ("be", Lang::Bel, false),
    ("bg", Lang::Bul, false),
    ("ca", Lang::Cat, false),
    ("cy", Lang::Cym, false),
    ("da", Lang::Dan, false),
    ("eo", Lang::Epo, false),
    ("et", Lang::Est, false),
    ("fa", Lang::Pes, false),
    ("fi", Lang::Fin, false),
    ("hr", Lang::Hrv, false),
    ("hu", Lang::Hun, false),
    ("jv", Lang::Jav, false),
    ("la", Lang::Lat, false),
    ("lt", Lang::Lit, false),
    ("lv", Lang::Lav, false),
    ("mk", Lang::Mkd, false),
    ("mr", Lang::Mar, false),
    ("nb", Lang::Nob, false),
    ("ne", Lang::Nep, false),
    ("ro", Lang::Ron, false),
    ("sk", Lang::Slk, false),
    ("sl", Lang::Slv, false),
    ("sn", Lang::Sna, false),
    ("sr", Lang::Srp, false),
    ("tk", Lang::Tuk, false),
    ("tl", Lang::Tgl, false),
    ("ur", Lang::Urd, false),
    ("uz", Lang::Uzb, false),
    ("yi", Lang::Yid, false),
    ("zu", Lang::Zul, false),
];

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_spec::{LanguageSignal, Place, Signal};

    fn languages(names: &[&str]) -> Languages {
        let rule = |name: &&str| Signal {
            name: (*name).to_owned(),
            description: String::new(),
            kind: SignalKind::Language(LanguageSignal { threshold: 0.3 }),
            place: Place::default(),
        };
        Languages::prepare(&Recipe { signals: names.iter().map(rule).collect(), ..Recipe::default() })
    }

    /// Right answers, all texts, and the wrong answers for people.
    fn accuracy(table: &str) -> (usize, usize, Vec<String>) {
        let languages = languages(&[]);
        let mut wrong = Vec::new();
        let rows: Vec<(&str, &str)> = table.lines().filter_map(|line| line.split_once('\t')).collect();
        for (code, text) in &rows {
            let said = languages.detect(text);
            if said.code != *code {
                wrong.push(format!("{code} taken for {}: {text}", said.code));
            }
        }
        (rows.len() - wrong.len(), rows.len(), wrong)
    }

    #[test]
    fn short_texts_in_21_languages() {
        let (right, all, wrong) = accuracy(include_str!("../tests/data/language.tsv"));
        assert!(right >= 62 && all == 64, "{right} of {all}: {wrong:#?}");
        let (right, all, wrong) = accuracy(include_str!("../tests/data/language_held_out.tsv"));
        assert!(right >= 40 && all == 42, "{right} of {all}: {wrong:#?}");
    }

    #[test]
    fn code_and_minority_scripts_do_not_count() {
        let languages = languages(&[]);
        for (text, want) in [
            ("请解释 mutex 和 semaphore 的区别", "zh"),
            ("Translate 你好 to English, and explain it", "en"),
            (
                "Warum läuft das nicht?\n```rust\nfn main() { let the_value = compute_the_value(); }\n```",
                "de",
            ),
            ("このコードは `return value` で失敗します", "ja"),
            ("Ποια είναι η πρωτεύουσα;", "el"),
        ] {
            assert_eq!(languages.detect(text).code, want, "{text}");
        }
        for nothing in ["", "12 + 3 = ?", "```\nlet x = 1;\n```"] {
            assert_eq!(languages.detect(nothing), UNDETECTED, "{nothing}");
        }
    }

    #[test]
    fn rules_share_one_detection() {
        let mut evidence = Evidence::default();
        languages(&["de", "en", "pt-BR", "tlh"])
            .observe("Welche Fristen gelten bei einer Kündigung?", &mut evidence);
        let of = |name: &str| evidence.get(&SignalKey::new(Family::Language, name)).cloned().unwrap();
        assert_eq!(of("de"), Observation::Matched { confidence: AGREED, raw: Some(AGREED) });
        assert_eq!(of("en"), Observation::Unmatched { raw: Some(0.0) });
        assert_eq!(of("pt-BR"), Observation::Unmatched { raw: Some(0.0) });
        assert!(matches!(of("tlh"), Observation::Absent(AbsentReason::Failed(_))));
    }
}
