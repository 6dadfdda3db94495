//! Apps, logins and tokens.

use serde_json::json;

use super::{Held, PhpIpamSecurity, answer::Answer};
use crate::fake_http::HttpRequest;

/// How long a token is good after its last use.
const TOKEN_LIFE: u64 = 6 * 3600;
/// More refused logins than this block an address.
const MOST_REFUSED: usize = 10;
const BLOCK: u64 = 300;
const BLOCKED: &str = "Your IP has been blocked for 5 minutes because of excesive login failures";

#[derive(Debug)]
pub(super) struct App {
    pub(super) security: PhpIpamSecurity,
    /// 0 off, 1 read, 2 read and write.
    pub(super) permissions: u8,
}

#[derive(Debug)]
pub(super) struct Token {
    text: String,
    expires: u64,
}

impl Held {
    /// Everything that is judged before the body is read.
    pub(super) fn admit(&self, request: &HttpRequest, app: &str) -> Result<(), Answer> {
        if self.off {
            return Err(Answer::refused(503, "API server disabled"));
        }
        let Some(app) = self.apps.get(app) else {
            return Err(Answer::refused(400, "Invalid application id"));
        };
        if app.permissions == 0 {
            return Err(Answer::refused(503, "Application disabled"));
        }
        let secure = match app.security {
            PhpIpamSecurity::SslToken | PhpIpamSecurity::SslCode => self.https,
            PhpIpamSecurity::None => self.allow_unsafe,
            PhpIpamSecurity::Crypt if request.parameter("enc_request").is_none() => {
                return Err(Answer::refused(503, "Invalid enc_request"));
            }
            // Requests of apps with encryption: Netstead sends none.
            PhpIpamSecurity::Crypt => return Err(Answer::refused(501, "Not Implemented")),
        };
        if secure { Ok(()) } else { Err(Answer::refused(503, "SSL connection is required for API")) }
    }

    /// The controller `user`: logs in, renews, logs out.
    pub(super) fn user(&mut self, request: &HttpRequest, app: &str) -> Result<Answer, Answer> {
        let by_code = self.apps.get(app).is_some_and(|app| app.security == PhpIpamSecurity::SslCode);
        if by_code && request.method != "GET" {
            self.authorize_code(request)?;
            return Err(Answer::refused(409, "Authentication not needed"));
        }
        self.check_block()?;
        match request.method.as_str() {
            "POST" => self.log_in(request),
            "GET" | "PATCH" => {
                let expires = self.renew(request).ok_or_else(|| Answer::refused(403, "Invalid token"))?;
                Ok(Answer::data(json!({ "expires": written(expires) })))
            }
            "DELETE" => {
                self.renew(request).ok_or_else(|| Answer::refused(403, "Invalid token"))?;
                self.token = None;
                Ok(Answer::data(json!(["Token removed"])))
            }
            _ => Err(Answer::refused(501, "Not Implemented")),
        }
    }

    fn log_in(&mut self, request: &HttpRequest) -> Result<Answer, Answer> {
        let Some(given) = request.header("authorization").and_then(|value| value.strip_prefix("Basic "))
        else {
            return Err(Answer::refused(400, "Please provide username and password"));
        };
        self.logins += 1;
        if given != base64(format!("{}:{}", self.user.0, self.user.1).as_bytes()) {
            self.refused.push(self.now);
            return Err(Answer::refused(500, "Invalid username or password"));
        }
        self.refused.clear();
        let expires = self.now + TOKEN_LIFE;
        let logins = self.logins;
        let live = self.token.take().filter(|token| token.expires > self.now);
        let text = live.map_or_else(|| format!("fake.token.number.{logins:06}"), |token| token.text);
        let answer = Answer::data(json!({ "token": text, "expires": written(expires) }));
        self.token = Some(Token { text, expires });
        Ok(answer)
    }

    /// Lets a request to another controller pass, if its token or code is right and its app may do it.
    pub(super) fn authorize(&mut self, request: &HttpRequest, app: &str) -> Result<(), Answer> {
        self.check_block()?;
        let Some(app) = self.apps.get(app) else {
            return Err(Answer::refused(400, "Invalid application id"));
        };
        let (security, permissions) = (app.security, app.permissions);
        if security == PhpIpamSecurity::SslCode {
            self.authorize_code(request)?;
        } else if self.renew(request).is_none() {
            return Err(Answer::refused(401, "Unauthorized"));
        }
        if request.method != "GET" && permissions < 2 {
            return Err(Answer::refused(401, "invalid permissions"));
        }
        Ok(())
    }

    fn authorize_code(&self, request: &HttpRequest) -> Result<(), Answer> {
        self.check_block()?;
        match token(request) {
            Some(super::CODE) => Ok(()),
            Some(_) => Err(Answer::refused(403, "Invalid token")),
            None => Err(Answer::refused(401, "Unauthorized")),
        }
    }

    fn check_block(&self) -> Result<(), Answer> {
        let recent = self.refused.iter().filter(|at| self.now < **at + BLOCK).count();
        if recent > MOST_REFUSED { Err(Answer::refused(500, BLOCKED)) } else { Ok(()) }
    }

    /// The new end of the token of a request; none if that is not good.
    fn renew(&mut self, request: &HttpRequest) -> Option<u64> {
        let held = self.token.as_mut().filter(|held| held.expires > self.now)?;
        if token(request) != Some(&held.text) {
            return None;
        }
        held.expires = self.now + TOKEN_LIFE;
        Some(held.expires)
    }
}

fn token(request: &HttpRequest) -> Option<&str> {
    request.header("phpipam-token").or_else(|| request.header("token"))
}

/// A time as phpIPAM writes it: in the server's own zone, without saying which.
fn written(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    format!("2030-01-{:02} {:02}:{:02}:{:02}", days % 28 + 1, rest / 3600, rest / 60 % 60, rest % 60)
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4_usize {
            let digit = usize::try_from(bits >> (18 - 6 * place) & 63).ok().and_then(|at| DIGITS.get(at));
            text.push(if place > chunk.len() { '=' } else { digit.map_or('=', |digit| char::from(*digit)) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        assert_eq!(
            [base64(b"Man"), base64(b"Ma"), base64(b"M"), base64(b"Admin:ipamadmin")],
            ["TWFu", "TWE=", "TQ==", "QWRtaW46aXBhbWFkbWlu"]
        );
    }
}
