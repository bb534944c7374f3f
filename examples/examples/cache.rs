//! A cache on disk in front of slow work: bounded in bytes, with a time to live, kept over
//! restarts.
//!
//! `cargo run -p adamant-examples --example cache`

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use adamant::{Cache, Durability, Slice, Store};

/// Keys and values on the device, each entry with 64 bytes more.
const BYTES_MAX: u64 = 100_000;
/// How long a page is good.
const GOOD: Duration = Duration::from_secs(3600);

/// Renders a page, which takes long.
fn render(name: &str, rendered: &mut u32) -> String {
    *rendered += 1;
    format!("<h1>{name}</h1>").repeat(100)
}

/// The page, from the cache if it is there.
fn page(pages: &Cache, name: &str, rendered: &mut u32) -> adamant::Result<Slice> {
    let end = Some(pages.after(GOOD));
    pages.get_or_insert_with(name, end, || Ok(render(name, rendered)))
}

/// Opens the cache of a store; what is lost by a power cut is rendered again.
fn open(path: &Path) -> adamant::Result<(Store, Cache)> {
    let store = Store::open(path)?;
    let pages = store.cache("pages", BYTES_MAX)?.with_durability(Durability::Buffered);
    Ok((store, pages))
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("site.adamant");
    let mut rendered = 0;

    let (store, pages) = open(&path)?;
    for visit in 0..2_000_u32 {
        // Every other visitor comes for the front page, the others for any of 500.
        let name = if visit % 2 == 0 { "front".into() } else { format!("page {}", visit % 500) };
        page(&pages, &name, &mut rendered)?;
        assert!(pages.bytes() <= BYTES_MAX);
    }
    let stats = pages.stats();
    println!("{rendered} of 2000 pages were rendered: {stats:?}");
    assert!(stats.hits >= 999 && stats.evictions > 0, "the front page was rendered once");
    drop(pages);
    store.close()?;

    // After a restart the pages are still there.
    let (store, pages) = open(&path)?;
    let before = rendered;
    page(&pages, "front", &mut rendered)?;
    assert_eq!(rendered, before);
    assert!(pages.delete("front").is_ok() && pages.get("front")?.is_none());
    drop(pages);
    Ok(store.close()?)
}

#[test]
fn it_runs() {
    main().unwrap();
}
