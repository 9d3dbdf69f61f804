//! Scripts with an edited text: how a negative control switches a guard off in the production path.

use std::collections::HashMap;

use seckill_application::Fault;

use crate::scripts::{ALL, Joined, Script};

const PORT: &str = "redis.script_edits";

/// A change of a script's text before Redis is sent it. For negative controls alone: a test
/// switches one guard off, runs the very same path, and shows what happens without it. A service
/// has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptEdit {
    /// The file in `lua/` without its extension: `gate_admit`, or `lib/holders` for steps that
    /// scripts share, which changes all of these scripts.
    pub file: &'static str,
    /// What the file says now, exactly once; otherwise connecting is refused, so that a control
    /// cannot outlive what it controls.
    pub find: &'static str,
    /// What it is to say.
    pub replace: &'static str,
}

/// The scripts that edits change, by name.
pub(crate) type Edited = HashMap<&'static str, Joined>;

/// Applies edits, one after the other.
pub(crate) fn apply(edits: &[ScriptEdit]) -> Result<Edited, Fault> {
    let mut files: HashMap<&str, String> = HashMap::new();
    for ScriptEdit {
        file,
        find,
        replace,
    } in edits
    {
        let known = ALL.iter().find_map(|script| script.part(file));
        let known = known.ok_or_else(|| refusal(file, "there is no such file"))?;
        let text = files.entry(file).or_insert_with(|| known.to_owned());
        if text.matches(find).count() != 1 {
            return Err(refusal(file, "it does not say this exactly once"));
        }
        *text = text.replacen(find, replace, 1);
    }
    let joined = |script: &&Script| {
        let changes = files.keys().any(|file| script.part(file).is_some());
        changes.then(|| (script.name, script.joined_with(&files)))
    };
    Ok(ALL.iter().filter_map(joined).collect())
}

fn refusal(file: &str, why: &str) -> Fault {
    Fault::broken(PORT, format!("cannot edit {file}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::{GATE_FACTS, GATE_STANDING};

    fn edit(file: &'static str, find: &'static str) -> ScriptEdit {
        ScriptEdit {
            file,
            find,
            replace: "return nil -- edited",
        }
    }

    #[test]
    fn a_shared_step_is_edited_in_every_script_that_has_it() {
        let edits = [edit("lib/sale", "sale.waiting = tonumber(got[11])")];
        let edited = apply(&edits).expect("it says this once");
        let facts = &edited[GATE_FACTS.name];
        assert!(facts.source.contains("-- edited"));
        assert_ne!(facts.hash, GATE_FACTS.joined().hash);
        assert!(!edited.contains_key(GATE_STANDING.name), "has no such step");
        assert!(!GATE_FACTS.joined().source.contains("-- edited"));
    }

    #[test]
    fn an_edit_that_does_not_fit_is_refused() {
        for (file, find) in [
            ("gate_nothing", "return"),
            ("gate_facts", "this is not said there"),
            ("lib/sale", "return nil"),
        ] {
            assert!(apply(&[edit(file, find)]).is_err(), "{file}: {find}");
        }
    }
}
