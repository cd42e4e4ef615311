//! Huge pages of memory: for a process that runs models, and for no other.
//!
//! The allocator takes huge pages and gives back what is free in small ones. Minutes later the kernel (`khugepaged`) fills the
//! gaps again, and a server's memory has grown without a request that needed it. Passes over the weights of a generator are a
//! sixth faster with huge pages, though, and beside weights such gaps are small.
//!
//! It knows no model. **Invariant:** where whoever starts the process has decided, by `MIMALLOC_ALLOW_THP`, nothing is changed.
//! Source: prctl(2), `PR_SET_THP_DISABLE`; the kernel's guide to transparent huge pages.

#[cfg(target_os = "linux")]
use crate::terminal::note;
#[cfg(target_os = "linux")]
use nix::sys::prctl::{get_thp_disable, set_thp_disable};
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this process does without because of [`forgo`].
#[cfg(target_os = "linux")]
static FORGONE: AtomicBool = AtomicBool::new(false);

/// From now on this process gets none.
#[cfg(target_os = "linux")]
pub(crate) fn forgo() {
    let is_decided = std::env::var_os("MIMALLOC_ALLOW_THP").is_some() || get_thp_disable().unwrap_or(true);
    if !is_decided && set_thp_disable(true).is_ok() {
        FORGONE.store(true, Ordering::Relaxed);
    }
}

/// A model is about to be loaded: from now on this process gets them again.
#[cfg(target_os = "linux")]
pub(crate) fn take() {
    if FORGONE.swap(false, Ordering::Relaxed)
        && let Err(fault) = set_thp_disable(false)
    {
        note(&format!("the weights of models get no huge pages: {fault}"));
    }
}

/// Other systems have no such setting.
#[cfg(not(target_os = "linux"))]
pub(crate) fn forgo() {}

/// Other systems have no such setting.
#[cfg(not(target_os = "linux"))]
pub(crate) fn take() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_forgone_here_is_taken_again() {
        let before = get_thp_disable().unwrap();
        take();
        assert_eq!(get_thp_disable(), Ok(before), "nothing was forgone");
        forgo();
        assert_eq!(get_thp_disable(), Ok(true));
        take();
        assert_eq!(get_thp_disable(), Ok(before));
    }
}
