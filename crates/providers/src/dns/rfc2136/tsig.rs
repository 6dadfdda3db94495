//! TSIG (RFC 8945): signs requests and verifies answers.

use std::fmt;

use data_encoding::BASE64;
use hickory_proto::rr::{Name as WireName, TSigner, rdata::tsig::TsigAlgorithm};

use super::answer::Signature;
use netstead_settings::SecretValue;

use crate::SettingsError;

const TSIG: u16 = 250;
const ANY: u16 = 255;
/// How far the clocks may be apart, in seconds.
const FUDGE: u16 = 300;
/// How many messages of a transfer may come unsigned in a row (RFC 8945, section 5.3.1).
const MOST_UNSIGNED: usize = 99;

/// The algorithms that are both good enough and at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    pub const ALL: [Self; 3] = [Self::Sha256, Self::Sha384, Self::Sha512];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sha256 => "hmac-sha256",
            Self::Sha384 => "hmac-sha384",
            Self::Sha512 => "hmac-sha512",
        }
    }

    const fn wire(self) -> TsigAlgorithm {
        match self {
            Self::Sha256 => TsigAlgorithm::HmacSha256,
            Self::Sha384 => TsigAlgorithm::HmacSha384,
            Self::Sha512 => TsigAlgorithm::HmacSha512,
        }
    }
}

/// The key shared with the server.
pub(super) struct TsigKey {
    signer: TSigner,
    /// In canonical wire form.
    name: Vec<u8>,
    algorithm: Vec<u8>,
    shown: String,
}

impl TsigKey {
    pub(super) fn new(name: &str, algorithm: &str, secret: &SecretValue) -> Result<Self, SettingsError> {
        let written = algorithm.trim_end_matches('.');
        let known = Algorithm::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(written));
        let algorithm = known.ok_or_else(|| {
            let key = name.trim_end_matches('.');
            let problem = format!(
                "`{written}` is not supported; make a key of hmac-sha256, hmac-sha384 or hmac-sha512 on the server: \
                 BIND `tsig-keygen -a hmac-sha256 {key}`, Knot `keymgr -t {key} hmac-sha256`, PowerDNS `pdnsutil \
                 generate-tsig-key {key} hmac-sha256`"
            );
            SettingsError::new("tsig_algorithm", problem)
        })?;
        let wire = WireName::from_ascii(name)
            .ok()
            .filter(|wire| !wire.is_root())
            .ok_or_else(|| SettingsError::new("tsig_name", format!("`{name}` is no name of a key")))?;
        let bytes = BASE64
            .decode(secret.expose().trim().as_bytes())
            .ok()
            .filter(|bytes| !bytes.is_empty())
            .ok_or_else(|| SettingsError::new("tsig_secret", "it is not base64"))?;
        let shown = wire.to_ascii().trim_end_matches('.').to_owned();
        let canonical_name = canonical(&wire);
        let signer = TSigner::new(bytes, algorithm.wire(), wire, FUDGE)
            .map_err(|error| SettingsError::new("tsig_algorithm", error.to_string()))?;
        Ok(Self {
            signer,
            name: canonical_name,
            algorithm: canonical(&algorithm.wire().to_name()),
            shown: format!("{shown} ({})", algorithm.as_str()),
        })
    }

    /// For people: the key's name and algorithm.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// Appends the signature to `message` and gives the MAC that the answer is chained to.
    pub(super) fn sign(&self, message: &mut Vec<u8>, time: u64) -> Result<Vec<u8>, String> {
        let mut signed = message.clone();
        let clock = clock(time, FUDGE);
        signed.extend(self.variables(&clock, 0, &[]));
        let mac = self.signer.sign(&signed).map_err(|error| error.to_string())?;
        let id = message.get(..2).map(<[u8]>::to_vec).unwrap_or_default();
        let mut data = self.algorithm.clone();
        data.extend_from_slice(&clock);
        data.extend(length(&mac));
        data.extend_from_slice(&mac);
        data.extend(id);
        data.extend([0, 0, 0, 0]);
        message.extend_from_slice(&self.name);
        message.extend(TSIG.to_be_bytes());
        message.extend(ANY.to_be_bytes());
        message.extend([0; 4]);
        message.extend(length(&data));
        message.extend(data);
        add_to_additional(message, 1);
        Ok(mac)
    }

    fn variables(&self, clock: &[u8], error: u16, other: &[u8]) -> Vec<u8> {
        let mut bytes = self.name.clone();
        bytes.extend(ANY.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend_from_slice(&self.algorithm);
        bytes.extend_from_slice(clock);
        bytes.extend(error.to_be_bytes());
        bytes.extend(length(other));
        bytes.extend_from_slice(other);
        bytes
    }
}

impl fmt::Debug for TsigKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.shown)
    }
}

/// Verifies the messages of one answer, each chained to the one before.
#[derive(Debug)]
pub(super) struct Verifier<'k> {
    key: &'k TsigKey,
    previous: Vec<u8>,
    first: bool,
    /// Messages since the last signature, which the next one covers.
    unsigned: Vec<u8>,
    count: usize,
}

impl<'k> Verifier<'k> {
    pub(super) fn new(key: &'k TsigKey, request: Vec<u8>) -> Self {
        Self { key, previous: request, first: true, unsigned: Vec::new(), count: 0 }
    }

    /// Checks one message; `now` is in seconds since 1970. An unsigned one is taken only between signed ones.
    pub(super) fn check(
        &mut self,
        message: &[u8],
        signature: Option<&Signature>,
        now: u64,
    ) -> Result<(), String> {
        let Some(signature) = signature else {
            self.count += 1;
            if self.first || self.count > MOST_UNSIGNED {
                return Err("it is not signed".into());
            }
            self.unsigned.extend_from_slice(message);
            return Ok(());
        };
        if signature.name != self.key.name || signature.algorithm != self.key.algorithm {
            return Err("it is signed with another key".into());
        }
        let mut plain = message.get(..signature.start).unwrap_or_default().to_vec();
        for (byte, own) in plain.iter_mut().zip(signature.id.to_be_bytes()) {
            *byte = own;
        }
        add_to_additional(&mut plain, -1);
        let clock = clock(signature.time, signature.fudge);
        let mut signed = Vec::from(length(&self.previous));
        signed.extend_from_slice(&self.previous);
        signed.append(&mut self.unsigned);
        signed.extend(plain);
        if self.first {
            signed.extend(self.key.variables(&clock, signature.error, &signature.other));
        } else {
            signed.extend_from_slice(&clock);
        }
        self.key.signer.verify(&signed, &signature.mac).map_err(|_| "its signature is wrong".to_owned())?;
        if now.abs_diff(signature.time) > u64::from(signature.fudge) {
            let apart = now.abs_diff(signature.time);
            return Err(format!("its clock is {apart} s apart from ours"));
        }
        self.previous.clone_from(&signature.mac);
        self.first = false;
        self.count = 0;
        Ok(())
    }

    /// Whether the last message was signed, as the last of an answer must be.
    pub(super) fn complete(&self) -> bool {
        !self.first && self.count == 0
    }
}

/// A name in lower case, without compression.
pub(super) fn canonical(name: &WireName) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(32);
    for label in name {
        bytes.push(u8::try_from(label.len()).unwrap_or(u8::MAX));
        bytes.extend(label.iter().map(u8::to_ascii_lowercase));
    }
    bytes.push(0);
    bytes
}

fn clock(time: u64, fudge: u16) -> Vec<u8> {
    let mut bytes: Vec<u8> = time.to_be_bytes().into_iter().skip(2).collect();
    bytes.extend(fudge.to_be_bytes());
    bytes
}

fn length(bytes: &[u8]) -> [u8; 2] {
    u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_be_bytes()
}

fn add_to_additional(message: &mut [u8], change: i16) {
    if let Some(place) = message.get_mut(10..12) {
        let old = place.iter().fold(0_u16, |sum, byte| (sum << 8) | u16::from(*byte));
        place.copy_from_slice(&old.wrapping_add_signed(change).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_algorithms_are_refused_with_the_line_to_type() {
        let error = TsigKey::new("k1.", "hmac-md5", &SecretValue::new("AAAA")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "tsig_algorithm: `hmac-md5` is not supported; make a key of hmac-sha256, hmac-sha384 or hmac-sha512 on \
             the server: BIND `tsig-keygen -a hmac-sha256 k1`, Knot `keymgr -t k1 hmac-sha256`, PowerDNS `pdnsutil \
             generate-tsig-key k1 hmac-sha256`"
        );
    }

    #[test]
    fn a_key_does_not_print_its_secret() {
        let key = TsigKey::new("k1", "HMAC-SHA512.", &SecretValue::new("aHVudGVyMg==")).unwrap();
        assert_eq!(format!("{key:?}"), "Key(k1 (hmac-sha512))");
        let error = TsigKey::new("k1", "hmac-sha256", &SecretValue::new("hunter2!")).unwrap_err();
        assert_eq!(error.to_string(), "tsig_secret: it is not base64");
    }
}
