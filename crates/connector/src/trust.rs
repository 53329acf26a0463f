//! Whether the content of a data source may say what is reported of it, as `domesday:ignore` and `.domesdayignore` do. Every
//! kind has the field; the registry reads it, so that no connector need know of it, and asks the kind what `auto` means.

use std::borrow::Cow;

use domesday_model::TrustContent;
use serde_json::Value;

use crate::fields::Field;
use crate::{ConnectorError, ConnectorFactory};

/// The field of every configuration.
pub const TRUST_CONTENT: &str = "trust_content";

/// A configuration without the field, and what it says.
pub(crate) fn split<'c>(
    kind: &'static str,
    configuration: &'c Value,
) -> Result<(Cow<'c, Value>, TrustContent), ConnectorError> {
    let Some(given) = configuration.get(TRUST_CONTENT) else {
        return Ok((Cow::Borrowed(configuration), TrustContent::Auto));
    };
    let trust = serde_json::from_value(given.clone()).map_err(|_| ConnectorError::Configuration {
        kind,
        detail: format!("field `{TRUST_CONTENT}`: must be `yes`, `no` or `auto`"),
    })?;
    let mut own = configuration.clone();
    own.as_object_mut().map(|fields| fields.remove(TRUST_CONTENT));
    Ok((Cow::Owned(own), trust))
}

/// Whether content is trusted: what the data source and the job say of it together, or else what it is.
pub(crate) fn resolve(
    factory: &dyn ConnectorFactory,
    configuration: &Value,
    said: TrustContent,
) -> TrustContent {
    match said {
        TrustContent::Auto if factory.is_local_tree(configuration) => TrustContent::Yes,
        TrustContent::Auto => TrustContent::No,
        said => said,
    }
}

/// The field, for the manual.
pub(crate) fn field() -> Field {
    Field {
        name: TRUST_CONTENT.to_owned(),
        type_name: "`yes`, `no` or `auto`".to_owned(),
        is_required: false,
        default: Some(Value::from(TrustContent::Auto.as_str())),
        doc: "Whether ignore marks and ignore files in the content count. `auto` trusts a local folder or work tree, and \
              nothing else."
            .to_owned(),
    }
}
