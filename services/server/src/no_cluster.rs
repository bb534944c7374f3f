//! The placeholder for cluster membership, if the feature `cluster` is not built in: there is none.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use adamant::Store;
use tokio::runtime::Runtime;

use crate::commit::committer::Queue;
use crate::commit::ending::Ending;
use crate::commit::standing::Standing;
use crate::commit::unit::Unit;
use crate::commit::world::World;
use crate::error::{Error, Result};
use crate::options::Cluster;

/// There is none.
#[derive(Debug)]
pub(crate) struct Member(Infallible);

/// There is none.
pub(crate) struct Opened(Infallible);

impl Opened {
    pub(crate) fn open(_path: &Path, _options: &Cluster) -> Result<Self> {
        let expected = "left out: this program was built without the feature `cluster`";
        Err(Error::Option { name: "--cluster", expected })
    }

    pub(crate) fn store(&self) -> Store {
        match self.0 {}
    }

    pub(crate) fn start(
        self,
        _runtime: &Runtime,
        _world: &Arc<World>,
        _queue: &Arc<Queue>,
        _ending: &Arc<Ending>,
    ) -> Result<Arc<Member>> {
        match self.0 {}
    }
}

impl Member {
    pub(crate) async fn admit(&self, _unit: Unit) -> Option<ControlFlow<Unit, Unit>> {
        match self.0 {}
    }

    pub(crate) fn standing(&self) -> Standing {
        match self.0 {}
    }

    pub(crate) fn propose_all(&self) {
        match self.0 {}
    }

    pub(crate) async fn end(&self) -> Result<()> {
        match self.0 {}
    }
}
