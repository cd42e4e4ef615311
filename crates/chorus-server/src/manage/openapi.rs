//! The table of endpoints, for people and for programs. It knows no handler.

use super::data_plane;
use super::endpoint::{Endpoint, Field};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

const PAGE: &str = include_str!("page.html");

/// The table as a list.
pub(super) fn list(endpoints: &[Endpoint]) -> Value {
    let row = |e: &Endpoint| json!({"method": e.method, "path": e.path, "permission": e.permission, "description": e.does});
    json!({"service": "chorus", "endpoints": endpoints.iter().map(row).collect::<Vec<_>>()})
}

/// The OpenAPI document, as it is also kept in `docs/openapi.json`.
pub(super) fn document(endpoints: &[Endpoint]) -> String {
    let mut paths = data_plane::paths();
    for endpoint in endpoints {
        let methods = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        if let Some(methods) = methods.as_object_mut() {
            // What the data plane says of itself stands.
            methods.entry(endpoint.method.to_lowercase()).or_insert_with(|| operation(endpoint));
        }
    }
    let mut schemas = data_plane::schemas();
    schemas.insert("Error".to_owned(), error_schema());
    let document = json!({
        "openapi": "3.1.0",
        "info": {"title": "Chorus", "description": "The data plane below /v1, the management plane besides.", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {"schemas": schemas},
    });
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

/// The table as a page for people. It loads nothing from anywhere, and nothing in it runs.
pub(super) fn page(endpoints: &[Endpoint]) -> String {
    let mut rows = String::new();
    for it in endpoints {
        let fields: Vec<String> = it.fields.iter().map(field_line).collect();
        let condition = if it.conditional { "<br>needs <code>If-Match</code>" } else { "" };
        let _ = writeln!(
            rows,
            "<tr><td><code>{} {}</code></td><td>{}{condition}{}</td><td><code>{}</code></td></tr>",
            it.method,
            escaped(it.path),
            escaped(it.does),
            fields.concat(),
            escaped(it.permission),
        );
    }
    PAGE.replace("{{rows}}", &rows).replace("{{version}}", env!("CARGO_PKG_VERSION"))
}

fn field_line(field: &Field) -> String {
    let must = if field.required { ", required" } else { "" };
    format!("<br><code>{}</code> ({}{must}): {}", escaped(field.name), field.kind, escaped(field.does))
}

/// Text inside an element, its code spans kept as such.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
