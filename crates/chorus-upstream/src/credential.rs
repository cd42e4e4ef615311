//! Credentials that are fetched: from a file, or from what a program prints.
//!
//! **Invariant:** no text of an error holds the credential, or anything that the program said.

use crate::Secret;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// Longest time that a program may take.
const COMMAND_TIME: Duration = Duration::from_secs(10);
/// Most bytes of a credential.
const MOST_BYTES: u64 = 64 << 10;

/// Where a credential comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A file that holds nothing else.
    File(PathBuf),
    /// A program and its arguments; no shell. It prints the credential and ends with status 0.
    Command(Vec<String>),
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialFault {
    /// The file cannot be read.
    #[error("the credential's file cannot be read: {0}")]
    File(String),
    /// The program cannot be run.
    #[error("the credential's program cannot be run: {0}")]
    Command(String),
    /// It did not end in time.
    #[error("the credential's program did not end within {} s", COMMAND_TIME.as_secs())]
    Slow,
    /// It ended badly.
    #[error("the credential's program ended with {0}")]
    Status(std::process::ExitStatus),
    /// Nothing, too much, or no text.
    #[error("the credential is empty, longer than {MOST_BYTES} bytes, or no text")]
    Unusable,
}

impl Credential {
    /// How long a fetched credential is used before it is fetched anew: a file is cheap to read, a program is not.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        match self {
            Self::File(_) => Duration::from_secs(10),
            Self::Command(_) => Duration::from_secs(300),
        }
    }

    /// Fetches it.
    ///
    /// # Errors
    /// [`CredentialFault`].
    pub async fn fetch(&self) -> Result<Secret, CredentialFault> {
        let bytes = match self {
            Self::File(path) => {
                let file = tokio::fs::File::open(path).await;
                let file = file.map_err(|fault| CredentialFault::File(fault.to_string()))?;
                let read = bounded(file).await;
                read.map_err(|fault| CredentialFault::File(fault.to_string()))?
            }
            Self::Command(words) => tokio::time::timeout(COMMAND_TIME, printed(words))
                .await
                .map_err(|_| CredentialFault::Slow)??,
        };
        let text = String::from_utf8(bytes).map_err(|_| CredentialFault::Unusable)?;
        if text.trim().is_empty() || text.len() as u64 > MOST_BYTES {
            return Err(CredentialFault::Unusable);
        }
        Ok(Secret::new(&text))
    }
}

/// What a program prints; dropping the future ends the program.
async fn printed(words: &[String]) -> Result<Vec<u8>, CredentialFault> {
    let fault = |fault: &std::io::Error| CredentialFault::Command(fault.kind().to_string());
    let (program, arguments) = words.split_first().ok_or(CredentialFault::Unusable)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|e| fault(&e))?;
    let output = child.stdout.take().ok_or(CredentialFault::Unusable)?;
    let bytes = bounded(output).await.map_err(|e| fault(&e))?;
    let status = child.wait().await.map_err(|e| fault(&e))?;
    if status.success() { Ok(bytes) } else { Err(CredentialFault::Status(status)) }
}

/// All of it, or one byte more than is allowed.
async fn bounded(source: impl tokio::io::AsyncRead + Unpin) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MOST_BYTES + 1).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Credential {
        Credential::Command(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[tokio::test]
    async fn what_a_program_prints_without_its_newline() {
        let secret = command(&["printf", "sk-1\\n"]).fetch().await.unwrap();
        assert!(secret == Secret::new("sk-1"));
        assert_eq!(format!("{secret:?}"), "***");
    }

    #[tokio::test]
    async fn a_program_that_fails_says_nothing_of_what_it_printed() {
        let fault = command(&["sh", "-c", "echo sk-1; exit 3"]).fetch().await.unwrap_err();
        assert!(matches!(fault, CredentialFault::Status(_)), "{fault}");
        assert!(!fault.to_string().contains("sk-1"));
        assert!(matches!(command(&["/no/such/program"]).fetch().await, Err(CredentialFault::Command(_))));
        assert_eq!(command(&["true"]).fetch().await, Err(CredentialFault::Unusable));
    }

    #[tokio::test]
    async fn a_file_is_read_and_bounded() {
        let path = std::env::temp_dir().join(format!("chorus-credential-{}", std::process::id()));
        std::fs::write(&path, "sk-2\n").unwrap();
        assert!(Credential::File(path.clone()).fetch().await.unwrap() == Secret::new("sk-2"));
        std::fs::write(&path, "x".repeat(70_000)).unwrap();
        assert_eq!(Credential::File(path.clone()).fetch().await, Err(CredentialFault::Unusable));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(Credential::File(path).fetch().await, Err(CredentialFault::File(_))));
    }
}
