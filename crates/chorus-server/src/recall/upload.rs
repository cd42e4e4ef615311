//! A file as a browser or a client library sends it: `multipart/form-data`.
//!
//! Source: RFC 7578; OpenAI API description, `CreateFileRequest`.

use super::refused::{Refused, bad, unreadable};
use bytes::Bytes;
use futures_util::stream;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use multer::{Constraints, Multipart, SizeLimit};
use std::convert::Infallible;

/// Longest name of a file, in characters.
const NAME_MOST: usize = 255;
/// Longest value of a field that is no file, in bytes.
const FIELD_MOST: u64 = 4096;

/// What was uploaded.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) name: String,
    pub(super) purpose: String,
    pub(super) content: Vec<u8>,
}

/// Reads a whole body, whose length has been bounded.
pub(super) async fn read(headers: &HeaderMap, body: Bytes) -> Result<Upload, Refused> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let boundary =
        multer::parse_boundary(kind).map_err(|_| unreadable("send the file as multipart/form-data"))?;
    let limit = SizeLimit::new().for_field("purpose", FIELD_MOST);
    let constraints = Constraints::new().size_limit(limit);
    let whole = stream::iter([Ok::<Bytes, Infallible>(body)]);
    let mut parts = Multipart::with_constraints(whole, boundary, constraints);
    let (mut file, mut purpose) = (None, None);
    let broken = |fault: multer::Error| unreadable(&format!("the form cannot be read: {fault}"));
    while let Some(part) = parts.next_field().await.map_err(broken)? {
        match part.name() {
            Some("file") => {
                let name = part.file_name().unwrap_or("file").to_owned();
                file = Some((name, part.bytes().await.map_err(broken)?));
            }
            Some("purpose") => purpose = Some(part.text().await.map_err(broken)?),
            _ => {}
        }
    }
    let (name, content) = file.ok_or_else(|| bad("file", "`file` is missing"))?;
    let purpose = purpose.filter(|it| !it.trim().is_empty());
    let purpose = purpose.ok_or_else(|| bad("purpose", "`purpose` is missing, such as `assistants`"))?;
    Ok(Upload { name: shown(&name), purpose: shown(&purpose), content: content.to_vec() })
}

/// A name for people: no folder, no control character, of a bounded length. It is never a path.
fn shown(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    last.chars().filter(|c| !c.is_control()).take(NAME_MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn upload(body: &str) -> Result<Upload, Refused> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "multipart/form-data; boundary=XX".parse().unwrap());
        read(&headers, Bytes::from(body.replace('\n', "\r\n"))).await
    }

    #[tokio::test]
    async fn a_form_is_read_and_a_name_is_no_path() {
        let form = "--XX\nContent-Disposition: form-data; name=\"purpose\"\n\nassistants\n\
                    --XX\nContent-Disposition: form-data; name=\"file\"; filename=\"../../etc/a.txt\"\n\
                    Content-Type: text/plain\n\nline one\n--XX--\n";
        let it = upload(form).await.unwrap();
        assert_eq!(
            (it.name.as_str(), it.purpose.as_str(), &*it.content),
            ("a.txt", "assistants", &b"line one"[..])
        );
        assert!(
            upload("--XX\nContent-Disposition: form-data; name=\"purpose\"\n\nx\n--XX--\n").await.is_err()
        );
        assert!(upload("no form").await.is_err());
        assert!(read(&HeaderMap::new(), Bytes::new()).await.is_err());
    }
}
