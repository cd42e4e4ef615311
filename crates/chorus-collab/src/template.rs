//! Templates: texts with slots, filled in one pass.
//!
//! **Invariant:** what is put into a slot is never searched for slots.

/// What fills the slots: a name and its text.
pub type Slots<'a> = [(&'a str, &'a str)];

/// Whether a template has that slot.
pub(crate) fn has_slot(template: &str, name: &str) -> bool {
    template.contains(&format!("{{{{{name}}}}}"))
}

/// Fills the slots of a template; an unknown `{{word}}` stays as it is.
#[must_use]
pub fn fill(template: &str, slots: &Slots<'_>) -> String {
    let named = |name: &str| slots.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    let mut out =
        String::with_capacity(template.len() + slots.iter().map(|(_, text)| text.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let slot = after.split_once("}}").and_then(|(name, tail)| Some((named(name.trim())?, tail)));
        if let Some((value, tail)) = slot {
            out.push_str(value);
            rest = tail;
        } else {
            out.push_str("{{");
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_filled_once_and_never_inside_what_fills_them() {
        let slots = [("original", "{{responses}} {{key}}"), ("responses", "R"), ("key", "k")];
        for (template, expect) in [
            ("Q: {{original}} A: {{responses}}", "Q: {{responses}} {{key}} A: R"),
            ("{{ responses }}", "R"),
            ("{{nobody}} {{responses}}", "{{nobody}} R"),
            ("{{ open", "{{ open"),
            ("{{{responses}}}", "{{{responses}}}"),
            ("", ""),
        ] {
            assert_eq!(fill(template, &slots), expect, "{template}");
        }
    }
}
