//! Reads requests off a connection, and notices when the client leaves.

use bytes::{Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// A request longer than this is a test gone wrong.
const MAX_REQUEST_BYTES: usize = 256 << 20;

/// Method, path, headers, body.
pub(crate) struct Inbound {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

/// The reading side of a connection.
pub(crate) struct Reader<R> {
    socket: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(crate) fn new(socket: R) -> Self {
        Self { socket, buffer: BytesMut::new() }
    }

    /// The next request; `None` when the client has closed.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Inbound>> {
        let Some(head) = self.until(b"\r\n\r\n").await? else { return Ok(None) };
        let mut inbound = parse_head(&head)?;
        let value =
            |name: &str| inbound.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str());
        let body = if value("transfer-encoding") == Some("chunked") {
            self.chunks().await?
        } else {
            let length = value("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
            self.exactly(length).await?
        };
        let Some(body) = body else { return Ok(None) };
        inbound.body = body.freeze();
        Ok(Some(inbound))
    }

    /// A chunked body, without trailers.
    async fn chunks(&mut self) -> io::Result<Option<BytesMut>> {
        let mut body = BytesMut::new();
        loop {
            let Some(line) = self.until(b"\r\n").await? else { return Ok(None) };
            let size = std::str::from_utf8(&line).map_err(io::Error::other)?.trim();
            let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
            let Some(piece) = self.exactly(size + 2).await? else { return Ok(None) };
            if size == 0 {
                return Ok(Some(body));
            }
            body.extend_from_slice(piece.get(..size).unwrap_or_default());
        }
    }

    /// What stands up to `mark`, and the mark.
    async fn until(&mut self, mark: &[u8]) -> io::Result<Option<BytesMut>> {
        loop {
            if let Some(at) = self.buffer.windows(mark.len()).position(|window| window == mark) {
                return Ok(Some(self.buffer.split_to(at + mark.len())));
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    async fn exactly(&mut self, length: usize) -> io::Result<Option<BytesMut>> {
        while self.buffer.len() < length {
            if !self.fill().await? {
                return Ok(None);
            }
        }
        Ok(Some(self.buffer.split_to(length)))
    }

    /// Returns when the client has closed or reset the connection.
    pub(crate) async fn closed(&mut self) {
        while matches!(self.fill().await, Ok(true)) {}
    }

    async fn fill(&mut self) -> io::Result<bool> {
        if self.buffer.len() > MAX_REQUEST_BYTES {
            return Err(io::Error::other("request too long"));
        }
        Ok(self.socket.read_buf(&mut self.buffer).await? > 0)
    }
}

fn parse_head(head: &[u8]) -> io::Result<Inbound> {
    let head = std::str::from_utf8(head).map_err(io::Error::other)?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Ok(Inbound { method, path, headers, body: Bytes::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_whole_whichever_way_it_is_framed() {
        let sent = "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\na\r\n\": [1,2]}\n\r\n0\r\n\r\n\
                    POST /b HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}GET /c HTTP/1.1\r\n\r\n";
        let mut reader = Reader::new(sent.as_bytes());
        for (path, body) in [("/a", "{\"a\": [1,2]}\n"), ("/b", "{}"), ("/c", "")] {
            let inbound = reader.next().await.unwrap().unwrap();
            assert_eq!((inbound.path.as_str(), inbound.body.as_ref()), (path, body.as_bytes()));
        }
        assert!(reader.next().await.unwrap().is_none());
    }
}
