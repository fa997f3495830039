//! The engine with plain messages.

mod bench;
mod dying;
mod engine;
mod fatal;
mod grants;
mod meaning;
mod syntax;
