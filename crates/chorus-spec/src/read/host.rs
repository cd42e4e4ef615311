//! The host of a server whose address is given by its parts.
//!
//! **Invariant:** what is read holds no scheme, no port, no path and no credentials, and can stand before a port as it is: an
//! IPv6 address has its brackets.

use super::cursor::Cursor;
use crate::diagnostic::code;
use std::net::Ipv6Addr;

/// The host under `host`, or this machine; `others` names the keys of what people write into it instead.
pub(super) fn host(at: Option<&Cursor<'_>>, others: &str) -> String {
    at.and_then(|at| named(at, others)).unwrap_or_else(|| "localhost".to_owned())
}

fn named(at: &Cursor<'_>, others: &str) -> Option<String> {
    let text = at.string("host").filter(|text| !text.is_empty())?;
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<Ipv6Addr>().is_ok() {
        return Some(format!("[{bare}]"));
    }
    if bare.contains(['/', '@', ' ', ':', '?', '#']) {
        let help = format!("write the host alone; {others} are keys of their own");
        at.get("host")?.error_help(code::BAD_VALUE, "this is not a host", help);
        return None;
    }
    Some(bare.to_owned())
}

#[cfg(test)]
mod tests {
    use crate::{Checked, code, read};

    fn of(host: &str) -> Checked {
        read(&format!(
            "version: v0.3\nglobal: {{ stores: {{ vector_store: {{ enabled: true, backend_type: qdrant, \
             qdrant: {{ host: '{host}' }} }} }} }}\n"
        ))
    }

    #[test]
    fn a_host_stands_alone_and_an_ipv6_address_in_brackets() {
        for (written, read) in [("q.internal", "q.internal"), ("::1", "[::1]"), ("[::1]", "[::1]")] {
            let shown = format!("{:?}", of(written));
            assert!(shown.contains(&format!("host: \"{read}\"")), "{shown}");
        }
        for wrong in ["http://h", "h:1", "u@h", "a b", "h/x", "h?x", "h#x"] {
            let checked = of(wrong);
            let found = checked.diagnostics.iter().find(|it| it.message == "this is not a host");
            assert_eq!(found.map(|it| it.code), Some(code::BAD_VALUE), "{wrong}");
        }
    }
}
