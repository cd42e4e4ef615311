//! Ways to reach a person or a machine: mail and network.
//!
//! It knows forms and the words beside them. **Invariant:** an address of this machine or of no machine (loopback,
//! unspecified, broadcast) is never found.

use super::context::{Context, floor, is_unspaced};
use super::entity::Entity;
use super::mask::ends;
use super::span::Span;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Longest local part of a mail address in bytes. Source: RFC 5321, §4.5.3.1.1.
const LOCAL: usize = 64;
/// Longest host name in bytes. Source: RFC 1035, §2.3.4.
const HOST: usize = 253;
/// Longest web address that is followed to its end, in bytes.
const URL: usize = 2048;
/// Longest text form of an IP address in bytes. Source: RFC 4291, §2.2, form 3.
const IP: usize = 45;

/// Endings of host names with three letters or more that are in common use; those of two are countries'.
const ENDINGS: &[&str] = &[
    "com",
    "org",
    "net",
    "edu",
    "gov",
    "mil",
    "int",
    "info",
    "biz",
    "name",
    "pro",
    "app",
    "dev",
    "cloud",
    "online",
    "shop",
    "store",
    "tech",
    "site",
    "xyz",
    "club",
    "email",
    "agency",
    "company",
    "systems",
    "solutions",
    "health",
    "bank",
    "law",
    "test",
    "example",
    "local",
    "corp",
    "internal",
    "museum",
    "mobi",
    "travel",
    "jobs",
    "aero",
    "coop",
    "live",
    "news",
    "world",
    "life",
    "group",
    "team",
    "digital",
    "network",
    "studio",
    "design",
    "media",
    "blog",
];

/// Endings that are kinds of files.
const FILES: &[&str] = &[
    "png", "jpg", "jpeg", "gif", "svg", "webp", "pdf", "txt", "csv", "json", "yaml", "yml", "toml", "html",
    "css", "lock", "exe", "dll", "tar", "zip", "log", "tmp", "bak", "conf", "ini", "service", "timer",
    "socket",
];

/// A mail address around an `@`.
pub(super) fn email(text: &str, at: usize) -> Option<Span> {
    let local = |c: char| c.is_alphanumeric() && !is_unspaced(c) || "!#$%&'*+/=?^_`{|}~.-".contains(c);
    let before = text.get(floor(text, at.saturating_sub(LOCAL))..at)?;
    let start = at - before.chars().rev().take_while(|c| local(*c)).map(char::len_utf8).sum::<usize>();
    let name = text.get(start..at)?.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '_');
    let start = at - name.len();
    let length = host_length(text.get(at + 1..)?);
    let host = text.get(at + 1..at + 1 + length)?;
    let ending = host.rsplit('.').next().filter(|_| host.contains('.'))?.to_lowercase();
    let remote = name == "git" && text.get(at + 1 + length..)?.starts_with(':');
    let letters = ending.len() >= 2 && ending.chars().all(|c| c.is_ascii_alphabetic());
    if name.is_empty() || name.ends_with('.') || remote || !letters || FILES.contains(&ending.as_str()) {
        return None;
    }
    let score = if ending.len() == 2 || ENDINGS.contains(&ending.as_str()) { 0.98 } else { 0.6 };
    Some(Span { entity: Entity::EmailAddress, bytes: start..at + 1 + length, score, recogniser: "email" })
}

/// Bytes of the host name at the beginning of a text, without a closing full stop or hyphen.
fn host_length(text: &str) -> usize {
    let host = |c: char| (c.is_alphanumeric() && !is_unspaced(c)) || c == '.' || c == '-';
    let end = text.char_indices().take_while(|(at, c)| *at < HOST && host(*c)).last();
    let taken = text.get(..end.map_or(0, |(at, c)| at + c.len_utf8())).unwrap_or_default();
    let taken = taken.split("..").next().unwrap_or_default();
    taken.trim_end_matches(['.', '-']).len()
}

/// What a web address around a `://` holds: the address, and a password written into it.
pub(super) fn url(text: &str, colon: usize) -> Vec<Span> {
    let scheme = text.get(floor(text, colon.saturating_sub(16))..colon).unwrap_or_default();
    let scheme = scheme.bytes().rev().take_while(|b| b.is_ascii_alphanumeric() || *b == b'+').count();
    let start = colon - scheme;
    let rest = text.get(colon + 3..).unwrap_or_default();
    let ends_it = |c: char| c.is_whitespace() || "\"'<>`|\\^{}".contains(c) || is_unspaced(c);
    let length = rest.char_indices().take_while(|(at, c)| *at < URL && !ends_it(*c)).last();
    let length = length.map_or(0, |(at, c)| at + c.len_utf8());
    let address =
        rest.get(..length).unwrap_or_default().trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']']);
    let mut found = Vec::new();
    if scheme == 0 || address.is_empty() {
        return found;
    }
    let authority = address.split(['/', '?', '#']).next().unwrap_or_default();
    let whole = start..colon + 3 + address.len();
    if let Some((user, host)) =
        authority.rsplit_once('@').and_then(|(login, host)| Some((login.split_once(':')?, host)))
        && !host.is_empty()
        && is_password(user.1)
    {
        let end = colon + 3 + user.0.len() + 1 + user.1.len();
        found.push(Span {
            entity: Entity::Password,
            bytes: start..end,
            score: 0.99,
            recogniser: "url_password",
        });
    }
    let host = authority.rsplit('@').next().unwrap_or_default();
    let name = host.split(':').next().unwrap_or_default();
    if name.contains('.') && name.parse::<Ipv4Addr>().is_err() {
        found.push(Span { entity: Entity::DomainName, bytes: whole, score: 0.6, recogniser: "url" });
    }
    found
}

/// Not empty, and not a place to write one.
fn is_password(text: &str) -> bool {
    let lower = text.to_lowercase();
    let placeholder =
        ["password", "pass", "passwd", "pwd", "secret", "xxx", "token", "port"].contains(&lower.as_str());
    text.len() >= 3 && !placeholder && !text.starts_with(['$', '<', '{', '%', '*', '['])
}

/// A host name that begins here without a scheme.
pub(super) fn host(text: &str, start: usize) -> Option<Span> {
    let rest = text.get(start..)?;
    if !rest.get(..4)?.eq_ignore_ascii_case("www.") {
        return None;
    }
    let length = host_length(rest);
    let parts = rest.get(..length)?.split('.').filter(|part| !part.is_empty()).count();
    let bytes = start..start + length;
    (parts >= 3).then_some(Span { entity: Entity::DomainName, bytes, score: 0.6, recogniser: "host" })
}

/// An IP address that begins here.
pub(super) fn ip(text: &str, start: usize) -> Option<Span> {
    let rest = text.get(start..)?;
    let letters = |b: &u8| b.is_ascii_hexdigit() || matches!(b, b'.' | b':');
    let length = rest.bytes().take(IP + 1).take_while(letters).count();
    let address = rest.get(..length)?.trim_end_matches('.');
    let address = if address.ends_with("::") { address } else { address.trim_end_matches(':') };
    // A port may follow version 4.
    let address = if address.contains('.') { address.split(':').next()? } else { address };
    let end = start + address.len();
    let score = match (address.parse::<Ipv4Addr>(), address.parse::<Ipv6Addr>()) {
        (Ok(v4), _) => version_4(v4, &Context::of(text, start, end))?,
        (_, Ok(v6)) if !v6.is_loopback() && !v6.is_unspecified() && address.len() >= 6 => version_6(v6),
        _ => return None,
    };
    let rest = text.get(end..)?;
    let whole = ends(text, end) && !rest.starts_with("::");
    // With a prefix length it is a network.
    let network = rest.strip_prefix('/').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let score = if network { score.min(0.5) } else { score };
    whole.then_some(Span { entity: Entity::IpAddress, bytes: start..end, score, recogniser: "ip" })
}

/// Private addresses say little of a person; four small numbers may also be a version.
fn version_4(address: Ipv4Addr, around: &Context) -> Option<f64> {
    let [first, ..] = address.octets();
    let nobody = address.is_loopback() || address.is_unspecified() || address.is_broadcast() || first == 0;
    if nobody
        || around.precedes(&["version", "versions", "v", "release", "build", "firmware", "driver", "section"])
    {
        return None;
    }
    let inside = address.is_private() || address.is_link_local() || address.is_multicast();
    let named = around.precedes(&["ip", "ips", "ipv4", "address", "host", "server", "client"]);
    let small = address.octets().iter().all(|octet| *octet < 20) && !named;
    Some(if inside || small { 0.6 } else { 0.95 })
}

fn version_6(address: Ipv6Addr) -> f64 {
    let local = address.is_unicast_link_local() || address.is_unique_local() || address.is_multicast();
    if local { 0.6 } else { 0.95 }
}

/// A hardware address that begins here.
pub(super) fn mac(text: &str, start: usize) -> Option<Span> {
    let bytes = text.get(start..start + 17)?.as_bytes();
    let separator = *bytes.get(2)?;
    let fits = matches!(separator, b':' | b'-')
        && bytes
            .iter()
            .enumerate()
            .all(|(at, b)| if at % 3 == 2 { *b == separator } else { b.is_ascii_hexdigit() });
    let hex: Vec<u8> = bytes.iter().filter(|b| b.is_ascii_hexdigit()).map(u8::to_ascii_lowercase).collect();
    let nobody = hex.iter().all(|b| *b == b'0') || hex.iter().all(|b| *b == b'f');
    let alone = ends(text, start + 17)
        && !text.get(start + 17..)?.starts_with(':')
        && !text.get(..start)?.ends_with([':', '-']);
    let bytes = start..start + 17;
    (fits && !nobody && alone).then_some(Span {
        entity: Entity::MacAddress,
        bytes,
        score: 0.9,
        recogniser: "mac",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, mark: char, find: fn(&str, usize) -> Option<Span>) -> Option<(String, f64)> {
        let span = find(text, text.find(mark).unwrap())?;
        Some((text[span.bytes].to_owned(), span.score))
    }

    #[test]
    fn mail_addresses() {
        for (text, want) in [
            ("write to ada@example.com.", Some(("ada@example.com", 0.98))),
            ("<o'neil+x@mail.co.uk>", Some(("o'neil+x@mail.co.uk", 0.98))),
            ("邮箱：li@example.cn，谢谢", Some(("li@example.cn", 0.98))),
            ("clone git@github.com:a/b", None),
            ("logo@2x.png", None),
            ("serde@1.0.2", None),
            ("user@host", None),
            ("@me.com", None),
        ] {
            let want = want.map(|(text, score)| (text.to_owned(), score));
            assert_eq!(at(text, '@', email), want, "{text}");
        }
    }

    #[test]
    fn passwords_in_addresses() {
        let kinds = |text: &str| {
            url(text, text.find("://").unwrap()).iter().map(|span| span.recogniser).collect::<Vec<_>>()
        };
        assert_eq!(kinds("postgres://app:s3cr7t@db.example.com/x"), ["url_password", "url"]);
        assert_eq!(kinds("postgres://app:${PASS}@db/x"), [""; 0]);
        assert_eq!(kinds("https://example.com/a?b=c@d:e"), ["url"]);
        assert_eq!(kinds("http://localhost:8080/"), [""; 0]);
    }

    #[test]
    fn e04_versions_and_loopback_are_no_addresses() {
        let ip_of = |text: &str| at(text, '#', |text, at| ip(text, at + 1));
        for (text, score) in [
            ("#203.0.113.9", Some(0.95)),
            ("the IP #8.8.8.8", Some(0.95)),
            ("#203.0.113.0/24", Some(0.5)),
            ("#2001:db8::/32", Some(0.5)),
            ("#8.8.8.8", Some(0.6)),
            ("#86.121.97.248:443", Some(0.95)),
            ("#192.168.1.20", Some(0.6)),
            ("#127.0.0.1", None),
            ("version #9.8.7.6", None),
            ("#1.2.3.4.5", None),
            ("#999.1.1.1", None),
            ("#6e40:4041:c617:e898:c11:40d2:c669:2eb4", Some(0.95)),
            ("#::1", None),
        ] {
            assert_eq!(ip_of(text).map(|found| found.1), score, "{text}");
        }
    }
}
