//! The fields of a connector's configuration, as the reference manual shows them.
//!
//! [`configuration!`](crate::configuration) declares a configuration's struct and keeps the doc comments of its
//! fields, so that the manual is written once, beside the field. Whether a field is required, and its default,
//! are found by leaving it out of a sample.

use std::path::PathBuf;

use domesday_model::ObjectKey;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::credentials::Method;

/// One field of a configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Field {
    /// With the names of what it is in: `crawl.depth`.
    pub name: String,
    /// Such as `text` or `list of text`.
    #[serde(rename = "type")]
    pub type_name: String,
    pub is_required: bool,
    /// What it is where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Its doc comment, on one line.
    pub doc: String,
}

/// A configuration's struct, as [`configuration!`](crate::configuration) declares it.
pub trait Configuration: Serialize + DeserializeOwned {
    /// The fields in the order of their declaration, without defaults.
    fn declared() -> Vec<DeclaredField>;
}

/// A field as its declaration says it.
pub struct DeclaredField {
    pub name: &'static str,
    pub type_name: String,
    /// The lines of its doc comment, each with the space it begins with.
    pub doc: &'static [&'static str],
    /// The fields of the object that it is, if it is one.
    pub inside: Vec<Field>,
}

/// The fields of a configuration. `sample` is one that has every required field, and defaults otherwise.
pub fn fields<C: Configuration>(sample: &C) -> Vec<Field> {
    let sample = serde_json::to_value(sample).unwrap_or_default();
    let mut fields = Vec::new();
    for DeclaredField { name, type_name, doc, inside } in C::declared() {
        let without = left_out::<C>(&sample, name);
        let doc: Vec<&str> = doc.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
        fields.push(Field {
            name: name.to_owned(),
            type_name,
            is_required: without.is_none(),
            default: without.and_then(|found| found.get(name).cloned()),
            doc: doc.join(" "),
        });
        fields.extend(
            inside.into_iter().map(|field| Field { name: format!("{name}.{}", field.name), ..field }),
        );
    }
    fields
}

/// What a configuration without this field comes back as. `None` when it is no configuration.
fn left_out<C: Configuration>(sample: &Value, name: &str) -> Option<Value> {
    let mut sample = sample.clone();
    sample.as_object_mut()?.remove(name);
    let read: C = serde_json::from_value(sample).ok()?;
    serde_json::to_value(read).ok()
}

/// A type that a field of a configuration may have.
pub trait FieldType {
    /// What people write in its place.
    fn type_name() -> String;

    /// The fields of an object.
    fn inside() -> Vec<Field> {
        Vec::new()
    }
}

impl<T: FieldType> FieldType for Option<T> {
    fn type_name() -> String {
        T::type_name()
    }

    fn inside() -> Vec<Field> {
        T::inside()
    }
}

impl<T: FieldType> FieldType for Vec<T> {
    fn type_name() -> String {
        format!("list of {}", T::type_name())
    }
}

macro_rules! field_types {
    ($($type:ty => $name:literal),* $(,)?) => {
        $(impl FieldType for $type {
            fn type_name() -> String {
                $name.to_owned()
            }
        })*
    };
}

field_types! {
    String => "text",
    ObjectKey => "text",
    PathBuf => "path",
    bool => "true or false",
    u16 => "number",
    u32 => "number",
    u64 => "number",
    Method => "method",
}

/// Declares the struct of a configuration, and implements [`Configuration`] for it from its doc comments.
#[macro_export]
macro_rules! configuration {
    (
        $(#[$($of_struct:tt)*])*
        $visibility:vis struct $name:ident {
            $(
                $(#[$($attribute:tt)*])*
                $of_field:vis $field:ident: $type:ty,
            )*
        }
    ) => {
        $(#[$($of_struct)*])*
        $visibility struct $name {
            $(
                $(#[$($attribute)*])*
                $of_field $field: $type,
            )*
        }

        impl $crate::fields::Configuration for $name {
            fn declared() -> Vec<$crate::fields::DeclaredField> {
                vec![$($crate::fields::DeclaredField {
                    name: stringify!($field),
                    type_name: <$type as $crate::fields::FieldType>::type_name(),
                    doc: &[$($crate::doc_of!($($attribute)*)),*],
                    inside: <$type as $crate::fields::FieldType>::inside(),
                }),*]
            }
        }
    };
}

/// The text of an attribute that is a doc comment; nothing for another.
#[doc(hidden)]
#[macro_export]
macro_rules! doc_of {
    (doc = $text:literal) => {
        $text
    };
    ($($other:tt)*) => {
        ""
    };
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;

    crate::configuration! {
        #[derive(Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Sample {
            /// Where it is,
            /// "in full".
            root: String,
            /// How much.
            #[serde(default = "seven")]
            size: u64,
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            names: Vec<String>,
        }
    }

    fn seven() -> u64 {
        7
    }

    #[test]
    fn a_field_is_documented_by_its_comment_and_its_absence() {
        let found = fields(&Sample { root: "/".into(), size: 9, names: Vec::new() });
        let field = |name: &str, type_name: &str, is_required, default, doc: &str| Field {
            name: name.into(),
            type_name: type_name.into(),
            is_required,
            default,
            doc: doc.into(),
        };
        let expected = [
            field("root", "text", true, None, "Where it is, \"in full\"."),
            field("size", "number", false, Some(json!(7)), "How much."),
            field("names", "list of text", false, None, ""),
        ];
        assert_eq!(found, expected);
    }
}
