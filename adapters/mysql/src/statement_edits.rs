//! Statements with an edited text: how a negative control switches a guard off in the production
//! path.

use std::sync::{Arc, OnceLock};

use sqlx::{AssertSqlSafe, Execute, SqlSafeStr as _, SqlStr};

use crate::fault::Trouble;
use crate::session::Statement;

/// A change of a statement's text before the database is sent it. For negative controls alone: a
/// test switches one guard off, runs the very same path, and shows what happens without it. A
/// service has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementEdit {
    /// What one statement says, and says once. If another says it too, or this one twice, the
    /// statement fails: a control must not switch off more than it names.
    pub find: &'static str,
    /// What it is to say, with as many parameters.
    pub replace: &'static str,
}

/// The edits of one ledger; empty in a service.
#[derive(Clone)]
pub(crate) struct Edits(Arc<[(StatementEdit, OnceLock<SqlStr>)]>);

impl Edits {
    pub(crate) fn new(edits: &[StatementEdit]) -> Self {
        let unused = |edit: &StatementEdit| (edit.clone(), OnceLock::new());
        Self(edits.iter().map(unused).collect())
    }

    /// The statement as the database is sent it.
    pub(crate) fn apply<'q>(&self, mut statement: Statement<'q>) -> Result<Statement<'q>, Trouble> {
        if self.0.is_empty() {
            return Ok(statement);
        }
        let arguments = statement.take_arguments().map_err(Trouble::Broken)?;
        let said = statement.sql();
        let mut text = said.as_str().to_owned();
        for (edit, first) in self.0.iter() {
            let times = said.as_str().matches(edit.find).count();
            if times > 1 || (times == 1 && first.get_or_init(|| said.clone()) != &said) {
                return Err(Trouble::broken("an edit fits more than one place"));
            }
            text = text.replace(edit.find, edit.replace);
        }
        let text = AssertSqlSafe(text).into_sql_str();
        Ok(sqlx::query_with(text, arguments.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::statement;

    const EDIT: StatementEdit = StatementEdit {
        find: "WHERE stock >= ?",
        replace: "WHERE ? IS NOT NULL",
    };

    #[test]
    fn one_statement_is_edited_and_the_others_are_left_alone() {
        let edits = Edits::new(&[EDIT]);
        let sent = |sql| edits.apply(statement(sql).bind(1)).map(Execute::sql);
        let take = "UPDATE s SET stock = 0 WHERE stock >= ?";
        for _ in 0..2 {
            let sent = sent(take).expect("it says this once");
            assert_eq!(sent.as_str(), "UPDATE s SET stock = 0 WHERE ? IS NOT NULL");
        }
        let read = sent("SELECT ?").expect("it does not say this");
        assert_eq!(read.as_str(), "SELECT ?");
        assert!(sent("DELETE FROM s WHERE stock >= ?").is_err());
    }
}
