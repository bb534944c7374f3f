//! The status page as a browser shows it.

use adamant_server::Engine;

use crate::support::connections::{Client, Value};
use crate::support::program::run;
use crate::web::status::told;

const BROWSERS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// Milliseconds of the page's own time, in which it asks a few times: they take none of a clock.
const PAGE_TIME: &str = "--virtual-time-budget=9000";

/// A browser that starts.
fn browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|name| run(name, &["--version"], b"").is_success)
}

#[test]
fn in_a_browser() {
    let Some(browser) = browser() else {
        return println!("skipped: there is no browser (apt-get install chromium)");
    };
    let server = told(|options| options.engine = Engine::Lsm);
    let mut client = Client::connect(server.address());
    client.say("CLIENT SETNAME <i>someone</i>");
    for number in 0..1500_u32 {
        let value = vec![b'v'; 10 + (number * 37 % 3000) as usize];
        assert_eq!(client.call(&[b"SET", format!("k{number}").as_bytes(), &value]), Value::ok());
    }
    for number in (0..1500).step_by(3) {
        client.say(&format!("EXPIRE k{number} 1000"));
        client.say(&format!("DEL k{}", number + 1));
    }
    let folder = tempfile::tempdir().unwrap();
    let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
    let picture = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("status.png");
    let _ = std::fs::remove_file(&picture);
    let screenshot = format!("--screenshot={}", picture.display());
    let url = format!("http://{}/", server.http_address().unwrap());
    let usual = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--no-first-run",
        "--disable-background-networking",
        "--window-size=1280,1500",
        PAGE_TIME,
        &profile,
    ];
    let look = |how: &str| run(browser, &[&usual[..], &[how, &url]].concat(), b"");

    let shown = look("--dump-dom");
    assert!(shown.is_success, "{shown:?}");
    let has =
        |words: &str| assert!(shown.output.contains(words), "{words:?} is not in {}", shown.output);
    has("<span id=\"health\" class=\"good\">takes writes</span>");
    has("durability sync");
    has("<td class=\"right\">1,000</td>");
    has("<b id=\"connected\">1</b>");
    has("<h3>db0</h3>");
    has("that waited for the device: half within");
    has("fragmentation of free pages");
    // It asked more than once, and what a client calls itself is text.
    assert!(!shown.output.contains("<b id=\"commands\">-</b>"), "{}", shown.output);
    has("&lt;i&gt;someone&lt;/i&gt;");

    let drawn = look(&screenshot);
    assert!(drawn.is_success, "{drawn:?}");
    let bytes = std::fs::read(&picture).unwrap();
    assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 20_000, "{} bytes", bytes.len());
    println!("the page as it looks: {}", picture.display());
}
