//! The table of endpoints, for people and for programs. It knows no handler.

use super::endpoint::{Endpoint, Field};
use serde_json::{Map, Value, json};

/// The table as a list.
pub(super) fn list(endpoints: &[Endpoint]) -> Value {
    let row = |e: &Endpoint| json!({"method": e.method, "path": e.path, "permission": e.permission, "description": e.does});
    json!({"service": "chorus", "endpoints": endpoints.iter().map(row).collect::<Vec<_>>()})
}

/// The OpenAPI document, as it is also kept in `docs/openapi.json`.
pub(super) fn document(endpoints: &[Endpoint]) -> String {
    let mut paths = Map::new();
    for endpoint in endpoints {
        let methods = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        if let Some(methods) = methods.as_object_mut() {
            methods.insert(endpoint.method.to_lowercase(), operation(endpoint));
        }
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {"title": "Chorus management plane", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {"schemas": {"Error": error_schema()}},
    });
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn operation(endpoint: &Endpoint) -> Value {
    let mut operation = json!({
        "summary": endpoint.does,
        "tags": [endpoint.permission],
        "responses": {
            "200": {"description": "done"},
            "default": {
                "description": "an error",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    });
    let in_path = endpoint.path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let parameter = |name: &str, place: &str| json!({"name": name, "in": place, "required": true, "schema": {"type": "string"}});
    let mut parameters: Vec<Value> = in_path.map(|name| parameter(name, "path")).collect();
    if endpoint.conditional {
        parameters.push(parameter("If-Match", "header"));
    }
    let Some(fields) = operation.as_object_mut() else { return operation };
    if !parameters.is_empty() {
        fields.insert("parameters".to_owned(), parameters.into());
    }
    if !endpoint.fields.is_empty() {
        let body = json!({"content": {"application/json": {"schema": schema(endpoint.fields)}}});
        fields.insert("requestBody".to_owned(), body);
    }
    operation
}

fn schema(fields: &[Field]) -> Value {
    let property = |f: &Field| (f.name.to_owned(), json!({"type": f.kind, "description": f.does}));
    let properties: Map<String, Value> = fields.iter().map(property).collect();
    let required: Vec<&str> = fields.iter().filter(|f| f.required).map(|f| f.name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn error_schema() -> Value {
    let text = json!({"type": "string"});
    let nullable = json!({"type": ["string", "null"]});
    let error = json!({"message": text, "type": text, "param": nullable, "code": text});
    json!({"type": "object", "properties": {"error": {"type": "object", "properties": error}}})
}
