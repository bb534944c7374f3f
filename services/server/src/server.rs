//! The server: startup, accepting connections, shutdown.
//!
//! Purpose: owns the threads: those of the runtime, one that syncs commits, and the keeper; in a
//! cluster, one that proposes instead of the last two.
//! Invariants: after the shutdown all replies that were sent are true of the closed store.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use adamant::Store;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::signal;

use crate::Opened;
use crate::commit::committer::{self, Queue};
use crate::commit::ending::Ending;
use crate::commit::keeper;
use crate::commit::world::World;
use crate::error::{Error, Result};
use crate::http;
use crate::options::Options;
use crate::protocol::sockets;
use crate::protocol::tls;
use crate::serving::clients::Clients;
use crate::serving::connection;
use crate::serving::shared::{Held, Settings, Shared};
use crate::state::call::Surroundings;
use crate::state::clock;
use crate::state::cursors::Cursors;
use crate::state::data::Databases;

/// Stack bytes of a thread: enough for a command, whose depth no request can change.
const STACK_BYTES: usize = 1 << 20;
/// How long client tasks may take to send their last replies at the shutdown.
const GOODBYE: Duration = Duration::from_secs(5);
/// Pause between two looks whether all clients have gone.
const GOODBYE_LOOKS: Duration = Duration::from_millis(2);
/// Pause after a failed accept, for lack of file descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A running server. [`Server::end`] closes its store; so does dropping it, which ignores errors.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    http_address: Option<SocketAddr>,
    /// `None` once it has ended.
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    runtime: Runtime,
    threads: Vec<JoinHandle<()>>,
    /// Ends after all threads that may commit; a node has none.
    flusher: Option<JoinHandle<()>>,
    /// Not that of a node, which may get another one.
    store: Option<Store>,
}

impl Server {
    /// Opens the store at a path, creates it if there is none, and serves it.
    ///
    /// # Errors
    /// Invalid options, such as [`Error::Unprotected`]; a store that cannot be opened; an address
    /// that cannot be listened on.
    pub fn start(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        options.check()?;
        if let Some(cluster) = &options.cluster {
            let opened = Opened::open(path.as_ref(), cluster)?;
            return Self::start_with(opened.store(), Some(opened), options);
        }
        // The server removes what expires itself.
        let opening = adamant::Options::new().durability(options.durability).sweep_expired(false);
        let opening =
            options.encryption_key.iter().cloned().fold(opening, adamant::Options::encryption_key);
        Self::start_on(Store::open_with(path, opening)?, options)
    }

    /// Serves an open store, and closes it at the end. It is no node of a cluster, whatever the
    /// options say.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_on(store: Store, options: Options) -> Result<Self> {
        options.check()?;
        Self::start_with(store, None, options)
    }

    fn start_with(store: Store, opened: Option<Opened>, options: Options) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads)
            .thread_name("adamant-serve")
            .enable_all()
            .build()
            .map_err(Error::System)?;
        let (listener, address) = listen(&runtime, options.address)?;
        let watching = options.http.map(|address| listen(&runtime, address)).transpose()?;
        let shared = Arc::new(shared_of(&store, opened, &runtime, options, address.port())?);
        let mut threads = Vec::new();
        let mut flusher = None;
        if shared.member.is_some() {
            threads.push(spawn("adamant-propose", &shared, |shared| {
                if let Some(member) = &shared.member {
                    member.propose_all();
                }
            })?);
        } else {
            threads.push(spawn("adamant-keeper", &shared, |shared| {
                keeper::serve(&shared.world, &shared.ending);
            })?);
            flusher = Some(spawn("adamant-flush", &shared, |shared| {
                committer::serve_flushes(&shared.queue, &shared.ending);
            })?);
        }
        runtime.spawn(accept(listener, Arc::clone(&shared)));
        let http_address = watching.map(|(listener, address)| {
            runtime.spawn(http::serve(listener, Arc::clone(&shared)));
            address
        });
        let store = shared.member.is_none().then_some(store);
        let running = Some(Running { runtime, threads, flusher, store });
        Ok(Self { shared, address, http_address, running })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it answers HTTP, if it does.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    /// Requests the shutdown, from any thread; [`Server::wait`] then returns.
    pub fn ask_for_end(&self) {
        self.shared.ending.begin(None);
    }

    /// Waits until the shutdown is requested: by a client with SHUTDOWN, a signal to the process
    /// (SIGTERM or Ctrl-C; on Windows, Ctrl-C, its window's end, the system's shutdown),
    /// [`Server::ask_for_end`], or a device that failed.
    ///
    /// # Errors
    /// Signals cannot be waited for.
    pub fn wait(&self) -> Result<()> {
        let Some(running) = &self.running else { return Ok(()) };
        let mut ending = self.shared.ending.subscribe();
        running.runtime.block_on(async {
            tokio::select! {
                _ = ending.wait_for(|ends| *ends) => {}
                interrupted = signal::ctrl_c() => interrupted.map_err(Error::System)?,
                terminated = termination() => terminated.map_err(Error::System)?,
            }
            Ok(())
        })
    }

    /// Answers accepted units, disconnects all clients, and closes the store.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if the device failed; [`Error::Store`] if closing did.
    pub fn end(mut self) -> Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        let Some(Running { runtime, threads, flusher, store }) = self.running.take() else {
            return Ok(());
        };
        self.shared.ending.begin(None);
        // Waiting units are answered; later ones are not accepted.
        self.shared.queue.end();
        let join = |thread: JoinHandle<()>| {
            if thread.join().is_err() {
                self.shared.fail_for_panic();
            }
        };
        threads.into_iter().for_each(&join);
        runtime.block_on(async {
            let all_gone = async {
                while self.shared.clients.len() > 0 {
                    tokio::time::sleep(GOODBYE_LOOKS).await;
                }
            };
            // A client that does not take its last replies goes without them.
            let _ = tokio::time::timeout(GOODBYE, all_gone).await;
        });
        let left = match &self.shared.member {
            Some(member) => runtime.block_on(member.end()),
            None => Ok(()),
        };
        runtime.shutdown_timeout(GOODBYE);
        self.shared.queue.end_flushes();
        flusher.into_iter().for_each(join);
        let ended = match self.shared.ending.failure() {
            Some(cause) if store.is_none() => Err(Error::Cluster { cause }),
            Some(cause) => Err(Error::Poisoned { cause }),
            None => match store.map(Store::close) {
                // It was asked to end before it met the failure.
                Some(Err(error)) if error.is_poisoned() => {
                    Err(Error::Poisoned { cause: error.to_string() })
                }
                Some(closed) => closed.map_err(Error::from),
                None => left,
            },
        };
        self.shared.ending.release();
        ended
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A caller that wants the errors calls `end`.
        let _ = self.finish();
    }
}

fn listen(runtime: &Runtime, address: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let bound = runtime.block_on(TcpListener::bind(address)).and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    bound.map_err(|error| Error::Listen { address, error })
}

fn shared_of(
    store: &Store,
    opened: Option<Opened>,
    runtime: &Runtime,
    options: Options,
    port: u16,
) -> Result<Shared> {
    let databases = Databases::open(store, options.databases, options.engine)?;
    let surroundings = Surroundings {
        fences: Default::default(),
        cursors: Cursors::new(clock::now()),
        value_bytes_max: options.argument_bytes_max,
        reply_bytes_max: options.reply_bytes_max,
    };
    let tls = options.tls.as_ref().map(tls::load).transpose()?;
    let settings = Settings {
        password: options.password.clone(),
        clients_max: options.clients_max,
        idle: options.idle,
    };
    let (queue, ending) = (Arc::new(Queue::default()), Arc::new(Ending::default()));
    let is_replicated = opened.is_some();
    let databases = Arc::new(databases);
    let world = World::new(databases, surroundings, options.durability, is_replicated);
    let world = Arc::new(world);
    let member = opened.map(|opened| opened.start(runtime, &world, &queue, &ending)).transpose()?;
    Ok(Shared {
        world,
        member,
        settings: Mutex::new(settings),
        tls,
        clients: Clients::default(),
        queue,
        ending,
        held: Held::default(),
        commands: AtomicU64::new(0),
        values_in_place: AtomicU64::new(0),
        bytes_in_place: AtomicU64::new(0),
        started: Instant::now(),
        port,
        options,
    })
}

/// Starts a thread; if it panics, the server ends, because its work would not be done.
fn spawn(name: &str, shared: &Arc<Shared>, work: fn(&Shared)) -> Result<JoinHandle<()>> {
    struct Alarm(Arc<Shared>);
    impl Drop for Alarm {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.fail_for_panic();
            }
        }
    }
    let alarm = Alarm(Arc::clone(shared));
    let builder = std::thread::Builder::new().name(name.into()).stack_size(STACK_BYTES);
    builder.spawn(move || work(&alarm.0)).map_err(Error::System)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut ending = shared.ending.subscribe();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ending.wait_for(|ends| *ends) => return,
        };
        match accepted {
            Ok((stream, address)) => welcome(stream, address, &shared),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

fn welcome(stream: TcpStream, address: SocketAddr, shared: &Arc<Shared>) {
    // It may have gone again.
    let Ok(local) = stream.local_addr() else { return };
    let _ = sockets::set_up(&stream);
    let clients_max = shared.settings.lock().clients_max;
    match shared.clients.enter(address, local, clients_max) {
        Some(client) => {
            tokio::spawn(connection::serve(stream, Arc::clone(shared), client));
        }
        // A client that waits for encryption would not understand the line.
        None if shared.tls.is_some() => {}
        None => {
            // A new socket has room for a line; if not, it is closed without one.
            let _ = stream.try_write(b"-ERR max number of clients reached\r\n");
        }
    }
}

/// Waits until the system asks the process to end.
#[cfg(unix)]
async fn termination() -> io::Result<()> {
    signal::unix::signal(signal::unix::SignalKind::terminate())?.recv().await;
    Ok(())
}

/// The same: the window is closed, the user leaves, the system shuts down. It gives five seconds.
#[cfg(windows)]
async fn termination() -> io::Result<()> {
    let (mut closed, mut ended) =
        (signal::windows::ctrl_close()?, signal::windows::ctrl_shutdown()?);
    tokio::select! {
        _ = closed.recv() => {}
        _ = ended.recv() => {}
    }
    Ok(())
}
