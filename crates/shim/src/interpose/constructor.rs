//! Runs the start of the library before the program's own, or at the program's first call: the constructor of another
//! library may come before ours.

use super::raw;
use crate::init;

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

extern "C" fn constructor() {
    ensure();
}

#[inline]
pub fn ensure() {
    init::ensure(raw::known);
}
