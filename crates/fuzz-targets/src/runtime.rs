//! The async runtime of targets that need one.

use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};

/// Made once: a runtime for each input would be most of its time.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());

pub fn wait<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}
