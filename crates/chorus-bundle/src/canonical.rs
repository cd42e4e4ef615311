//! Canonical JSON: one text for one value, so that a digest of the text is a digest of the value.
//!
//! Source: RFC 8785 (JCS) over RFC 7493 (I-JSON): UTF-8 without white space, keys by UTF-16 code units, numbers as
//! ECMAScript writes them. It knows no format of ours. **Invariant:** what [`write`] wrote, [`parse`] reads, and
//! writing that again gives the same bytes.

mod read;

use serde_json::{Number, Value};

pub use read::parse;

/// Largest text, in bytes.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Deepest nesting of lists and mappings.
pub const MAX_DEPTH: usize = 128;

/// Why a text or a value has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalFault {
    /// The text is not JSON.
    #[error("byte {at}: {what}")]
    Syntax {
        /// Offset in bytes, from 0.
        at: usize,
        /// What was expected or found.
        what: &'static str,
    },
    /// One mapping has a key twice.
    #[error("byte {at}: the key `{key}` stands twice")]
    DuplicateKey {
        /// Offset of the second one.
        at: usize,
        /// The key.
        key: String,
    },
    /// A whole number that a double would round, or one beyond all doubles.
    #[error("the number {0} does not survive as a double; write it as text")]
    Number(String),
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Longer than [`MAX_BYTES`].
    #[error("longer than {MAX_BYTES} bytes")]
    TooLarge,
}

/// The canonical text of a value.
///
/// # Errors
/// Whole numbers that a double would round, and nesting beyond [`MAX_DEPTH`].
pub fn write(value: &Value) -> Result<Vec<u8>, CanonicalFault> {
    let mut out = String::new();
    put(value, 0, &mut out)?;
    Ok(out.into_bytes())
}

/// The canonical form of JSON text.
///
/// # Errors
/// As [`parse`] and [`write`].
pub fn canonical(text: &[u8]) -> Result<Vec<u8>, CanonicalFault> {
    write(&parse(text)?)
}

fn put(value: &Value, depth: usize, out: &mut String) -> Result<(), CanonicalFault> {
    if depth > MAX_DEPTH {
        return Err(CanonicalFault::TooDeep);
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(ryu_js::Buffer::new().format_finite(double(number)?)),
        Value::String(text) => put_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                put(item, depth + 1, out)?;
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (at, (key, value)) in fields.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                put_text(key, out);
                out.push(':');
                put(value, depth + 1, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

/// The double that the number is.
fn double(number: &Number) -> Result<f64, CanonicalFault> {
    match number.as_i64() {
        Some(_) => whole(&number.to_string()),
        None => number.as_f64().filter(|double| double.is_finite()),
    }
    .ok_or_else(|| CanonicalFault::Number(number.to_string()))
}

/// The double of a whole number, if writing it gives the same digits: no identifier is rounded in silence.
fn whole(text: &str) -> Option<f64> {
    let double = text.parse::<f64>().ok().filter(|double| double.is_finite())?;
    (double == 0.0 || ryu_js::Buffer::new().format_finite(double) == text).then_some(double)
}

fn put_text(text: &str, out: &mut String) {
    use std::fmt::Write as _;
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn form(text: &str) -> String {
        String::from_utf8(canonical(text.as_bytes()).unwrap_or_else(|fault| panic!("{text}: {fault}")))
            .unwrap()
    }

    #[test]
    fn keys_go_by_utf16_and_not_by_code_point() {
        // U+1F600 begins with the unit D83D, which is below U+FB33 although its code point is above.
        let text =
            "{\"\u{fb33}\":1,\"\u{1f600}\":2,\"\u{20ac}\":3,\"\\r\":4,\"1\":5,\"\u{80}\":6,\"\u{f6}\":7}";
        let want =
            "{\"\\r\":4,\"1\":5,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}";
        assert_eq!(form(text), want);
    }

    #[test]
    fn numbers_are_written_as_ecmascript_does() {
        for (text, want) in [
            ("1.0", "1"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("4.50", "4.5"),
            ("2e-3", "0.002"),
            ("1E30", "1e+30"),
            ("1e21", "1e+21"),
            ("1e20", "100000000000000000000"),
            ("1e-6", "0.000001"),
            ("1e-7", "1e-7"),
            ("0.000000000000000000000000001", "1e-27"),
            ("333333333.33333329", "333333333.3333333"),
            ("9007199254740992", "9007199254740992"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("0.72", "0.72"),
        ] {
            assert_eq!(form(text), want, "{text}");
        }
    }

    #[test]
    fn texts_are_escaped_no_more_than_they_must() {
        let text = r#"{"a":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/\ud83d\ude00"}"#;
        assert_eq!(form(text), "{\"a\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\u{1f600}\"}");
        assert_eq!(form(" [ 1 , { } , [ ] , null , true , false ] "), "[1,{},[],null,true,false]");
    }

    #[test]
    fn what_has_no_canonical_form_is_refused() {
        use CanonicalFault::{DuplicateKey, Number, TooDeep};
        for (text, want) in [
            (r#"{"a":1,"\u0061":2}"#, DuplicateKey { at: 7, key: "a".to_owned() }),
            ("9007199254740993", Number("9007199254740993".to_owned())),
            ("1e400", Number("1e400".to_owned())),
        ] {
            assert_eq!(canonical(text.as_bytes()), Err(want), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(canonical(deep.as_bytes()), Err(TooDeep));
        for text in [
            "",
            "NaN",
            "Infinity",
            "01",
            "1.",
            ".5",
            "+1",
            "[1,]",
            "{\"a\":1,}",
            "{a:1}",
            "'a'",
            "[1 2]",
            "1 2",
            "\"\t\"",
            r#""\x""#,
            r#""\ud800""#,
            r#""\udc00\ud800""#,
            r#""\u12""#,
            "\"",
            "tru",
            "{\"a\"}",
            "[",
            "\u{feff}1",
        ] {
            assert!(matches!(canonical(text.as_bytes()), Err(CanonicalFault::Syntax { .. })), "{text}");
        }
        assert!(matches!(canonical(b"\"\xff\""), Err(CanonicalFault::Syntax { .. })));
    }

    fn value() -> impl Strategy<Value = Value> {
        let number = prop_oneof![
            any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(|n| json!(n)),
            any::<i32>().prop_map(|n| json!(n)),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            number,
            any::<String>().prop_map(Value::String)
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                proptest::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    fn reversed(value: &Value) -> Value {
        match value {
            Value::Array(items) => Value::Array(items.iter().map(reversed).collect()),
            Value::Object(fields) => Value::Object(
                fields.iter().rev().map(|(key, value)| (key.clone(), reversed(value))).collect(),
            ),
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn reading_and_writing_again_gives_the_same_bytes(value in value()) {
            let once = write(&value).unwrap();
            prop_assert_eq!(&canonical(&once).unwrap(), &once);
            let pretty = serde_json::to_vec_pretty(&value).unwrap();
            prop_assert_eq!(&canonical(&pretty).unwrap(), &once);
        }

        #[test]
        fn the_order_of_keys_says_nothing(value in value()) {
            prop_assert_eq!(write(&reversed(&value)).unwrap(), write(&value).unwrap());
        }

        #[test]
        fn arbitrary_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = canonical(&bytes);
        }
    }
}
