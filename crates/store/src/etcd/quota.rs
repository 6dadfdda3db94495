//! Reads the quota from etcd's metrics: older versions show it nowhere else.

use std::time::Duration;

use netstead_wire::read_body;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tonic::{
    body::Body,
    client::GrpcService as _,
    codegen::http::{Request, Uri},
    transport::Channel,
};

const PATIENCE: Duration = Duration::from_secs(2);
/// More than metrics ever are.
const MOST: usize = 8 << 20;
const QUOTA: &str = "etcd_server_quota_backend_bytes ";

/// The quota by the metrics of the member at `url`; `None` where they cannot be read, which is no fault.
pub(super) async fn quota(url: &str, channel: Channel) -> Option<u64> {
    let read = async {
        // An etcd in clear text takes everything in HTTP/2 for gRPC; behind TLS it looks closer.
        if url.starts_with("https:") { over_channel(channel).await } else { over_tcp(url).await }
    };
    let text = timeout(PATIENCE, read).await.ok()??;
    figure(&String::from_utf8_lossy(&text))
}

async fn over_channel(mut channel: Channel) -> Option<Vec<u8>> {
    let request = Request::get("/metrics").body(Body::empty()).ok()?;
    std::future::poll_fn(|context| channel.poll_ready(context)).await.ok()?;
    let answer = channel.call(request).await.ok()?;
    read_body(answer.into_body(), MOST).await.ok()
}

async fn over_tcp(url: &str) -> Option<Vec<u8>> {
    let url: Uri = url.parse().ok()?;
    let (host, port) = (url.host()?, url.port_u16().unwrap_or(80));
    let mut stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await.ok()?;
    // HTTP/1.0: the answer comes in one piece and ends with the connection.
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.take(MOST as u64).read_to_end(&mut answer).await.ok()?;
    Some(answer)
}

fn figure(metrics: &str) -> Option<u64> {
    let text = metrics.lines().find_map(|line| line.strip_prefix(QUOTA))?;
    let bytes: f64 = text.trim().parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of bytes, written as 2.1e+09"
    )]
    (bytes >= 1.0).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quota_is_found_among_the_figures() {
        let text = "# HELP x\netcd_server_quota_backend_bytes 2.147483648e+09\nother 1\n";
        assert_eq!(figure(text), Some(2 << 30));
        assert_eq!(figure("etcd_server_quota_backend_bytes_x 1"), None);
        assert_eq!(figure("HTTP/1.0 404 Not Found"), None);
        assert_eq!(figure("etcd_server_quota_backend_bytes -1"), None);
    }
}
