//! Where connections lead. It opens none.

use crate::egress::Egress;
use http::Uri;
use http::header::HeaderValue;
use http::uri::Scheme;
use std::sync::Arc;

/// Where connections lead, and by which way: what calls must share to share connections.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// `scheme://host:port`, in lower case.
    pub(crate) origin: String,
    /// The way, where it is not the usual one.
    pub(crate) egress: Option<Arc<Egress>>,
}

impl Place {
    /// Where a URL leads; `None` where it is none.
    pub(crate) fn of(uri: &Uri, egress: Option<Arc<Egress>>) -> Option<Self> {
        let mut origin = format!("{}://{}", uri.scheme_str()?, uri.authority()?);
        origin.make_ascii_lowercase();
        Some(Self { origin, egress })
    }
}

/// The value of `host`: the port is left out where it is the scheme's own.
pub(crate) fn host_of(uri: &Uri) -> Option<HeaderValue> {
    let host = uri.host()?;
    let usual = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    match uri.port_u16().filter(|port| *port != usual) {
        Some(port) => HeaderValue::try_from(format!("{host}:{port}")).ok(),
        None => HeaderValue::from_str(host).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_told_where_it_is_not_the_scheme_s_own() {
        let rows = [
            ("http://h/a", "h", "http://h"),
            ("http://H:80/a", "H", "http://h:80"),
            ("https://h:443", "h", "https://h:443"),
            ("https://h:80", "h:80", "https://h:80"),
            ("http://[::1]:8000/c", "[::1]:8000", "http://[::1]:8000"),
        ];
        for (url, host, origin) in rows {
            let uri: Uri = url.parse().unwrap();
            assert_eq!(host_of(&uri).unwrap(), host);
            assert_eq!(Place::of(&uri, None).unwrap().origin, origin);
        }
        assert!(Place::of(&Uri::from_static("/a"), None).is_none());
    }
}
