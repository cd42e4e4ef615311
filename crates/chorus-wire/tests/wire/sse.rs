//! Server-sent events: the grammar, the bounds, and that cutting the bytes anywhere changes nothing.

use chorus_wire::sse::{DONE, MAX_EVENT_BYTES, encode, encode_comment, encode_object};
use chorus_wire::{RawObject, SseDecoder, SseEvent, SseFault};
use proptest::prelude::*;

fn decode_pieces<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    max: usize,
) -> Result<Vec<SseEvent>, SseFault> {
    let (mut decoder, mut events) = (SseDecoder::new(max), Vec::new());
    for piece in pieces {
        decoder.push(piece, &mut events)?;
    }
    events.extend(decoder.finish()?);
    Ok(events)
}

fn decode(bytes: &[u8]) -> Vec<SseEvent> {
    decode_pieces([bytes], MAX_EVENT_BYTES).unwrap()
}

fn data(bytes: &[u8]) -> Vec<String> {
    decode(bytes).into_iter().map(|event| String::from_utf8(event.data).unwrap()).collect()
}

#[test]
fn a10_reads_the_grammar() {
    for (stream, expect) in [
        (": hi\r\n\r\ndata:{1}\r\n\r\ndata: \r\n\r\ndata: {2}\n\ndata: [DONE]", vec!["{1}", "{2}", "[DONE]"]),
        ("data: a\ndata: b\n\n", vec!["a\nb"]),
        ("data: a\ndata:\ndata\ndata: b\n\n", vec!["a\n\n\nb"]),
        ("data:  two spaces\n\n", vec![" two spaces"]),
        ("data: a\r\rdata: b\r\r", vec!["a", "b"]),
        ("data: a\r\ndata: b\n\rdata: c\n", vec!["a\nb", "c"]),
        ("\u{feff}data: a\n\n", vec!["a"]),
        ("\u{feff}\ndata: a\n\n", vec!["a"]),
        ("data: a\n\n\u{feff}data: not a field\n\n", vec!["a"]),
        ("data\n\ndata:\n\n\n\n", vec![]),
        ("id: 7\nretry: 10\ndatum: x\n data: y\n\n", vec![]),
        ("data: no end", vec!["no end"]),
        ("data: one end\n", vec!["one end"]),
        (": only a comment", vec![]),
        ("", vec![]),
        ("data: a:b: c\n\n", vec!["a:b: c"]),
    ] {
        assert_eq!(data(stream.as_bytes()), expect, "{stream:?}");
    }
}

#[test]
fn an_event_has_its_own_name() {
    let events = decode(b"event: error\ndata: 1\n\ndata: 2\n\nevent:\ndata: 3\n\nevent: lost\n\ndata: 4\n\n");
    let names: Vec<Option<&str>> = events.iter().map(|event| event.event.as_deref()).collect();
    assert_eq!(names, [Some("error"), None, None, None]);
}

#[test]
fn a09_code_points_may_be_cut_but_not_missing() {
    let stream = "data: grüße 🦀\n\n".as_bytes();
    for cut in 0..=stream.len() {
        let (a, b) = stream.split_at(cut);
        let events = decode_pieces([a, b], MAX_EVENT_BYTES).unwrap();
        assert_eq!(events.first().unwrap().data, "grüße 🦀".as_bytes(), "cut at {cut}");
    }
    let crab = stream.len() - 4;
    assert_eq!(decode_pieces([&stream[..crab]], MAX_EVENT_BYTES), Err(SseFault::NotUtf8));
    assert_eq!(decode_pieces([&b"data: \xff\n\ndata: 2\n\n"[..]], MAX_EVENT_BYTES), Err(SseFault::NotUtf8));
    assert_eq!(decode_pieces([&b"event: \xff\ndata: 2\n\n"[..]], MAX_EVENT_BYTES), Err(SseFault::NotUtf8));
    assert_eq!(data(b": \xff\n\ndata: comments may be anything\n\n"), ["comments may be anything"]);
}

#[test]
fn the_bound_holds_to_the_byte() {
    let too_long = Err(SseFault::TooLong { limit: 10 });
    for (stream, fits) in [
        ("data: 4444\n\n", true),
        ("data: 55555\n\n", false),
        ("data: 55555", false),
        ("data:1\ndata", true),
        ("data:1\ndata:", false),
        ("data:1\n\ndata:1\n\n", true),
        ("id: 456789\ndata:1\n\n", false),
        (": 34567890\n: 34567890\ndata: 4444\n\n", true),
        (": 345678901", false),
    ] {
        let whole = decode_pieces([stream.as_bytes()], 10);
        let bytewise = decode_pieces(stream.as_bytes().chunks(1), 10);
        assert_eq!(whole, bytewise, "{stream:?}");
        assert_eq!(whole.is_ok(), fits, "{stream:?}");
        assert!(fits || whole == too_long, "{stream:?}");
    }
}

#[test]
fn a23_long_lines_pass_and_take_linear_time() {
    let two_megabytes = format!("data: {}\n\n", "x".repeat(2 << 20));
    assert_eq!(data(two_megabytes.as_bytes()).first().unwrap().len(), 2 << 20);

    let line = [b"data: ".as_slice(), &vec![b'x'; MAX_EVENT_BYTES - 6]].concat();
    let events = decode_pieces(line.chunks(1024), MAX_EVENT_BYTES).unwrap();
    assert_eq!(events.first().unwrap().data.len(), MAX_EVENT_BYTES - 6);
    let longer = [line.as_slice(), b"x"].concat();
    let limit = MAX_EVENT_BYTES;
    assert_eq!(decode_pieces(longer.chunks(1024), limit), Err(SseFault::TooLong { limit }));
}

#[test]
fn what_is_encoded_is_decoded() {
    assert_eq!(&*encode(b"{}"), b"data: {}\n\n");
    assert_eq!(&*encode(DONE), b"data: [DONE]\n\n");
    assert_eq!(&*encode_comment("panel 1/3"), b": panel 1/3\n\n");
    assert_eq!(
        data(&encode(b"{\n  \"a\": 1\r}")),
        ["{\n  \"a\": 1\n}"],
        "a pretty-printed value stays one event"
    );
    assert_eq!(decode(&encode_comment("x\ndata: forged\n\ndata: y")), []);
}

/// Bytes in which every sign of the grammar is likely.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just("data"),
        Just("data:"),
        Just("data: "),
        Just("event:"),
        Just(":"),
        Just(" "),
        Just("\n"),
        Just("\r"),
        Just("\r\n"),
        Just("\n\n"),
        Just("\u{feff}"),
        Just("é"),
        Just("🦀"),
        Just("{\"a\":1}"),
        Just("id: 3")
    ];
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat().into_bytes())
}

proptest! {
    #[test]
    fn cutting_changes_nothing(stream in streams(), cuts in prop::collection::vec(0usize..200, 0..12), max in 4usize..60) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).chain([0, stream.len()]).collect();
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]);
        for max in [max, MAX_EVENT_BYTES] {
            let whole = decode_pieces([stream.as_slice()], max);
            prop_assert_eq!(decode_pieces(pieces.clone(), max), whole.clone());
            prop_assert_eq!(decode_pieces(stream.chunks(1), max), whole);
        }
    }

    #[test]
    fn agrees_with_the_grammar_read_plainly(stream in streams()) {
        prop_assert_eq!(decode(&stream), plain(&stream));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), max in 0usize..80) {
        let whole = decode_pieces([bytes.as_slice()], max);
        prop_assert_eq!(decode_pieces(bytes.chunks(3), max), whole);
    }
}

/// The standard's algorithm on a whole stream, as a second opinion.
fn plain(stream: &[u8]) -> Vec<SseEvent> {
    let text = std::str::from_utf8(stream).unwrap();
    let text =
        text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n") + "\n\n";
    let (mut events, mut name, mut lines) = (Vec::new(), "", Vec::new());
    for line in text.split('\n') {
        if line.is_empty() {
            let data = lines.join("\n");
            if !data.is_empty() {
                let event = Some(name.to_owned()).filter(|name| !name.is_empty());
                events.push(SseEvent { event, data: data.into_bytes() });
            }
            (name, lines) = ("", Vec::new());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => lines.push(value),
            "event" => name = value,
            _ => {}
        }
    }
    events
}

#[test]
fn an_object_is_written_as_its_text_would_be() {
    for body in ["{}", r#"{"a":1}"#, "{\"a\":{\n\"b\":\r\n1},\"c\":[]}", r#"{"\u0061\"":"x\n","b":null}"#] {
        let object = RawObject::parse(body.as_bytes()).unwrap();
        assert_eq!(encode_object(&object), encode(&object.to_bytes()), "{body}");
    }
}
