//! Texts that people write, as the document describes them; what they may be is said by the domain.

use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};

/// No control characters, no breaks, nothing that overrides the direction of the text around it,
/// and something to see.
const LINE: &str = r"^(?!\s*$)[^\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]+$";
/// The same with tabs and line breaks, or nothing at all.
const TEXT: &str =
    r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]*$";

fn line(example: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(200))
        .pattern(Some(LINE))
        .examples([example])
}

/// A title.
pub(crate) fn title() -> Object {
    line("Dinner for two").build()
}

/// A reason.
pub(crate) fn reason() -> Object {
    let reason = line("the supplier has more").description(Some("Why, in your words."));
    reason.build()
}

/// A description, or none.
pub(crate) fn description() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .max_length(Some(2_000))
        .pattern(Some(TEXT))
        .description(Some("Null or an empty one is none."))
        .examples(["Any evening but Sunday"])
        .build()
}
