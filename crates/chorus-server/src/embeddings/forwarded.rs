//! Requests for vectors of a model behind a backend: handed on as the client wrote them, once they can be read.

use super::bad;
use crate::door::Door;
use crate::headers::Headers;
use crate::{caller, reply, wishes};
use axum::response::Response;
use chorus_engine::{Code, Fault, Mom, VectorsAnswer, VectorsAsk};
use chorus_spec::{BudgetSettings, ModelId};
use chorus_upstream::{VectorFormat, VectorsWish};
use chorus_wire::RawObject;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What a card says of a model that gives vectors.
const CAPABILITY: &str = "embeddings";

/// Most texts of one request (`max_inputs`). Source: OpenAI API reference, "Create embeddings".
const MAX_INPUTS: usize = 2048;

/// The request, where it names a model of the file that gives vectors.
///
/// # Errors
/// What of it no model could read.
pub(super) fn read(mom: &Mom, bytes: &[u8]) -> Result<Option<VectorsAsk>, Fault> {
    let unreadable = |why: String| Fault::new(Code::InvalidRequest, why);
    let body =
        RawObject::parse(bytes).map_err(|why| unreadable(format!("the body cannot be read: {why}")))?;
    // Whatever `model` is instead of a text, the encoder's own words say.
    let Some(model) = body.read::<String>("model").ok().flatten() else { return Ok(None) };
    let card = mom.spec.models.get(&ModelId::new(&model)).map(|model| &model.card);
    if !card.is_some_and(|card| card.capabilities.iter().any(|it| it.eq_ignore_ascii_case(CAPABILITY))) {
        return Ok(None);
    }
    let (count, text) = input(&field(&body, "input")?.unwrap_or(Value::Null))?;
    let wish = VectorsWish {
        count,
        format: field::<Option<VectorFormat>>(&body, "encoding_format")?.flatten().unwrap_or_default(),
        dimensions: field::<Option<usize>>(&body, "dimensions")?.flatten(),
    };
    let budget = BudgetSettings::default();
    Ok(Some(VectorsAsk { body, model, text, wish, caller: None, budget, tracing: None }))
}

/// Asks the model, and answers in its words under the name that the client used.
pub(super) async fn answered(door: &Door, headers: &HeaderMap, ask: VectorsAsk) -> Response {
    let budget = match wishes::budget(headers) {
        Ok(budget) => budget,
        Err(fault) => return reply::fault(&fault, HeaderMap::new()),
    };
    let (model, caller) = (ask.model.clone(), caller::of(door, headers));
    let tracing = door.traces().map(|traces| traces.of(headers));
    let ask = VectorsAsk { caller, budget, tracing, ..ask };
    let VectorsAnswer { run, outcome } = door.engine.vectors(ask).await;
    let headers = Headers::of_run(&run).into_map();
    let named = outcome.and_then(|mut body| {
        let named = body.write("model", &model);
        named.map(|()| body).map_err(|why| Fault::new(Code::Internal, why.to_string()))
    });
    match named {
        Ok(body) => reply::json(StatusCode::OK, headers, body.to_bytes()),
        Err(fault) => reply::fault(&fault, headers),
    }
}

fn field<T: DeserializeOwned>(body: &RawObject, name: &str) -> Result<Option<T>, Fault> {
    body.read(name).map_err(|why| bad(name, format!("`{name}` cannot be read: {why}")))
}

/// How many vectors are asked for, and the texts together. Token ids are the model's own; each counts as a short word.
fn input(input: &Value) -> Result<(usize, String), Fault> {
    let wrong = || bad("input", "`input` must be a text, texts, token ids, or lists of token ids");
    let ids = |ids: &[Value]| ids.iter().all(Value::is_u64).then(|| "id ".repeat(ids.len()));
    let one = |it: &Value| match it {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) if !list.is_empty() => ids(list),
        _ => None,
    };
    let texts = match input {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) if !list.is_empty() => match ids(list) {
            Some(text) => vec![text],
            None => list.iter().map(one).collect::<Option<_>>().ok_or_else(wrong)?,
        },
        _ => return Err(wrong()),
    };
    match texts.len() {
        n if n > MAX_INPUTS => {
            Err(bad("input", format!("`input` holds {n} texts; {MAX_INPUTS} are the most (max_inputs)")))
        }
        _ if texts.iter().any(String::is_empty) => Err(bad("input", "`input` holds an empty text")),
        n => Ok((n, texts.join("\n"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn b12_texts_and_token_ids_are_counted_and_nothing_else_is_taken() {
        let counts = [
            (json!("a b"), 1, "a b"),
            (json!(["a", "b"]), 2, "a\nb"),
            (json!([7, 8, 9]), 1, "id id id "),
            (json!([[7], [8, 9]]), 2, "id \nid id "),
        ];
        for (value, count, text) in counts {
            assert_eq!(input(&value).unwrap(), (count, text.to_owned()));
        }
        let wrong = [
            json!(null),
            json!(7),
            json!([]),
            json!([[]]),
            json!(""),
            json!(["a", ""]),
            json!([1.5]),
            json!([{}]),
        ];
        for value in wrong.into_iter().chain([json!(vec!["x"; MAX_INPUTS + 1])]) {
            assert_eq!(input(&value).unwrap_err().param.as_deref(), Some("input"), "{value}");
        }
    }
}
