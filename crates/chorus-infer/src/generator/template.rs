//! The chat template of a model file: turns in, prompt out.
//!
//! Templates are Jinja programs written for Python; the shims here give them the few Python things that they use. It
//! knows no tokens. Invariant: what a template renders is exactly what its authors' own tool renders, the default
//! system prompt included.

use std::time::{SystemTime, UNIX_EPOCH};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value};
use minijinja::{Environment, Error, ErrorKind, context};
use serde::Serialize;
use serde_json::ser::Formatter;

use super::ask::ChatTurn;
use super::fault::GenerateFault;

const NAME: &str = "chat";

/// A compiled chat template.
#[derive(Debug)]
pub(super) struct ChatTemplate {
    environment: Environment<'static>,
    bos: String,
    eos: String,
    supports_tools: bool,
}

#[derive(Serialize)]
struct TurnView<'a> {
    role: &'a str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<&'a serde_json::Value>,
}

impl<'a> TurnView<'a> {
    fn of(turn: &'a ChatTurn) -> Self {
        Self { role: &turn.role, content: &turn.content, tool_calls: turn.tool_calls.as_ref() }
    }
}

impl ChatTemplate {
    /// Compiles a template.
    ///
    /// # Errors
    /// [`GenerateFault::Template`] with the template engine's words.
    pub(super) fn compile(source: &str, bos: &str, eos: &str) -> Result<Self, GenerateFault> {
        let mut environment = Environment::new();
        // Source: `apply_chat_template` of transformers sets both.
        environment.set_syntax(
            SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(fault)?,
        );
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", refuse);
        environment.add_function("strftime_now", |format: &str| strftime(format, SystemTime::now()));
        environment.add_filter("tojson", python_json);
        environment.add_template_owned(NAME, source.to_owned()).map_err(fault)?;
        let names = environment.get_template(NAME).map_err(fault)?.undeclared_variables(false);
        let supports_tools = names.contains("tools");
        Ok(Self { environment, bos: bos.to_owned(), eos: eos.to_owned(), supports_tools })
    }

    /// Whether the template reads `tools`.
    pub(super) fn supports_tools(&self) -> bool {
        self.supports_tools
    }

    /// Renders a conversation, open for the assistant's turn.
    ///
    /// # Errors
    /// [`GenerateFault::Template`] if the template refuses it.
    pub(super) fn render(
        &self,
        turns: &[ChatTurn],
        tools: Option<&serde_json::Value>,
    ) -> Result<String, GenerateFault> {
        let messages: Vec<_> = turns.iter().map(TurnView::of).collect();
        let template = self.environment.get_template(NAME).map_err(fault)?;
        let variables = context! {
            messages => Value::from(Serde(messages)),
            tools => Value::from(Serde(tools)),
            add_generation_prompt => true,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
        };
        template.render(variables).map_err(fault)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn fault(fault: Error) -> GenerateFault {
    GenerateFault::Template(fault.detail().map_or_else(|| fault.to_string(), str::to_owned))
}

fn refuse(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// JSON as Python's `json.dumps` writes it: a blank after `,` and `:`, letters of every script as they are.
#[expect(clippy::needless_pass_by_value, reason = "the signature that the template engine calls")]
fn python_json(value: Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let _: Option<bool> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    let mut out = Vec::new();
    let written = match indent {
        Some(width) => {
            let blanks = vec![b' '; width];
            let pretty = serde_json::ser::PrettyFormatter::with_indent(&blanks);
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, pretty))
        }
        None => value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, PythonFormatter)),
    };
    written.map_err(|fault| Error::new(ErrorKind::BadSerialization, fault.to_string()))?;
    Ok(Value::from_safe_string(String::from_utf8_lossy(&out).into_owned()))
}

struct PythonFormatter;

impl Formatter for PythonFormatter {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        out.write_all(b": ")
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The few `strftime` codes that chat templates use, in UTC.
fn strftime(format: &str, now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil_date(seconds / 86_400);
    let name = MONTHS.get(month - 1).copied().unwrap_or_default();
    let of_day = seconds % 86_400;
    format
        .replace("%Y", &year.to_string())
        .replace("%m", &format!("{month:02}"))
        .replace("%d", &format!("{day:02}"))
        .replace("%B", name)
        .replace("%b", name.get(..3).unwrap_or(name))
        .replace("%H", &format!("{:02}", of_day / 3600))
        .replace("%M", &format!("{:02}", of_day / 60 % 60))
        .replace("%S", &format!("{:02}", of_day % 60))
}

/// Year, month and day of the so many-th day after 1 January 1970.
///
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn civil_date(days: u64) -> (u64, usize, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), usize::try_from(month).unwrap_or(1), day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    const CHATML: &str = "{% for message in messages %}\
        {% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nBe kind<|im_end|>\n' }}{% endif %}\
        {{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}\
        {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

    fn render(
        source: &str,
        turns: &[ChatTurn],
        tools: Option<&serde_json::Value>,
    ) -> Result<String, GenerateFault> {
        ChatTemplate::compile(source, "<s>", "</s>")?.render(turns, tools)
    }

    #[test]
    fn the_default_system_prompt_survives() {
        let prompt = render(CHATML, &[ChatTurn::new("user", "Hi <b>")], None).unwrap();
        assert_eq!(
            prompt,
            "<|im_start|>system\nBe kind<|im_end|>\n<|im_start|>user\nHi <b><|im_end|>\n<|im_start|>assistant\n"
        );
        let own = [ChatTurn::new("system", "Be short"), ChatTurn::new("user", "Hi")];
        assert!(!render(CHATML, &own, None).unwrap().contains("Be kind"));
    }

    #[test]
    fn tools_are_written_as_python_writes_json() {
        let source = "{% if tools %}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{% endif %}";
        let tools =
            json!([{"type": "function", "function": {"name": "größe<", "arguments": [1, true, null]}}]);
        let prompt = render(source, &[], Some(&tools)).unwrap();
        let expected =
            r#"{"type": "function", "function": {"name": "größe<", "arguments": [1, true, null]}}"#;
        assert_eq!(prompt, expected);
        assert!(ChatTemplate::compile(source, "", "").unwrap().supports_tools());
        assert!(!ChatTemplate::compile(CHATML, "", "").unwrap().supports_tools());
    }

    #[test]
    fn a_template_may_refuse_and_may_use_python_methods() {
        let source = "{% if messages[0].role == 'system' %}{{ raise_exception('no system turns') }}{% endif %}\
                      {{ messages[0].content.strip().split('x')[0] }}{{ bos_token }}";
        let refused = render(source, &[ChatTurn::new("system", "s")], None);
        assert_eq!(refused, Err(GenerateFault::Template("no system turns".to_owned())));
        assert_eq!(render(source, &[ChatTurn::new("user", "  axb ")], None).unwrap(), "a<s>");
    }

    #[test]
    fn dates_are_written_in_utc() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(strftime("%d %b %Y", at(0)), "01 Jan 1970");
        assert_eq!(strftime("%Y-%m-%d %H:%M:%S", at(1_709_210_096)), "2024-02-29 12:34:56");
        assert_eq!(strftime("%B", at(1_735_689_599)), "December");
    }
}
