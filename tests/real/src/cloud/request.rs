//! One HTTP request on a connection of its own, which is what load balancers distribute.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How much of a response is read, in bytes.
const MOST: u64 = 16 << 10;

/// Asks `address` (`IP:PORT`) for `path`. Gives the body of a response with status 200.
///
/// # Errors
///
/// A few words, when it takes longer than `timeout` or fails.
pub async fn get(address: &str, path: &str, timeout: Duration) -> Result<String, String> {
    tokio::time::timeout(timeout, exchange(address, path))
        .await
        .unwrap_or_else(|_| Err(format!("no response within {timeout:?}")))
}

async fn exchange(address: &str, path: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(address).await.map_err(failed)?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    let mut response = Vec::new();
    stream.take(MOST).read_to_end(&mut response).await.map_err(failed)?;
    body(&String::from_utf8_lossy(&response))
}

fn body(response: &str) -> Result<String, String> {
    let first = response.lines().next().ok_or("connection closed without a response")?;
    if first.split(' ').nth(1) != Some("200") {
        return Err(first.to_owned());
    }
    // Programs that CGI starts end their lines as they like.
    let ends = ["\r\n\r\n", "\n\n", "\r\n\n"].into_iter();
    let end = ends.filter_map(|end| Some((response.find(end)?, end.len()))).min();
    let (at, length) = end.ok_or("response without a body")?;
    Ok(response[at + length..].trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_good_responses_are_taken() {
        assert_eq!(body("HTTP/1.1 200 OK\r\n\r\nhello\n"), Ok("hello".to_owned()));
        assert_eq!(body("HTTP/1.1 200 OK\r\n\nhello\n"), Ok("hello".to_owned()));
        assert_eq!(body("HTTP/1.1 200 OK\r\na: b\r\n\nhello\n"), Ok("hello".to_owned()));
        assert_eq!(
            body("HTTP/1.1 503 Service Unavailable\r\n\r\nno"),
            Err("HTTP/1.1 503 Service Unavailable".to_owned())
        );
        assert_eq!(body(""), Err("connection closed without a response".to_owned()));
    }
}
