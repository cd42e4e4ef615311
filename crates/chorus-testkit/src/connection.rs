//! One connection: reads a request, plays its script, and again.

use crate::Outcome;
use crate::board::{Board, IdleRule};
use crate::inbound::Reader;
use crate::script::{Framing, Response, Step};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// How a connection goes on after a script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Open for the next request.
    Keep,
    /// FIN.
    Close,
    /// RST.
    Reset,
}

/// Serves until either side ends it.
pub(crate) async fn serve(mut stream: TcpStream, number: usize, board: Arc<Board>) {
    let end = {
        let (read, write) = stream.split();
        exchange(read, write, number, &board).await.unwrap_or(End::Close)
    };
    if end == End::Reset {
        // SO_LINGER 0: the close below sends RST instead of FIN. A failure leaves an ordinary close.
        let _ = stream.set_zero_linger();
    }
    drop(stream);
    board.connection_closed();
}

async fn exchange(
    read: impl AsyncRead + Unpin,
    mut write: impl AsyncWrite + Unpin,
    number: usize,
    board: &Board,
) -> io::Result<End> {
    let mut reader = Reader::new(read);
    loop {
        let inbound = match board.idle_rule() {
            IdleRule::Keep => reader.next().await?,
            IdleRule::Close(after) => match tokio::time::timeout(after, reader.next()).await {
                Ok(inbound) => inbound?,
                Err(_) => return Ok(End::Close),
            },
            IdleRule::Reset(after) => match tokio::time::timeout(after, reader.next()).await {
                Ok(inbound) => inbound?,
                Err(_) => return Ok(End::Reset),
            },
        };
        let Some(inbound) = inbound else {
            return Ok(End::Close);
        };
        let (seat, script, request) = board.take(inbound, number);
        let (before, response, after) = script.play(&request);
        let played = tokio::select! {
            biased;
            played = play(&before, &response, &after, &mut write) => played,
            () = reader.closed() => Err(io::ErrorKind::ConnectionAborted.into()),
        };
        board.ended(seat, if played.is_ok() { Outcome::Answered } else { Outcome::ClientLeft });
        match played? {
            End::Keep => {}
            end => return Ok(end),
        }
    }
}

async fn play(
    before: &[Step],
    response: &Response,
    after: &[Step],
    write: &mut (impl AsyncWrite + Unpin),
) -> io::Result<End> {
    for step in before {
        if let Some(end) = act(step, Framing::Raw, write).await? {
            return Ok(end);
        }
    }
    if response.framing != Framing::Raw {
        write.write_all(head(response).as_bytes()).await?;
    }
    for step in &response.body {
        if let Some(end) = act(step, response.framing, write).await? {
            return Ok(end);
        }
    }
    if response.framing == Framing::Chunked {
        write.write_all(b"0\r\n\r\n").await?;
    }
    for step in after {
        if let Some(end) = act(step, Framing::Raw, write).await? {
            return Ok(end);
        }
    }
    Ok(if response.framing == Framing::UntilClose { End::Close } else { End::Keep })
}

/// One step; `Some` when the connection ends with it.
async fn act(
    step: &Step,
    framing: Framing,
    write: &mut (impl AsyncWrite + Unpin),
) -> io::Result<Option<End>> {
    match step {
        Step::Write(bytes) => piece(bytes, framing, write).await?,
        Step::Trickle(bytes) => {
            for byte in bytes.chunks(1) {
                piece(byte, framing, write).await?;
                // Lets the client read before the next byte, where it shares our thread.
                tokio::task::yield_now().await;
            }
        }
        Step::Wait(time) => tokio::time::sleep(*time).await,
        Step::Await(gate) => gate.pass().await,
        Step::Stall => std::future::pending().await,
        Step::Close => return Ok(Some(End::Close)),
        Step::Reset => return Ok(Some(End::Reset)),
    }
    Ok(None)
}

async fn piece(bytes: &[u8], framing: Framing, write: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(()); // an empty chunk would end the body
    }
    if framing == Framing::Chunked {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        write.write_all(&chunk).await?;
    } else {
        write.write_all(bytes).await?;
    }
    write.flush().await
}

fn head(response: &Response) -> String {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", response.status);
    match response.framing {
        Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
        Framing::UntilClose => head.push_str("connection: close\r\n"),
        Framing::Length | Framing::Raw => {
            let length: usize = response.body.iter().map(step_bytes).sum();
            head.push_str(&format!("content-length: {length}\r\n"));
        }
    }
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head
}

fn step_bytes(step: &Step) -> usize {
    match step {
        Step::Write(bytes) | Step::Trickle(bytes) => bytes.len(),
        _ => 0,
    }
}
