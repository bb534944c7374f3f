//! Options for creating or opening a keyspace.

use crate::common::state::KeyspaceState;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};

/// Options of a keyspace, in the builder style.
///
/// ```
/// use adamant::{Engine, KeyspaceOptions, Store};
///
/// let store = Store::in_memory()?;
/// let options = KeyspaceOptions::new().engine(Engine::Critbit);
/// let words = store.keyspace_with("words", options)?;
/// assert_eq!(words.engine(), Engine::Critbit);
/// let other = KeyspaceOptions::new().engine(Engine::Btree);
/// assert!(store.keyspace_with("words", other).is_err());
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyspaceOptions {
    pub(crate) engine: Option<Engine>,
}

impl KeyspaceOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// The engine of a new keyspace; an existing one must have it. Default: [`Engine::Bplus`] for a
    /// new one, any for an existing one.
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Self {
        self.engine = Some(engine);
        self
    }

    /// Fails unless an existing keyspace has the requested engine.
    pub(crate) fn check(self, state: &KeyspaceState) -> Result<()> {
        match self.engine {
            Some(expected) if expected != state.engine() => Err(Error::WrongEngine {
                name: state.name.to_string(),
                expected: expected.name(),
                found: state.engine().name(),
            }),
            _ => Ok(()),
        }
    }
}
