//! Whatever bytes come in, the readers answer with a value or a fault.

use chorus_wire::{
    Assembler, ChatReply, ChatRequest, Chunk, ErrorBody, RequestLimits, StreamIdentity, StreamRepair, tokens,
};
use proptest::prelude::*;

/// JSON in which the API's keys and odd values for them are likely.
fn bodies() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null"),
        Just("true"),
        Just("0"),
        Just("-1.5e400"),
        Just("7.0"),
        Just("\"\""),
        Just("\"stop\""),
        Just("\"text\""),
        Just("\"\\ud83d\""),
        Just("[]"),
        Just("{}"),
        Just("NaN"),
        Just("18446744073709551616")
    ]
    .prop_map(str::to_owned);
    let key = prop_oneof![
        Just("model"),
        Just("messages"),
        Just("role"),
        Just("content"),
        Just("choices"),
        Just("message"),
        Just("delta"),
        Just("index"),
        Just("finish_reason"),
        Just("tool_calls"),
        Just("function"),
        Just("name"),
        Just("arguments"),
        Just("id"),
        Just("usage"),
        Just("total_tokens"),
        Just("error"),
        Just("type"),
        Just("text"),
        Just("logprobs"),
        Just("stream"),
        Just("stream_options"),
        Just("max_tokens"),
        Just("tools"),
        Just("x")
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|list| format!("[{}]", list.join(","))),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|fields| {
                let fields: Vec<String> =
                    fields.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

/// Reads the bytes as everything, and uses what was read.
fn read_as_everything(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(mut request) = ChatRequest::parse(bytes, &RequestLimits::default()) {
        let again = ChatRequest::parse(&request.to_bytes(), &RequestLimits::default());
        prop_assert_eq!(again.map(|again| again.to_bytes()), Ok(request.to_bytes()));
        prop_assert!(tokens::of_request(&request) >= 4);
        request.set_stream(true, true);
        prop_assert!(request.stream() && request.include_usage());
    }
    if let Ok(mut reply) = ChatReply::parse(bytes) {
        reply.normalise();
        prop_assert!(ChatReply::parse(&reply.to_bytes()).is_ok());
    }
    if let Ok(chunk) = Chunk::parse(bytes) {
        let identity = StreamIdentity { id: "i".into(), model: "m".into(), created: 0 };
        let mut repair = StreamRepair::new(identity.clone());
        let mut assembler = Assembler::default();
        let sent: Vec<Chunk> =
            [chunk.clone(), chunk].into_iter().filter_map(|chunk| repair.push(chunk)).collect();
        for chunk in sent.iter().chain(&repair.finish()).chain(&repair.usage_chunk()) {
            let again = Chunk::parse(&chunk.to_bytes());
            prop_assert!(again.is_ok_and(|again| again.choices.len() == chunk.choices.len()));
            assembler.push(chunk);
        }
        prop_assert!(ChatReply::parse(&assembler.finish(&identity).to_bytes()).is_ok());
    }
    if let Some(error) = ErrorBody::parse(bytes) {
        prop_assert_eq!(ErrorBody::parse(&error.to_bytes()), Some(error));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_as_everything(&bytes)?;
    }

    #[test]
    fn arbitrary_bodies(body in bodies()) {
        read_as_everything(body.as_bytes())?;
    }

    #[test]
    fn arbitrary_messages(message in bodies()) {
        read_as_everything(format!("{{\"model\":\"m\",\"messages\":[{message}]}}").as_bytes())?;
    }

    #[test]
    fn arbitrary_choices(choice in bodies()) {
        read_as_everything(format!("{{\"choices\":[{{\"delta\":{choice},\"message\":{choice}}}]}}").as_bytes())?;
        read_as_everything(format!("{{\"choices\":[{choice}]}}").as_bytes())?;
    }
}
