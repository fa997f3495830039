//! One descriptor more than the program may have, for a moment.

use crate::spin::Spin;
use crate::sys::{self, Errno, Result};

/// Held from raising the limit to lowering it.
static LIMIT: Spin<()> = Spin::new(());

pub fn reset_lock() {
    LIMIT.reset();
}

/// Calls `make` with the limit of open files (RLIMIT_NOFILE) one higher, if the hard limit allows
/// that. A descriptor beyond the limit must be closed at once. If the program changes its limit
/// meanwhile, the program's value stays.
pub fn with_one_more<T>(make: impl FnOnce() -> Result<T>) -> Result<T> {
    let _held = LIMIT.lock();
    let own = sys::open_files(None)?;
    if own.rlim_cur >= own.rlim_max {
        return Err(Errno(libc::EMFILE));
    }
    let raised = libc::rlimit64 { rlim_cur: own.rlim_cur + 1, ..own };
    sys::open_files(Some(&raised))?;
    let made = make();
    if sys::open_files(None).is_ok_and(|now| now.rlim_cur == raised.rlim_cur) {
        let _ = sys::open_files(Some(&own));
    }
    made
}
