//! What single OpenAI-compatible servers refuse of the API, as flags of a deployment.
//!
//! It knows no server by name: an operator says what a deployment needs. **Invariant:** without a flag a body goes up
//! byte for byte as it came.

use crate::UpstreamFault;
use bytes::Bytes;
use chorus_wire::RawObject;
use serde_json::value::RawValue;

/// What a deployment cannot read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Quirks {
    /// It refuses `stream_options`; usage of streams is then estimated.
    pub no_stream_options: bool,
    /// It knows `max_tokens` only.
    pub max_tokens: bool,
    /// It knows `max_completion_tokens` only.
    pub max_completion_tokens: bool,
    /// It refuses the role `developer`; such messages go up as `system` (case B01).
    pub no_developer_role: bool,
    /// It refuses `parallel_tool_calls`.
    pub no_parallel_tool_calls: bool,
}

impl Quirks {
    /// The body as this deployment can read it.
    ///
    /// # Errors
    /// [`UpstreamFault::Untranslatable`] when the body is no object.
    pub(crate) fn apply(self, body: Bytes) -> Result<Bytes, UpstreamFault> {
        if self == Self::default() {
            return Ok(body);
        }
        let mut object = RawObject::parse(&body).map_err(UpstreamFault::untranslatable)?;
        if self.no_stream_options {
            object.remove("stream_options");
        }
        if self.no_parallel_tool_calls {
            object.remove("parallel_tool_calls");
        }
        if self.max_tokens {
            one_cap(&mut object, "max_completion_tokens", "max_tokens")?;
        } else if self.max_completion_tokens {
            one_cap(&mut object, "max_tokens", "max_completion_tokens")?;
        }
        if self.no_developer_role {
            developer_to_system(&mut object)?;
        }
        Ok(object.to_bytes().into())
    }
}

/// Moves a cap to the name that is known, keeping the smaller where both are given (case B11).
fn one_cap(object: &mut RawObject, from: &str, to: &str) -> Result<(), UpstreamFault> {
    let given = object.read::<Option<u64>>(from).map_err(UpstreamFault::untranslatable)?.flatten();
    object.remove(from);
    let Some(given) = given else { return Ok(()) };
    let known = object.read::<Option<u64>>(to).map_err(UpstreamFault::untranslatable)?.flatten();
    let cap = known.map_or(given, |known| known.min(given));
    object.write(to, &cap).map_err(UpstreamFault::untranslatable)
}

fn developer_to_system(object: &mut RawObject) -> Result<(), UpstreamFault> {
    let messages: Option<Vec<Box<RawValue>>> =
        object.read("messages").map_err(UpstreamFault::untranslatable)?;
    let Some(mut messages) = messages else { return Ok(()) };
    for message in &mut messages {
        let mut it = RawObject::parse(message.get().as_bytes()).map_err(UpstreamFault::untranslatable)?;
        if it.read::<String>("role").ok().flatten().as_deref() == Some("developer") {
            it.write("role", &"system").map_err(UpstreamFault::untranslatable)?;
            let text = String::from_utf8(it.to_bytes()).map_err(UpstreamFault::untranslatable)?;
            *message = RawValue::from_string(text).map_err(UpstreamFault::untranslatable)?;
        }
    }
    object.write("messages", &messages).map_err(UpstreamFault::untranslatable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(quirks: Quirks, body: &'static str) -> String {
        String::from_utf8(quirks.apply(Bytes::from_static(body.as_bytes())).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn without_a_flag_nothing_changes() {
        let body = r#"{ "stream_options":{"include_usage":true}, "temperature":1.50 }"#;
        assert_eq!(applied(Quirks::default(), body), body);
    }

    #[test]
    fn b01_a_developer_message_goes_up_as_system() {
        let body =
            r#"{"messages":[{"role":"developer","content":"Be brief"},{"role":"user","content":"x"}]}"#;
        let quirks = Quirks { no_developer_role: true, ..Quirks::default() };
        assert_eq!(
            applied(quirks, body),
            r#"{"messages":[{"role":"system","content":"Be brief"},{"role":"user","content":"x"}]}"#
        );
    }

    #[test]
    fn b11_the_smaller_cap_goes_up_under_the_name_that_is_known() {
        let both = r#"{"max_tokens":50,"max_completion_tokens":40}"#;
        let old = Quirks { max_tokens: true, ..Quirks::default() };
        let new = Quirks { max_completion_tokens: true, ..Quirks::default() };
        assert_eq!(applied(old, both), r#"{"max_tokens":40}"#);
        assert_eq!(applied(new, both), r#"{"max_completion_tokens":40}"#);
        assert_eq!(applied(old, r#"{"max_completion_tokens":7}"#), r#"{"max_tokens":7}"#);
        assert_eq!(applied(new, r#"{"n":1}"#), r#"{"n":1}"#);
    }

    #[test]
    fn refused_options_are_left_out() {
        let quirks = Quirks { no_stream_options: true, no_parallel_tool_calls: true, ..Quirks::default() };
        let body = r#"{"stream_options":{"include_usage":true},"parallel_tool_calls":false,"seed":0}"#;
        assert_eq!(applied(quirks, body), r#"{"seed":0}"#);
    }
}
