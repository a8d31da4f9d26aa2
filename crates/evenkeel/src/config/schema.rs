//! The table of keys as a JSON schema, for editors that complete and check TOML files.
//!
//! Draft 7, which is what they understand. It cannot say what `check` knows of references and of keys that exclude each
//! other: the program's own check stays the judge.

use serde_json::{Map, Value, json};

use super::keys::{Absent, Form, Key, Off, Table};
use super::tables::ROOT;
use super::units::NAME_LENGTH_MAX;

const DURATION_PATTERN: &str = "([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?";
const SIZE_PATTERN: &str = "[0-9]+(B|KiB|MiB|GiB)";
const PERCENT_PATTERN: &str = "[0-9]+%";

/// The schema of a configuration file.
pub fn schema() -> Value {
    let mut schema = table_schema(&ROOT);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("evenkeel configuration");
    schema
}

fn table_schema(table: &Table) -> Value {
    let properties: Map<String, Value> = table
        .keys
        .iter()
        .map(|key| (key.name.to_owned(), key_schema(key)))
        .collect();
    let required: Vec<&str> = table
        .keys
        .iter()
        .filter(|key| key.absent == Absent::Error)
        .map(|key| key.name)
        .collect();
    json!({
        "description": table.about,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn key_schema(key: &Key) -> Value {
    let mut schema = form_schema(&key.form);
    schema["description"] = json!(describe(key));
    if let Absent::Value(default) = key.absent {
        schema["default"] = default_value(default);
    }
    schema
}

fn describe(key: &Key) -> String {
    let form = key.form.describe();
    match key.absent {
        Absent::Error => format!("{} Required: {form}.", key.about),
        Absent::Value(default) => format!("{} Default: {default}; {form}.", key.about),
        Absent::Means(meaning) => format!("{} Default: {meaning}; {form}.", key.about),
    }
}

/// The defaults in the table are strings, numbers and flags, which TOML and JSON write alike.
fn default_value(toml: &str) -> Value {
    serde_json::from_str(toml).unwrap_or(Value::Null)
}

fn form_schema(form: &Form) -> Value {
    match form {
        Form::Flag => json!({ "type": "boolean" }),
        Form::Whole { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Form::Duration { off, .. } => quantity(DURATION_PATTERN, *off),
        Form::Size { off, .. } => quantity(SIZE_PATTERN, *off),
        Form::Percent { off, .. } => quantity(PERCENT_PATTERN, *off),
        Form::Text { bytes_max } => {
            json!({ "type": "string", "minLength": 1, "maxLength": bytes_max })
        }
        Form::Word(words) => json!({ "enum": words() }),
        Form::WordOrPath { words, .. } => {
            json!({ "anyOf": [{ "enum": words }, { "type": "string", "pattern": "/" }] })
        }
        Form::Name
        | Form::Target
        | Form::BindAddress
        | Form::EndpointAddress
        | Form::AddressOrName
        | Form::HostName
        | Form::HostPattern
        | Form::Service => {
            json!({ "type": "string" })
        }
        Form::StatusCodes => {
            json!({ "type": "string", "pattern": "^ *[1-5][0-9]{2}(-[1-5][0-9]{2})?( *, *[1-5][0-9]{2}(-[1-5][0-9]{2})?)* *$" })
        }
        Form::Bytes { .. } => json!({ "type": "string", "minLength": 1 }),
        Form::File { bytes_max } => {
            json!({ "type": "string", "minLength": 1, "maxLength": bytes_max })
        }
        Form::NameServers { count_max } => {
            json!({ "type": "array", "maxItems": count_max, "items": { "type": "string" } })
        }
        Form::Permissions => json!({ "type": "string", "pattern": "^0?[0-7]{3}$" }),
        Form::Senders => json!({ "type": "array", "minItems": 1, "items": { "type": "string" } }),
        Form::Patterns => json!({ "type": "array", "items": { "type": "string" } }),
        Form::Endpoints(table) => {
            json!({ "type": "array", "minItems": 1, "items": { "anyOf": [{ "type": "string" }, table_schema(table)] } })
        }
        Form::Tables(table) => {
            json!({ "type": "array", "minItems": 1, "items": table_schema(table) })
        }
        Form::WordOrTable { word, table } => {
            json!({ "anyOf": [{ "enum": [word] }, table_schema(table)] })
        }
        Form::Table(table) => table_schema(table),
        Form::Named(table) => json!({
            "type": "object",
            "propertyNames": { "pattern": format!("^[a-z0-9][a-z0-9_-]{{0,{}}}$", NAME_LENGTH_MAX - 1) },
            "additionalProperties": table_schema(table),
        }),
    }
}

fn quantity(pattern: &str, off: Off) -> Value {
    let pattern = match off {
        Off::Allowed => format!("^(off|{pattern})$"),
        Off::Refused => format!("^{pattern}$"),
    };
    json!({ "type": "string", "minLength": 2, "pattern": pattern })
}
