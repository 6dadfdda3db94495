//! Commands that are run to their end.

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, copy, sink},
    process::ChildStdin,
    time::timeout,
};

use super::{MOST_WORDS, Ssh, SshError, one_line, quoted};

/// ssh ends with this when it failed itself.
const SSH_FAILED: i32 = 255;

impl Ssh {
    /// Runs a program with these arguments; each reaches the program as it is. Gives what the program prints.
    pub async fn run(&self, words: &[&str], input: &[u8]) -> Result<Vec<u8>, SshError> {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        self.run_shell(&words.join(" "), input).await
    }

    /// Runs a line of the other machine's shell. Gives what the line prints.
    pub async fn run_shell(&self, command: &str, input: &[u8]) -> Result<Vec<u8>, SshError> {
        let late = |_| SshError::Late {
            target: self.target.to_string(),
            command: command.to_owned(),
            limit: self.timeout,
        };
        // Dropping the child kills ssh.
        timeout(self.timeout, self.run_to_end(command, input)).await.map_err(late)?
    }

    /// Replaces a file as a whole: a reader sees the old contents or the new ones. Mode and owner of a file that exists
    /// are kept where the other machine's `cp` can keep them.
    pub async fn write_file(&self, path: &str, contents: &[u8]) -> Result<(), SshError> {
        let (file, new) = (quoted(path), quoted(&format!("{path}.netstead-new")));
        // `cp -p` brings mode and owner along; `cat >` then replaces the contents. The size is compared because a
        // connection that breaks off looks like the end of the input.
        let command = format!(
            "{{ [ ! -e {file} ] || cp -p -- {file} {new}; }} && cat > {new} && \
             [ \"$(wc -c < {new})\" -eq {} ] && mv -f -- {new} {file} || {{ rm -f -- {new}; exit 1; }}",
            contents.len()
        );
        self.run_shell(&command, contents).await.map(drop)
    }

    async fn run_to_end(&self, command: &str, input: &[u8]) -> Result<Vec<u8>, SshError> {
        let mut child = self.start(command)?;
        let (into, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let ((), printed, said) =
            tokio::join!(feed(into, input), read_most(out, self.limit), read_most(err, MOST_WORDS));
        let status = child.wait().await.map_err(SshError::NotStarted)?;
        let target = self.target.to_string();
        let reason = || one_line(said.kept()).unwrap_or_else(|| "it says nothing".to_owned());
        match status.code() {
            Some(0) => match printed {
                Printed::All(output) => Ok(output),
                Printed::TooMuch(_) => {
                    Err(SshError::TooLarge { target, command: command.to_owned(), limit: self.limit })
                }
            },
            Some(SSH_FAILED) => Err(SshError::Unreachable { target, reason: reason() }),
            _ => Err(SshError::Failed { target, command: command.to_owned(), status, said: reason() }),
        }
    }
}

/// Output of a command.
enum Printed {
    All(Vec<u8>),
    /// There was more than this.
    TooMuch(Vec<u8>),
}

impl Printed {
    fn kept(&self) -> &[u8] {
        match self {
            Self::All(bytes) | Self::TooMuch(bytes) => bytes,
        }
    }
}

/// A command may end without reading all of its input; its exit status says what that means.
async fn feed(into: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut into) = into
        && into.write_all(input).await.is_ok()
    {
        let _ = into.shutdown().await;
    }
}

/// Keeps at most `limit` bytes and reads the rest away, so that the command is not held up.
async fn read_most(from: Option<impl AsyncRead + Unpin>, limit: usize) -> Printed {
    let mut bytes = Vec::new();
    let Some(mut from) = from else { return Printed::All(bytes) };
    let _ = (&mut from).take(limit as u64).read_to_end(&mut bytes).await;
    match copy(&mut from, &mut sink()).await {
        Ok(0) | Err(_) => Printed::All(bytes),
        Ok(_) => Printed::TooMuch(bytes),
    }
}
