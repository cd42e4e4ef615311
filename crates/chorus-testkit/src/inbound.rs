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
        let head_end = loop {
            if let Some(at) = self.buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.fill().await? {
                return Ok(None);
            }
        };
        let head = self.buffer.split_to(head_end);
        let mut inbound = parse_head(&head)?;
        let length = inbound.headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
        while self.buffer.len() < length {
            if !self.fill().await? {
                return Ok(None);
            }
        }
        inbound.body = self.buffer.split_to(length).freeze();
        Ok(Some(inbound))
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
