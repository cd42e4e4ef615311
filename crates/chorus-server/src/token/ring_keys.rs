//! Signatures of tokens, checked by `ring`: the same code that checks TLS in this process, and no second library.
//!
//! It makes no signature. **Invariant:** no shared secret and no `none` is an algorithm here.

use chorus_spec::{TokenAlgorithm, TokenIssuer};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, Result};
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey, Header};
use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

/// What `jsonwebtoken` asks; it has nothing of its own in this build.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _: &EncodingKey| -> Result<Box<dyn JwtSigner>> { Err(not_here()) },
    verifier_factory: verifier,
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| Err(not_here()),
        rsa_pub_components_from_public_key: |_| Err(not_here()),
        ec_pub_components_from_private_key: |_, _| Err(not_here()),
        ed_pub_components_from_private_key: |_, _| Err(not_here()),
        compute_digest: |_, _| Err(not_here()),
    },
};

/// Makes it the process's; once is enough.
pub(super) fn install() {
    // Whoever was first installed the same one: there is no other in this process.
    let _ = PROVIDER.install_default();
}

fn not_here() -> Error {
    ErrorKind::InvalidAlgorithm.into()
}

/// The header's algorithm, where the issuer may use it.
pub(super) fn algorithm(issuer: &TokenIssuer, header: &Header) -> Option<TokenAlgorithm> {
    issuer.algorithms.iter().copied().find(|it| ours(*it) == header.alg)
}

/// The same in the words of `jsonwebtoken`.
pub(super) fn ours(algorithm: TokenAlgorithm) -> Algorithm {
    match algorithm {
        TokenAlgorithm::Rs256 => Algorithm::RS256,
        TokenAlgorithm::Rs384 => Algorithm::RS384,
        TokenAlgorithm::Rs512 => Algorithm::RS512,
        TokenAlgorithm::Ps256 => Algorithm::PS256,
        TokenAlgorithm::Ps384 => Algorithm::PS384,
        TokenAlgorithm::Ps512 => Algorithm::PS512,
        TokenAlgorithm::Es256 => Algorithm::ES256,
        TokenAlgorithm::Es384 => Algorithm::ES384,
        TokenAlgorithm::EdDsa => Algorithm::EdDSA,
    }
}

/// How a signature of each algorithm is checked.
enum Check {
    Rsa(&'static RsaParameters),
    Curve(&'static dyn VerificationAlgorithm),
}

fn check(algorithm: Algorithm) -> Option<Check> {
    Some(match algorithm {
        Algorithm::RS256 => Check::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Check::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Check::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Check::Rsa(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Check::Rsa(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Check::Rsa(&signature::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Check::Curve(&signature::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Check::Curve(&signature::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Check::Curve(&signature::ED25519),
        _ => return None,
    })
}

/// A key, and the one algorithm that it is used with.
struct RingVerifier {
    algorithm: Algorithm,
    check: Check,
    key: DecodingKey,
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    // A key is never used with an algorithm of another family. Source: RFC 8725, section 3.1.
    if key.family() != algorithm.family() || key.family() == AlgorithmFamily::Hmac {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    let check = check(*algorithm).ok_or(ErrorKind::InvalidAlgorithm)?;
    Ok(Box::new(RingVerifier { algorithm: *algorithm, check, key: key.clone() }))
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], given: &Vec<u8>) -> std::result::Result<(), SignatureError> {
        let checked = match (&self.check, self.key.kind()) {
            (Check::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, given)
            }
            (Check::Curve(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(*algorithm, point).verify(message, given)
            }
            _ => Err(ring::error::Unspecified),
        };
        checked.map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jsonwebtoken::crypto::verify;

    /// Source: RFC 7515, appendix A.2 (key, message and signature).
    #[test]
    fn an_rsa_signature_of_the_standard_is_right_and_a_changed_one_is_not() {
        install();
        let n = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
        let key = DecodingKey::from_rsa_components(n, "AQAB").unwrap();
        let message = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        let right = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
        let verified = |message: &str, algorithm| verify(right, message.as_bytes(), &key, algorithm);
        assert!(verified(message, Algorithm::RS256).unwrap());
        assert!(!verified(&message.replace("eyJpc3Mi", "eyJpc3Nj"), Algorithm::RS256).unwrap());
        assert!(!verified(message, Algorithm::RS384).unwrap());
        assert!(verified(message, Algorithm::ES256).is_err(), "a key of another family");
        assert!(verified(message, Algorithm::HS256).is_err(), "a public key is no secret");
    }
}
