//! The data plane's operations, as OpenAPI: the doors for chats, messages, responses, vectors and models.
//!
//! It describes what the doors take and give as far as a client may rely on it; the protocols have more fields, which pass.

use serde_json::{Map, Value, json};

/// The operations by path.
pub(super) fn paths() -> Map<String, Value> {
    let all = [
        ("/v1/chat/completions", json!({"post": chat()})),
        ("/v1/messages", json!({"post": messages()})),
        ("/v1/messages/count_tokens", json!({"post": count_tokens()})),
        ("/v1/responses", json!({"post": responses()})),
        (
            "/v1/responses/{id}",
            json!({
                "get": of_id("a kept response", &reference("Response")),
                "delete": of_id("forgets a response", &open(&["id", "object", "deleted"])),
            }),
        ),
        (
            "/v1/responses/{id}/cancel",
            json!({"post": of_id("ends a response in the background", &reference("Response"))}),
        ),
        (
            "/v1/responses/{id}/input_items",
            json!({"get": of_id("what a response was asked", &open(&["object", "data", "has_more"]))}),
        ),
        ("/v1/embeddings", json!({"post": embeddings()})),
        (
            "/v1/models",
            json!({"get": operation("every public name", None, &[("application/json", list_of_models())], "Error")}),
        ),
        ("/v1/models/{id}", json!({"get": of_id("one public name", &reference("Model"))})),
    ];
    all.into_iter().map(|(path, operations)| (path.to_owned(), operations)).collect()
}

/// The shapes that operations refer to.
pub(super) fn schemas() -> Map<String, Value> {
    let text = json!({"type": "string"});
    let count = json!({"type": "integer", "minimum": 0});
    let messages_error = json!({
        "type": "object", "required": ["type", "error"],
        "properties": {
            "type": {"const": "error"},
            "error": {
                "type": "object", "required": ["type", "message"], "properties": {"type": text, "message": text},
            },
        },
    });
    let response = json!({
        "type": "object",
        "required": ["id", "object", "created_at", "status", "model", "output", "usage", "error", "tools"],
        "properties": {
            "id": text, "object": {"const": "response"}, "created_at": count, "model": text,
            "status": {"enum": ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]},
            "output": {"type": "array", "items": {"type": "object"}},
            "usage": {"type": ["object", "null"]}, "error": {"type": ["object", "null"]},
        },
    });
    let model = json!({
        "type": "object", "required": ["id", "object", "created", "owned_by"],
        "properties": {
            "id": text, "object": {"const": "model"}, "created": count, "owned_by": text, "description": text,
            "context_window": count,
        },
    });
    let all = [("MessagesError", messages_error), ("Response", response), ("Model", model)];
    all.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn chat() -> Value {
    let message = json!({
        "type": "object", "required": ["role"],
        "properties": {
            "role": {"type": "string", "examples": ["user"]},
            "content": {"type": ["string", "array", "null"], "items": {"type": "object"}},
        },
    });
    let body = json!({
        "type": "object", "required": ["model", "messages"],
        "properties": {
            "model": {"type": "string", "minLength": 1},
            "messages": {"type": "array", "minItems": 1, "items": message},
            "stream": {"type": "boolean"},
            "temperature": {"type": "number", "minimum": 0, "maximum": 2},
            "top_p": {"type": "number", "minimum": 0, "maximum": 1},
            "max_tokens": {"type": "integer", "minimum": 1},
            "max_completion_tokens": {"type": "integer", "minimum": 1},
            "tools": {"type": "array", "items": {"type": "object"}},
        },
        "example": {"model": "vllm-sr/auto", "messages": [{"role": "user", "content": "Hello!"}]},
    });
    let answer = json!({
        "type": "object", "required": ["id", "object", "created", "model", "choices"],
        "properties": {
            "object": {"const": "chat.completion"},
            "choices": {"type": "array", "items": {"type": "object", "required": ["index", "message", "finish_reason"]}},
        },
    });
    operation("an answer to a conversation", Some(body), &streamed(answer), "Error")
}

fn messages_body(required: &[&str]) -> Value {
    let message = json!({
        "type": "object", "required": ["role", "content"],
        "properties": {
            "role": {"enum": ["user", "assistant"]},
            "content": {"type": ["string", "array"], "items": {"type": "object", "required": ["type"]}},
        },
    });
    json!({
        "type": "object", "required": required,
        "properties": {
            "model": {"type": "string", "minLength": 1},
            "max_tokens": {"type": "integer", "minimum": 1},
            "messages": {"type": "array", "minItems": 1, "items": message},
            "system": {"type": ["string", "array"], "items": {"type": "object", "required": ["type", "text"]}},
            "stream": {"type": "boolean"},
            "temperature": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "example": {
            "model": "vllm-sr/auto", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello!"}],
        },
    })
}

fn messages() -> Value {
    let answer = json!({
        "type": "object",
        "required": ["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"],
        "properties": {
            "type": {"const": "message"}, "role": {"const": "assistant"},
            "content": {"type": "array", "items": {"type": "object", "required": ["type"]}},
        },
    });
    let body = messages_body(&["model", "max_tokens", "messages"]);
    operation("an answer in Anthropic's words", Some(body), &streamed(answer), "MessagesError")
}

fn count_tokens() -> Value {
    let answer = open(&["input_tokens"]);
    let body = messages_body(&["model", "messages"]);
    let does = "an estimate of a prompt's tokens";
    operation(does, Some(body), &[("application/json", answer)], "MessagesError")
}

fn responses() -> Value {
    let body = json!({
        "type": "object", "required": ["model", "input"],
        "properties": {
            "model": {"type": "string", "minLength": 1},
            "input": {"type": ["string", "array"], "items": {"type": "object"}},
            "instructions": {"type": ["string", "null"]},
            "previous_response_id": {"type": ["string", "null"]},
            "store": {"type": "boolean"}, "background": {"type": "boolean"}, "stream": {"type": "boolean"},
            "max_output_tokens": {"type": "integer", "minimum": 1},
        },
        "example": {"model": "vllm-sr/auto", "input": "Hello!"},
    });
    operation("a response in OpenAI's words", Some(body), &streamed(reference("Response")), "Error")
}

fn embeddings() -> Value {
    let body = json!({
        "type": "object", "required": ["model", "input"],
        "properties": {
            "model": {"type": "string", "minLength": 1},
            "input": {"type": ["string", "array"], "items": {"type": "string", "minLength": 1}, "minLength": 1},
            "encoding_format": {"enum": ["float", "base64"]},
            "dimensions": {"type": "integer", "minimum": 1},
        },
        "example": {"model": "chorus/encoder", "input": "a boat in a storm"},
    });
    let answer = open(&["object", "model", "data", "usage"]);
    operation("one unit vector a text", Some(body), &[("application/json", answer)], "Error")
}

fn list_of_models() -> Value {
    json!({
        "type": "object", "required": ["object", "data"],
        "properties": {"object": {"const": "list"}, "data": {"type": "array", "items": reference("Model")}},
    })
}

/// An operation on what the path names.
fn of_id(does: &str, answer: &Value) -> Value {
    let mut operation = operation(does, None, &[("application/json", answer.clone())], "Error");
    let id =
        json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}});
    if let Some(fields) = operation.as_object_mut() {
        fields.insert("parameters".to_owned(), json!([id]));
    }
    operation
}

fn operation(does: &str, body: Option<Value>, answers: &[(&str, Value)], error: &str) -> Value {
    let content: Map<String, Value> =
        answers.iter().map(|(kind, schema)| ((*kind).to_owned(), json!({"schema": schema}))).collect();
    let fault = json!({
        "description": "an error; docs/errors.md has the codes",
        "content": {"application/json": {"schema": reference(error)}},
    });
    let mut operation = json!({
        "summary": does, "tags": ["data plane"],
        "responses": {"200": {"description": "done", "content": content}, "4XX": fault, "5XX": fault},
    });
    if let (Some(fields), Some(body)) = (operation.as_object_mut(), body) {
        let body = json!({"required": true, "content": {"application/json": {"schema": body}}});
        fields.insert("requestBody".to_owned(), body);
    }
    operation
}

/// Whole, or as events: what an event holds is the protocol's.
fn streamed(answer: Value) -> [(&'static str, Value); 2] {
    [("application/json", answer), ("text/event-stream", json!({}))]
}

/// An object that has those fields.
fn open(required: &[&str]) -> Value {
    json!({"type": "object", "required": required})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
