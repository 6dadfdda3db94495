//! The garbage collector and the controller of namespaces, out of kube-controller-manager.

use std::{env, io, path::Path};

use super::{Launch, SERVER, SOON, dies_with_us};
use crate::{process::Process, tools::tool};

/// The program, in the package of the server.
const COLLECTOR: &str = "kube-controller-manager";

impl Launch {
    /// Starts it, and waits until it sees all objects.
    pub(super) fn run_garbage_collector(&self) -> io::Result<Process> {
        let given = env::var_os("KUBEBUILDER_ASSETS").map(|dir| Path::new(&dir).join(COLLECTOR));
        let program = given.filter(|program| program.is_file()).or_else(|| tool(SERVER, COLLECTOR));
        let program = program.ok_or_else(|| {
            io::Error::other(format!(
                "{COLLECTOR} is not here. `cargo xtask test --only test` builds it beside kube-apiserver, from the Go module proxy; or put \
                 it into the directory that KUBEBUILDER_ASSETS names"
            ))
        })?;
        let mut command = dies_with_us(&program);
        command.arg(format!("--kubeconfig={}", self.dir.join("admin.kubeconfig").display()));
        command.args([
            "--controllers=garbage-collector-controller,namespace-controller",
            "--leader-elect=false",
            "--secure-port=0",
        ]);
        let mut process = Process::start(COLLECTOR, &mut command)?;
        match process.wait_for_line("Garbage collector: all resource monitors have synced", SOON) {
            Ok(_) => Ok(process),
            Err(error) => Err(io::Error::other(format!("it is not ready: {error}\n{}", process.log()))),
        }
    }
}
