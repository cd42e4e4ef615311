//! A strict reader of JSON: what I-JSON forbids is refused, not mended.
//!
//! A reader of our own because the usual ones take the last of two equal keys and round some numbers. **Invariant:**
//! depth and length are bounded before anything recurses.

use super::{CanonicalFault, MAX_BYTES, MAX_DEPTH};
use serde_json::{Map, Number, Value};

/// Reads one JSON value.
///
/// # Errors
/// What is not JSON in UTF-8, keys that stand twice, lone surrogates, numbers beyond a double, and bounds passed.
pub fn parse(text: &[u8]) -> Result<Value, CanonicalFault> {
    if text.len() > MAX_BYTES {
        return Err(CanonicalFault::TooLarge);
    }
    let text = std::str::from_utf8(text)
        .map_err(|fault| CanonicalFault::Syntax { at: fault.valid_up_to(), what: "not UTF-8" })?;
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.skip_space();
    if reader.at < text.len() {
        return Err(reader.fault("something follows the value"));
    }
    Ok(value)
}

/// Below this, a double holds every whole number.
const EXACT: u64 = 1 << 53;

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn fault(&self, what: &'static str) -> CanonicalFault {
        CanonicalFault::Syntax { at: self.at, what }
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// Goes past the token if it stands here.
    fn take(&mut self, token: &str) -> bool {
        let is_here = self.rest().starts_with(token);
        if is_here {
            self.at += token.len();
        }
        is_here
    }

    fn value(&mut self, depth: usize) -> Result<Value, CanonicalFault> {
        if depth > MAX_DEPTH {
            return Err(CanonicalFault::TooDeep);
        }
        self.skip_space();
        match self.rest().bytes().next() {
            Some(b'{') => self.map(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ if self.take("null") => Ok(Value::Null),
            _ if self.take("true") => Ok(Value::Bool(true)),
            _ if self.take("false") => Ok(Value::Bool(false)),
            _ => Err(self.fault("expected a value")),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, CanonicalFault> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.take("]") {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.take("]") {
                return Ok(Value::Array(items));
            }
            if !self.take(",") {
                return Err(self.fault("expected `,` or `]`"));
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, CanonicalFault> {
        self.at += 1;
        let mut fields = Map::new();
        self.skip_space();
        if self.take("}") {
            return Ok(Value::Object(fields));
        }
        loop {
            self.skip_space();
            let at = self.at;
            let key = self.string()?;
            self.skip_space();
            if !self.take(":") {
                return Err(self.fault("expected `:`"));
            }
            let value = self.value(depth + 1)?;
            if fields.contains_key(&key) {
                return Err(CanonicalFault::DuplicateKey { at, key });
            }
            fields.insert(key, value);
            self.skip_space();
            if self.take("}") {
                return Ok(Value::Object(fields));
            }
            if !self.take(",") {
                return Err(self.fault("expected `,` or `}`"));
            }
        }
    }

    fn string(&mut self) -> Result<String, CanonicalFault> {
        if !self.take("\"") {
            return Err(self.fault("expected a text in quotes"));
        }
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let run = rest.find(|c| c == '"' || c == '\\' || c < ' ').unwrap_or(rest.len());
            out.push_str(rest.get(..run).unwrap_or_default());
            self.at += run;
            if self.take("\"") {
                return Ok(out);
            }
            if !self.take("\\") {
                return Err(self.fault("a text ends with `\"` and holds no bare control character"));
            }
            out.push(self.escaped()?);
        }
    }

    fn escaped(&mut self) -> Result<char, CanonicalFault> {
        const SIMPLE: [(&str, char); 8] = [
            ("\"", '"'),
            ("\\", '\\'),
            ("/", '/'),
            ("b", '\u{8}'),
            ("f", '\u{c}'),
            ("n", '\n'),
            ("r", '\r'),
            ("t", '\t'),
        ];
        if let Some((_, c)) = SIMPLE.into_iter().find(|(token, _)| self.take(token)) {
            return Ok(c);
        }
        let mut units = vec![self.unit()?];
        if units.first().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) && self.take("\\") {
            units.push(self.unit()?);
        }
        let text = String::from_utf16(&units).map_err(|_| self.fault("half a surrogate pair"))?;
        text.chars().next().ok_or_else(|| self.fault("an escape stands for nothing"))
    }

    fn unit(&mut self) -> Result<u16, CanonicalFault> {
        if !self.take("u") {
            return Err(self.fault("an escape that JSON does not have"));
        }
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let unit = unit.ok_or_else(|| self.fault("expected four hexadecimal digits"))?;
        self.at += 4;
        Ok(unit)
    }

    fn digits(&mut self) -> Result<(), CanonicalFault> {
        let rest = self.rest();
        let count = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        self.at += count;
        if count == 0 { Err(self.fault("expected a digit")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Value, CanonicalFault> {
        let start = self.at;
        let _ = self.take("-");
        if !self.take("0") {
            self.digits()?;
        } else if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.fault("a number does not begin with 0"));
        }
        let mut is_whole = true;
        if self.take(".") {
            self.digits()?;
            is_whole = false;
        }
        if self.take("e") || self.take("E") {
            let _ = self.take("+") || self.take("-");
            self.digits()?;
            is_whole = false;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        let refused = || CanonicalFault::Number(text.to_owned());
        if is_whole {
            let double = super::whole(text).ok_or_else(refused)?;
            let small = text.parse::<i64>().ok().filter(|whole| whole.unsigned_abs() < EXACT);
            return small
                .map(Number::from)
                .or_else(|| Number::from_f64(double))
                .map(Value::Number)
                .ok_or_else(refused);
        }
        let double = text.parse::<f64>().map_err(|_| refused())?;
        Number::from_f64(double).map(Value::Number).ok_or_else(refused)
    }
}
