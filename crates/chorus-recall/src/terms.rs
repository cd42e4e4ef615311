//! A text as words for lexical comparison.
//!
//! It knows scripts, not languages: there is no stemming and no list of stop words, because rare words decide a ranking
//! by BM25 anyway. **Invariant:** a term is never empty.

/// Words of a text, in lower case, in order; every Han, Kana or Hangul character is a word, and so is every pair of
/// neighbours, because such scripts write no spaces.
#[must_use]
pub fn terms(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut before: Option<char> = None;
    for c in text.chars() {
        if is_dense(c) {
            flush(&mut word, &mut found);
            found.extend(before.map(|before| format!("{before}{c}")));
            found.push(c.to_string());
            before = Some(c);
            continue;
        }
        before = None;
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        } else {
            flush(&mut word, &mut found);
        }
    }
    flush(&mut word, &mut found);
    found
}

/// Words of an identifier such as `get_weather`, `getWeather` or `GET-weather`.
#[must_use]
pub fn identifier_terms(name: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(name.len() + 8);
    let mut was_lower = false;
    for c in name.chars() {
        if was_lower && c.is_uppercase() {
            spaced.push(' ');
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
        spaced.push(c);
    }
    terms(&spaced)
}

/// Share of `wanted` that is among `have`, in 0..=1; 0 where nothing is wanted.
#[must_use]
pub fn share(wanted: &[String], have: &[String]) -> f64 {
    if wanted.is_empty() {
        return 0.0;
    }
    let found = wanted.iter().filter(|term| have.contains(term)).count();
    found as f64 / wanted.len() as f64
}

fn flush(word: &mut String, found: &mut Vec<String>) {
    if !word.is_empty() {
        found.push(std::mem::take(word));
    }
}

fn is_dense(c: char) -> bool {
    matches!(u32::from(c),
        0x3041..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_several_scripts() {
        for (text, want) in [
            ("", ""),
            ("Café, 10 mg!", "café 10 mg"),
            ("don't", "don t"),
            ("東京 tower", "東 東京 京 tower"),
            ("a東b", "a 東 b"),
        ] {
            assert_eq!(terms(text).join(" "), want, "{text}");
        }
    }

    #[test]
    fn identifiers_come_apart() {
        for (name, want) in
            [("get_weather", "get weather"), ("getWeather2Day", "get weather2 day"), ("HTTP-get", "http get")]
        {
            assert_eq!(identifier_terms(name).join(" "), want, "{name}");
        }
    }
}
