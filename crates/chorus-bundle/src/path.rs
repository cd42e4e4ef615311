//! Names of files inside a source directory or a bundle: `/` between folders, relative, on every machine the same.
//!
//! It knows no file system. **Invariant:** a name that passed [`check`] stays below the folder that it is joined to.

use std::collections::BTreeMap;

/// Files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The most characters of a name.
const MAX_LENGTH: usize = 200;

/// The name, if it can be written safely on every system.
///
/// # Errors
/// What is wrong with it.
pub fn check(name: &str) -> Result<&str, &'static str> {
    if name.is_empty() || name.len() > MAX_LENGTH {
        return Err("is empty or longer than 200 bytes");
    }
    if name.starts_with('/') || name.contains(['\\', ':']) {
        return Err("is not relative, or holds `\\` or `:`");
    }
    if name.chars().any(char::is_control) {
        return Err("holds a control character");
    }
    if name.split('/').any(|step| step.is_empty() || step == "." || step == "..") {
        return Err("has an empty step, `.` or `..`");
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_stay_below_their_folder_pass() {
        for good in ["prompts/a.md", "knowledge/böse/labels.json", "README.md", "a..b/c."] {
            assert_eq!(check(good), Ok(good));
        }
        let long = "a".repeat(201);
        for bad in
            ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a", "C:x", "a\\b", "a\nb", "a\0", &long]
        {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }
}
