//! What switches a guard off.

use seckill_mysql::StatementEdit;
use seckill_redis::ScriptEdit;

/// A change of the production path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Switch {
    /// The text of a script, before Redis is sent it.
    Script(ScriptEdit),
    /// The text of a statement, before the database is sent it.
    Statement(StatementEdit),
    /// A change of the schema of the test's own database, after the migrations.
    Schema(&'static str),
}

impl Switch {
    pub(super) const fn script(
        file: &'static str,
        find: &'static str,
        replace: &'static str,
    ) -> Self {
        Self::Script(ScriptEdit {
            file,
            find,
            replace,
        })
    }

    pub(super) const fn statement(find: &'static str, replace: &'static str) -> Self {
        Self::Statement(StatementEdit { find, replace })
    }

    pub(super) fn as_script(&self) -> Option<ScriptEdit> {
        match self {
            Self::Script(edit) => Some(edit.clone()),
            Self::Statement(_) | Self::Schema(_) => None,
        }
    }

    pub(super) fn as_statement(&self) -> Option<StatementEdit> {
        match self {
            Self::Statement(edit) => Some(edit.clone()),
            Self::Script(_) | Self::Schema(_) => None,
        }
    }
}
