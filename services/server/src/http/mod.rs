//! The status of the server by HTTP: a page for people, its JSON, figures for Prometheus, and
//! health checks for load balancers.
//!
//! Purpose: read-only, and for as many connections as a few people and programs need. An outside
//! watcher cannot block commits: requests are small, short and few at a time.
//! Invariants: like clients, HTTP users are encrypted where the server requires it, and give its
//! password, as the user `default`, if it has one. The exception is `/health`, which answers
//! strangers with one word.

mod exposition;
mod heap_map;
mod metrics;
mod status;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::protocol::tls;
use crate::serving::shared::Shared;
use heap_map::HeapMap;

/// Maximum number of connections; others wait until one of them ends.
const CONNECTIONS_MAX: usize = 64;
/// Maximum time for a request to arrive, and for a connection without one.
const HEADER_WAIT: Duration = Duration::from_secs(10);
/// Maximum age of a connection; it ends with its next reply.
const CONNECTION_LONGEST: Duration = Duration::from_secs(60);
/// Maximum time of that reply.
const LAST_REPLY_LONGEST: Duration = Duration::from_secs(10);
/// Maximum bytes of a request, and of replies that were not taken yet.
const BUFFER_BYTES_MAX: usize = 32 << 10;
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The complete page.
const PAGE: &str = include_str!("page.html");
/// It needs nothing but itself and the status.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                           connect-src 'self'; base-uri 'none'; form-action 'none'; \
                           frame-ancestors 'none'";

/// The state that requests share.
struct Watched {
    shared: Arc<Shared>,
    heap_map: HeapMap,
}

/// Serves until the runtime ends; after the server has failed, it reports why.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let watched = Arc::new(Watched { shared: Arc::clone(&shared), heap_map: HeapMap::default() });
    let router = Router::new()
        .route("/", get(page))
        .route("/status.json", get(status))
        .route("/metrics", get(metrics))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&watched), admit))
        .route("/health", get(health))
        .with_state(watched);
    let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // The semaphore is never closed.
    while let Ok(seat) = Arc::clone(&seats).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(visit(stream, Arc::clone(&shared), router.clone(), seat));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn visit(
    stream: TcpStream,
    shared: Arc<Shared>,
    router: Router,
    _seat: OwnedSemaphorePermit,
) {
    match &shared.tls {
        None => converse(stream, router).await,
        Some(config) => {
            let longest = shared.options.handshake_wait;
            if let Some(stream) = tls::shake_hands(stream, config, longest).await {
                converse(stream, router).await;
            }
        }
    }
}

async fn converse<S>(stream: S, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_WAIT)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    // There is no one to report an error to.
    if tokio::time::timeout(CONNECTION_LONGEST, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(LAST_REPLY_LONGEST, connection).await;
    }
}

/// Whether a request has the credentials that clients need.
fn is_known(shared: &Shared, headers: &HeaderMap) -> bool {
    let settings = shared.settings.lock();
    if settings.password.is_none() {
        return true;
    }
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let words = given.and_then(|given| given.split_once(' '));
    let encoded = words.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
    let pair = encoded.and_then(|(_, encoded)| STANDARD.decode(encoded.trim()).ok());
    let Some(pair) = pair else { return false };
    let Some(colon) = pair.iter().position(|&byte| byte == b':') else { return false };
    settings.admits(&pair[..colon], &pair[colon + 1..])
}

async fn admit(State(watched): State<Arc<Watched>>, request: Request, next: Next) -> Response {
    if is_known(&watched.shared, request.headers()) {
        return next.run(request).await;
    }
    let asks = [(header::WWW_AUTHENTICATE, "Basic realm=\"adamant-server\"")];
    let words = "the user default and the server's password are asked for\n";
    (StatusCode::UNAUTHORIZED, asks, words).into_response()
}

async fn page() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, PAGE).into_response()
}

async fn status(State(watched): State<Arc<Watched>>) -> Response {
    look(watched, "application/json", |watched| {
        Ok(status::status(&watched.shared, &watched.heap_map)?.to_string())
    })
    .await
}

async fn metrics(State(watched): State<Arc<Watched>>) -> Response {
    look(watched, "text/plain; version=0.0.4; charset=utf-8", |watched| {
        metrics::text(&watched.shared, &watched.heap_map)
    })
    .await
}

/// Reads the store, which may take time.
async fn look(
    watched: Arc<Watched>,
    kind: &'static str,
    make: fn(&Watched) -> adamant::Result<String>,
) -> Response {
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-store")];
    match tokio::task::spawn_blocking(move || make(&watched)).await {
        Ok(Ok(text)) => (headers, text).into_response(),
        Ok(Err(error)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the look failed\n").into_response(),
    }
}

/// 200 while the store accepts writes, else 503 and the reason.
async fn health(State(watched): State<Arc<Watched>>, headers: HeaderMap) -> Response {
    let fresh = [(header::CACHE_CONTROL, "no-store")];
    let Some(trouble) = watched.shared.trouble() else {
        return (fresh, "ok\n").into_response();
    };
    let words = match is_known(&watched.shared, &headers) {
        true => format!("{}: {}\n", trouble.kind, trouble.words),
        false => format!("{}\n", trouble.kind),
    };
    (StatusCode::SERVICE_UNAVAILABLE, fresh, words).into_response()
}
