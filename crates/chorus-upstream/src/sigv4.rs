//! AWS Signature Version 4: a request signed with a key that never leaves the process.
//!
//! It reads no clock: the time is an argument. **Invariant:** the secret is in no header, only what was signed with it.
//! Source: AWS documentation, "Create a signed AWS API request"; test vectors from its `aws-sig-v4-test-suite`.

use http::Uri;
use ring::{digest, hmac};
use std::time::Duration;

/// A key pair, and for temporary ones their token.
#[derive(Clone, PartialEq, Eq)]
pub struct AwsKeys {
    id: String,
    secret: String,
    token: Option<String>,
}

impl AwsKeys {
    /// Reads `ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN]`; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().splitn(3, ':').map(str::trim);
        let (id, secret) = (parts.next()?, parts.next()?);
        let token = parts.next().filter(|token| !token.is_empty()).map(str::to_owned);
        let usable = !id.is_empty() && !secret.is_empty();
        usable.then(|| Self { id: id.to_owned(), secret: secret.to_owned(), token })
    }
}

impl std::fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Signs for one region and service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signer {
    pub(crate) keys: AwsKeys,
    pub(crate) region: String,
    pub(crate) service: &'static str,
}

impl Signer {
    /// The headers that sign a request at `now` (since 1970): date, token, authorization. Only the host and what it adds
    /// itself is signed besides method, path, query and body, so that a header that a proxy adds breaks nothing.
    pub(crate) fn headers(
        &self,
        method: &str,
        uri: &Uri,
        body: &[u8],
        now: Duration,
    ) -> Vec<(&'static str, String)> {
        let stamp = stamp(now.as_secs());
        let host = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        let mut signed = vec![("host", host.to_owned()), ("x-amz-date", stamp.clone())];
        signed.extend(self.keys.token.clone().map(|token| ("x-amz-security-token", token)));
        let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let request = format!(
            "{method}\n{}\n{}\n{lines}\n{names}\n{}",
            canonical_path(uri.path()),
            canonical_query(uri.query().unwrap_or_default()),
            sha256(body),
        );
        let day = stamp.get(..8).unwrap_or_default();
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let to_sign = format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{}", sha256(request.as_bytes()));
        let signature = hex::encode(mac(&self.key(day), to_sign.as_bytes()));
        let id = &self.keys.id;
        let authorization =
            format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}");
        let mut headers: Vec<_> = signed.into_iter().filter(|(name, _)| *name != "host").collect();
        headers.push(("authorization", authorization));
        headers
    }

    fn key(&self, day: &str) -> Vec<u8> {
        let seed = format!("AWS4{}", self.keys.secret).into_bytes();
        [day, &self.region, self.service, "aws4_request"]
            .iter()
            .fold(seed, |key, part| mac(&key, part.as_bytes()).as_ref().to_vec())
    }
}

/// Each segment is encoded once more than it stands in the request. Source: all services but S3.
fn canonical_path(path: &str) -> String {
    let encoded: Vec<String> = path.split('/').map(crate::path::path_segment).collect();
    if path.is_empty() { "/".to_owned() } else { encoded.join("/") }
}

fn canonical_query(query: &str) -> String {
    let mut pairs: Vec<String> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") })
        .collect();
    pairs.sort_unstable();
    pairs.join("&")
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(digest::digest(&digest::SHA256, bytes))
}

fn mac(key: &[u8], text: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text)
}

/// `20150830T123600Z`. Source: Hinnant, "chrono-Compatible Low-Level Date Algorithms" (civil_from_days).
fn stamp(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2015-08-30 12:36:00 UTC, the time of all vectors.
    const THEN: Duration = Duration::from_secs(1_440_938_160);

    fn signer() -> Signer {
        let keys = AwsKeys::parse("AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY").unwrap();
        Signer { keys, region: "us-east-1".to_owned(), service: "service" }
    }

    fn signature(method: &str, uri: &str) -> String {
        let headers = signer().headers(method, &uri.parse().unwrap(), b"", THEN);
        let (_, value) = headers.iter().find(|(name, _)| *name == "authorization").unwrap();
        value.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    /// `get-vanilla`, `post-vanilla` and `get-vanilla-query-order-key-case` of the suite.
    #[test]
    fn published_vectors() {
        let rows = [
            (
                "GET",
                "https://example.amazonaws.com/",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "POST",
                "https://example.amazonaws.com/",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                "GET",
                "https://example.amazonaws.com/?Param2=value2&Param1=value1",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
        ];
        for (method, uri, want) in rows {
            assert_eq!(signature(method, uri), want, "{method} {uri}");
        }
    }

    #[test]
    fn stamps() {
        let rows =
            [(0, "19700101T000000Z"), (951_827_696, "20000229T123456Z"), (1_440_938_160, "20150830T123600Z")];
        for (seconds, want) in rows {
            assert_eq!(stamp(seconds), want);
        }
    }

    #[test]
    fn a_path_is_encoded_twice() {
        assert_eq!(canonical_path("/model/a%3A0/converse"), "/model/a%253A0/converse");
    }

    #[test]
    fn keys_are_read_and_never_printed() {
        let keys = AwsKeys::parse(" A:s3:t:o ").unwrap();
        assert_eq!((keys.secret.as_str(), keys.token.as_deref()), ("s3", Some("t:o")));
        assert_eq!(format!("{keys:?}"), "***");
        assert_eq!(AwsKeys::parse("bedrock-api-key"), None);
    }
}
