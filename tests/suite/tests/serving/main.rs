//! The HTTPS pages of the real binary on a real API server: who may read what is asked of its TokenReviews and SubjectAccessReviews, and
//! client certificates count by the authorities that it publishes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod raw_tls;
mod rotation;
mod scene;

use reqwest::Identity;
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::scene::{Scene, admin, allow, answer, client};

#[tokio::test]
async fn the_api_server_decides_who_reads_what() {
    let scene = Scene::new(&[]).await;
    let (reader, stranger) = (scene.account("metrics-reader").await, scene.account("stranger").await);
    allow(
        scene.server.client(),
        "metrics-reader",
        &["/metrics", "/configz", "/readyz/*", "/explain/*"],
    )
    .await;

    assert_eq!(answer(scene.get("/healthz")).await, (200, "ok".into()));
    assert_eq!(answer(scene.get("/livez")).await, (200, "ok".into()));
    let (code, text) = answer(scene.get("/metrics")).await;
    assert_eq!(code, 403);
    assert!(
        text.contains(r#"User \"system:anonymous\" cannot get path \"/metrics\""#),
        "{text}"
    );
    let (code, _) = answer(scene.get("/nothing/of/the/kind")).await;
    assert_eq!(code, 403, "what exists is not told to those who may not know");
    let (code, text) = answer(scene.get("/metrics").bearer_auth("wrong")).await;
    assert_eq!(code, 401, "{text}");
    assert_eq!(answer(scene.get("/healthz").bearer_auth("wrong")).await.0, 401);
    let (code, text) = answer(scene.get("/metrics").bearer_auth(&stranger)).await;
    assert_eq!(code, 403);
    assert!(text.contains("system:serviceaccount:default:stranger"), "{text}");

    let (code, text) = answer(scene.get("/metrics").bearer_auth(&reader)).await;
    assert_eq!(code, 200, "{text}");
    assert!(
        text.contains("# TYPE workqueue_adds_total counter") && text.contains("kubernetes_build_info{"),
        "{text}"
    );
    for metric in [
        "rest_client_requests_total{code=\"201\",method=\"POST\",host=\"127.0.0.1:",
        "rest_client_requests_total{code=\"200\",method=\"GET\",host=\"127.0.0.1:",
        "authentication_attempts{result=\"error\"} ",
        "authentication_token_cache_request_total{status=\"miss\"} ",
        "authorization_attempts_total{result=\"no-opinion\"} ",
        "process_cpu_seconds_total ",
    ] {
        assert!(text.contains(metric), "{metric} is missing in:\n{text}");
    }
    let explain = |token: Option<&str>| {
        let request = scene.get("/explain/service/default/kubernetes");
        answer(match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        })
    };
    assert_eq!(explain(None).await.0, 403);
    assert_eq!(explain(Some(&stranger)).await.0, 403);
    let (code, text) = explain(Some(&reader)).await;
    assert!(code == 200 && text.contains("default/kubernetes"), "{code} {text}");
    let (code, text) = answer(scene.get("/configz").bearer_auth(&reader)).await;
    let config: Value = serde_json::from_str(&text).unwrap();
    let shared = &config["cloudcontrollermanager.config.k8s.io"]["KubeCloudShared"];
    assert_eq!((code, &shared["CloudProvider"]["Name"]), (200, &json!("sim")));
    assert_eq!(
        answer(scene.get("/readyz/informer-sync").bearer_auth(&reader)).await,
        (200, "ok".into())
    );
    assert_eq!(answer(scene.get("/readyz/nothing").bearer_auth(&reader)).await.0, 404);
    assert_eq!(answer(scene.get("/debug/flags/v").bearer_auth(&reader)).await.0, 403);

    let (code, text) = answer(scene.get("/readyz?verbose")).await;
    assert_eq!(code, 200);
    for check in [
        "leaderElection",
        "informer-sync",
        "provider-sim",
        "cloud-node-controller",
        "service-lb-controller",
    ] {
        assert!(text.contains(&format!("[+]{check} ok\n")), "{check}: {text}");
    }
    assert!(text.ends_with("readyz check passed\n"), "{text}");
}

#[tokio::test]
async fn the_status_page_is_for_those_who_may_read_it() {
    let scene = Scene::new(&["--authorization-always-allow-paths=/healthz,/".to_owned()]).await;
    let (reader, stranger) = (
        scene.account("status-reader").await,
        scene.account("status-stranger").await,
    );
    allow(scene.server.client(), "status-reader", &["/status.json"]).await;
    for path in ["/", "/status.json"] {
        assert_eq!(
            answer(scene.get(path)).await.0,
            403,
            "{path}, also where it was opened for everybody"
        );
    }
    assert_eq!(answer(scene.get("/status.json").bearer_auth(&stranger)).await.0, 403);
    let (code, text) = answer(scene.get("/status.json").bearer_auth(&reader)).await;
    assert_eq!(code, 200, "{text}");
    let status: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status["providers"][0]["name"], "sim");
    let page = scene.get("/").bearer_auth(&reader).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(
        policy.starts_with("default-src 'none';") && !policy.contains("unsafe"),
        "{policy}"
    );
    let nonce = policy
        .split("'nonce-")
        .nth(1)
        .unwrap()
        .split('\'')
        .next()
        .unwrap()
        .to_owned();
    assert!(
        page.text()
            .await
            .unwrap()
            .contains(&format!("<style nonce=\"{nonce}\">"))
    );
}

#[tokio::test]
async fn client_certificate_needs_the_published_authority() {
    let scene = Scene::new(&[]).await;
    let admin = client(Some(admin(scene.server.kubeconfig())));
    let url = |path: &str| format!("{}{path}", scene.url);
    assert_eq!(answer(admin.get(url("/metrics/slis"))).await.0, 200);
    let (code, text) = answer(admin.put(url("/debug/flags/v")).body("4")).await;
    assert_eq!(
        (code, text.as_str()),
        (200, "successfully set klog.logging.verbosity to 4")
    );
    assert_eq!(answer(admin.get(url("/debug/flags/v"))).await.0, 406);
    let (code, text) = answer(admin.get(url("/debug/pprof/heap"))).await;
    assert!(code == 404 && text.contains("no Go profiles"), "{code} {text}");

    let stranger = rcgen::generate_simple_self_signed(vec!["admin".into()]).unwrap();
    let pem = stranger.cert.pem() + &stranger.signing_key.serialize_pem();
    let stranger = client(Some(Identity::from_pem(pem.as_bytes()).unwrap()));
    assert_eq!(answer(stranger.get(url("/metrics"))).await.0, 401);

    let headers = client(None)
        .get(url("/metrics"))
        .header("x-remote-user", "a")
        .header("x-remote-group", "system:masters");
    assert_eq!(
        answer(headers).await.0,
        403,
        "headers of a proxy count for nothing without its certificate"
    );
    let (code, text) = answer(client(None).get(format!("{}/readyz?verbose", scene.admin_url))).await;
    assert!(code == 200 && text.contains("[+]ping ok"), "{code} {text}");
}

#[tokio::test]
async fn paths_as_they_are_on_the_wire_lead_around_nothing() {
    let scene = Scene::new(&["--authorization-always-allow-paths=/healthz,/healthz/*".to_owned()]).await;
    let (asked, text) = raw_tls::get(scene.port(), "/healthz").await;
    assert!(asked, "for a certificate, since the cluster publishes an authority");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    for (path, code) in [
        ("//metrics", 403),
        ("/./metrics", 403),
        ("//healthz", 403),
        ("https://localhost/metrics", 403),
        ("*", 403),
        // A star lets a path through as it is written, and there is no such page.
        ("/healthz/../metrics", 404),
        ("/healthz/..%2fmetrics", 404),
        ("/healthz/%2e%2e/metrics", 404),
    ] {
        let (_, text) = raw_tls::get(scene.port(), path).await;
        assert!(text.starts_with(&format!("HTTP/1.1 {code}")), "{path}: {text}");
        assert!(!text.contains("workqueue"), "{path}: {text}");
    }
}

#[tokio::test]
async fn certificate_is_requested_only_where_it_counts() {
    let scene = Scene::new(&["--authentication-skip-lookup".to_owned()]).await;
    let (asked, text) = raw_tls::get(scene.port(), "/healthz").await;
    assert!(!asked && text.starts_with("HTTP/1.1 200"), "{text}");
}

#[tokio::test]
async fn silent_peer_connections_leave_room_for_others() {
    let scene = Scene::new(&[]).await;
    let server = std::net::SocketAddr::from(([127, 0, 0, 1], scene.port()));
    let mut silent = Vec::new();
    for _ in 0..70 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
        silent.push(socket.connect(server).await.unwrap());
    }
    let (last, first) = (silent.pop().unwrap(), &silent[0]);
    last.readable().await.unwrap();
    let closed = last.try_read(&mut [0]);
    assert!(!matches!(closed, Ok(1..)), "{closed:?}");
    let open = first.try_read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(
        open,
        Err(std::io::ErrorKind::WouldBlock),
        "the first ones have their time for a handshake"
    );
    assert_eq!(answer(scene.get("/healthz")).await, (200, "ok".into()));
}

/// As many as there is room for, from eight addresses, each a whole HTTP/2 connection that asks nothing.
#[tokio::test]
async fn idle_clients_on_all_connections_leave_room_for_probes() {
    let scene = Scene::new(&[]).await;
    let mut idle = Vec::new();
    for peer in 2..10 {
        for _ in 0..64 {
            idle.push(raw_tls::idle_http2(scene.port(), [127, 0, 0, peer].into()).await);
        }
    }
    for _ in 0..3 {
        assert_eq!(answer(scene.get("/livez")).await, (200, "ok".into()));
    }
    drop(idle);
}
