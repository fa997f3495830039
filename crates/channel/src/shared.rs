//! A typed reference into shared memory that keeps the mapping alive.

use alloc::sync::Arc;
use core::any::Any;
use core::ops::Deref;
use core::ptr::NonNull;

/// What keeps memory mapped: dropped when the last reference goes.
pub type Keep = Arc<dyn Any + Send + Sync>;

/// A `&T` into memory that other processes may change. `T` must therefore consist of atomics only.
pub struct Shared<T: ?Sized> {
    pointer: NonNull<T>,
    keep: Keep,
}

// SAFETY: `T` is only reachable by `&T`; the memory outlives `self` because of `keep`.
unsafe impl<T: ?Sized + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for Shared<T> {}

impl<T: ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared { pointer: self.pointer, keep: self.keep.clone() }
    }
}

impl<T: ?Sized> Shared<T> {
    /// # Safety
    /// `pointer` must be valid for shared access as long as `keep` lives, and `T` must be made of
    /// atomics (any bit pattern valid).
    pub unsafe fn from_raw(pointer: NonNull<T>, keep: Keep) -> Self {
        Shared { pointer, keep }
    }
}

impl<T: Send + Sync + 'static> Shared<T> {
    /// A value on the heap, for the simulator, for tests and for loom.
    pub fn heap(value: T) -> Self {
        let value = Arc::new(value);
        let pointer = NonNull::from(&*value);
        Shared { pointer, keep: value }
    }
}

impl<T: Send + Sync + 'static> Shared<[T]> {
    pub fn heap_slice(values: alloc::vec::Vec<T>) -> Self {
        let values: Arc<alloc::vec::Vec<T>> = Arc::new(values);
        let pointer = NonNull::from(values.as_slice());
        Shared { pointer, keep: values }
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: by the contract of the constructors.
        unsafe { self.pointer.as_ref() }
    }
}
