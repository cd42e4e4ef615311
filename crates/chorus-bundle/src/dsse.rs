//! Signed statements: DSSE envelopes over in-toto statements, by Ed25519 keys.
//!
//! Source: DSSE 1.0.2 (protocol and envelope), in-toto Attestation Framework v1 (statement), RFC 8032 (Ed25519), RFC 8410
//! (its keys in PKCS #8 and SPKI). It knows no file, no clock and no randomness: keys, seeds and times are arguments.
//! **Invariant:** a statement is read only after its signature has been verified, and never from other bytes.

use crate::canonical;
use crate::oci::is_digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use chorus_spec::Digest;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The type of what is signed. Source: in-toto, DSSE layer.
pub const PAYLOAD: &str = "application/vnd.in-toto+json";
const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// What stands before the kind of a statement of ours in its `predicateType`.
const PREDICATE: &str = "urn:chorus:mom:";
/// Most bytes of an envelope.
pub const MAX_ENVELOPE_BYTES: u64 = 1024 * 1024;

/// What a statement is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Whoever signs it made or vouches for the bundle.
    Signature,
    /// Somebody has approved it for use.
    Approval,
    /// The figures of an evaluation.
    Scorecard,
    /// Where it comes from.
    Provenance,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Signature, Self::Approval, Self::Scorecard, Self::Provenance];

    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Approval => "approval",
            Self::Scorecard => "scorecard",
            Self::Provenance => "provenance",
        }
    }

    /// The kind of that word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }

    fn predicate(self) -> String {
        format!("{PREDICATE}{}:v1", self.as_str())
    }
}

/// What is said of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// What it is about.
    pub kind: Kind,
    /// The bundle's identity.
    pub bundle: String,
    /// Its name and version, for people.
    pub name: String,
    /// When it was said, in seconds since 1970.
    pub issued_s: u64,
    /// Until when it holds, in seconds since 1970; absent: always.
    pub expires_s: Option<u64>,
    /// What is said, such as a scorecard.
    pub content: Value,
}

/// A signed statement on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Envelope {
    /// The statement, in base64.
    pub payload: String,
    /// [`PAYLOAD`].
    pub payload_type: String,
    /// By whom.
    pub signatures: Vec<Signed>,
}

/// One signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// A hint which key it is.
    #[serde(default)]
    pub keyid: String,
    /// The signature, in base64.
    pub sig: String,
}

/// Why a statement or a key is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealFault {
    /// A key that cannot be read.
    #[error("no Ed25519 key in PEM: {0}")]
    Key(String),
    /// An envelope or a statement without what it must have.
    #[error("no signed statement: {0}")]
    Shape(String),
    /// No known key has signed it.
    #[error("no key that is known here has signed it")]
    Signature,
}

/// A key that signs.
pub struct Key(SigningKey);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// The key of a seed of 32 random bytes.
    #[must_use]
    pub fn of_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Reads a private key (PKCS #8 in PEM, as `openssl genpkey -algorithm ed25519` writes it).
    ///
    /// # Errors
    /// [`SealFault::Key`].
    pub fn read(pem: &str) -> Result<Self, SealFault> {
        SigningKey::from_pkcs8_pem(pem.trim()).map(Self).map_err(|fault| SealFault::Key(fault.to_string()))
    }

    /// Its text: a secret.
    ///
    /// # Errors
    /// [`SealFault::Key`]; no key of this module has one.
    pub fn write(&self) -> Result<String, SealFault> {
        let pem = self.0.to_pkcs8_pem(LineEnding::LF).map_err(|fault| SealFault::Key(fault.to_string()))?;
        Ok(pem.as_str().to_owned())
    }

    /// The key that verifies.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a claim.
    ///
    /// # Errors
    /// A claim that has no canonical form.
    pub fn sign(&self, claim: &Claim) -> Result<Envelope, SealFault> {
        let payload = statement(claim)?;
        let signature = self.0.sign(&pre_authentication(PAYLOAD, &payload));
        let signed = Signed { keyid: self.public().id(), sig: BASE64.encode(signature.to_bytes()) };
        Ok(Envelope {
            payload: BASE64.encode(&payload),
            payload_type: PAYLOAD.to_owned(),
            signatures: vec![signed],
        })
    }
}

/// A key that verifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads a public key (SPKI in PEM).
    ///
    /// # Errors
    /// [`SealFault::Key`].
    pub fn read(pem: &str) -> Result<Self, SealFault> {
        let key = VerifyingKey::from_public_key_pem(pem.trim());
        key.map(Self).map_err(|fault| SealFault::Key(fault.to_string()))
    }

    /// Its text.
    ///
    /// # Errors
    /// [`SealFault::Key`]; no key of this module has one.
    pub fn write(&self) -> Result<String, SealFault> {
        self.0.to_public_key_pem(LineEnding::LF).map_err(|fault| SealFault::Key(fault.to_string()))
    }

    /// Its name: the digest of its bytes.
    #[must_use]
    pub fn id(&self) -> String {
        Digest::of(self.0.as_bytes()).to_string()
    }

    fn has_signed(&self, bytes: &[u8], signature: &str) -> bool {
        let signature = BASE64.decode(signature).ok().and_then(|it| Signature::from_slice(&it).ok());
        signature.is_some_and(|it| self.0.verify_strict(bytes, &it).is_ok())
    }
}

/// What is signed: type and body with their lengths, so that neither can be taken for the other.
fn pre_authentication(kind: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {kind} {} ", kind.len(), body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

#[derive(Serialize, Deserialize)]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    predicate: Predicate,
}

#[derive(Serialize, Deserialize)]
struct Subject {
    name: String,
    digest: Hex,
}

#[derive(Serialize, Deserialize)]
struct Hex {
    sha256: String,
}

#[derive(Serialize, Deserialize)]
struct Predicate {
    issued_s: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_s: Option<u64>,
    #[serde(default)]
    content: Value,
}

fn statement(claim: &Claim) -> Result<Vec<u8>, SealFault> {
    let sha256 = claim.bundle.strip_prefix("sha256:").filter(|_| is_digest(&claim.bundle));
    let sha256 = sha256.ok_or_else(|| SealFault::Shape("the subject is no digest".to_owned()))?.to_owned();
    let statement = Statement {
        kind: STATEMENT.to_owned(),
        subject: vec![Subject { name: claim.name.clone(), digest: Hex { sha256 } }],
        predicate_type: claim.kind.predicate(),
        predicate: Predicate {
            issued_s: claim.issued_s,
            expires_s: claim.expires_s,
            content: claim.content.clone(),
        },
    };
    let value = serde_json::to_value(statement).map_err(|fault| SealFault::Shape(fault.to_string()))?;
    canonical::write(&value).map_err(|fault| SealFault::Shape(fault.to_string()))
}

/// What an envelope says, and which of these keys have said it.
///
/// # Errors
/// [`SealFault`]: nothing of what it says is handed out then.
pub fn open<'k>(envelope: &[u8], keys: &'k [PublicKey]) -> Result<(Claim, Vec<&'k PublicKey>), SealFault> {
    let shape = |fault: String| SealFault::Shape(fault);
    let value = canonical::parse(envelope).map_err(|fault| shape(fault.to_string()))?;
    let envelope: Envelope = serde_json::from_value(value).map_err(|fault| shape(fault.to_string()))?;
    if envelope.payload_type != PAYLOAD {
        return Err(shape(format!("the payload is `{}`", envelope.payload_type)));
    }
    let payload = BASE64.decode(&envelope.payload).map_err(|fault| shape(fault.to_string()))?;
    let bytes = pre_authentication(PAYLOAD, &payload);
    let has_signed = |key: &&PublicKey| envelope.signatures.iter().any(|it| key.has_signed(&bytes, &it.sig));
    let signers: Vec<&PublicKey> = keys.iter().filter(has_signed).collect();
    if signers.is_empty() {
        return Err(SealFault::Signature);
    }
    let value = canonical::parse(&payload).map_err(|fault| shape(fault.to_string()))?;
    let statement: Statement = serde_json::from_value(value).map_err(|fault| shape(fault.to_string()))?;
    Ok((claim(statement)?, signers))
}

fn claim(statement: Statement) -> Result<Claim, SealFault> {
    let wrong = |what: &str| SealFault::Shape(format!("{what} is not what a statement of a bundle has"));
    if statement.kind != STATEMENT {
        return Err(wrong("_type"));
    }
    let kind = Kind::ALL.into_iter().find(|it| it.predicate() == statement.predicate_type);
    let kind = kind.ok_or_else(|| wrong("predicateType"))?;
    let Ok([subject]) = <[Subject; 1]>::try_from(statement.subject) else {
        return Err(wrong("subject"));
    };
    let bundle = format!("sha256:{}", subject.digest.sha256);
    if !is_digest(&bundle) {
        return Err(wrong("subject.digest"));
    }
    let Predicate { issued_s, expires_s, content } = statement.predicate;
    Ok(Claim { kind, bundle, name: subject.name, issued_s, expires_s, content })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said() -> Claim {
        Claim {
            kind: Kind::Approval,
            bundle: Digest::of(b"bundle").to_string(),
            name: "acme/helpdesk 1.0.0".to_owned(),
            issued_s: 1_700_000_000,
            expires_s: Some(1_800_000_000),
            content: json!({ "by": "release" }),
        }
    }

    #[test]
    fn what_is_signed_has_its_lengths_before_it() {
        // Source: the example of the DSSE protocol.
        let bytes = pre_authentication("http://example.com/HelloWorld", b"hello world");
        assert_eq!(bytes, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }

    #[test]
    fn a_statement_opens_with_its_key_and_with_no_other() {
        let (key, other) = (Key::of_seed(&[7; 32]), Key::of_seed(&[8; 32]));
        let envelope = serde_json::to_vec(&key.sign(&said()).unwrap()).unwrap();
        let keys = [other.public(), key.public()];
        let (claim, signers) = open(&envelope, &keys).unwrap();
        assert_eq!((claim, signers), (said(), vec![&keys[1]]));
        assert_eq!(open(&envelope, &keys[..1]), Err(SealFault::Signature));
        assert_eq!(open(&envelope, &[]), Err(SealFault::Signature));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let key = Key::of_seed(&[7; 32]);
        let sealed = key.sign(&said()).unwrap();
        let keys = [key.public()];
        let payload = BASE64.decode(&sealed.payload).unwrap();
        for at in 0..payload.len() {
            let mut changed = payload.clone();
            changed[at] ^= 1;
            let envelope = Envelope { payload: BASE64.encode(changed), ..sealed.clone() };
            let envelope = serde_json::to_vec(&envelope).unwrap();
            assert_eq!(open(&envelope, &keys), Err(SealFault::Signature), "byte {at}");
        }
        let typed = Envelope { payload_type: "text/plain".to_owned(), ..sealed };
        assert!(matches!(open(&serde_json::to_vec(&typed).unwrap(), &keys), Err(SealFault::Shape(_))));
    }

    #[test]
    fn keys_are_read_as_others_write_them() {
        // Source: RFC 8410 §10.1 and §10.3.
        let public = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";
        let private = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
        let key = Key::read(private).unwrap();
        assert_eq!(key.public(), PublicKey::read(public).unwrap());
        assert_eq!(key.public().write().unwrap(), public);
        assert_eq!(Key::read(&key.write().unwrap()).unwrap().public(), key.public());
        assert!(Key::read("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----").is_err());
        assert_eq!(format!("{key:?}"), "Key");
    }
}
