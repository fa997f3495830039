//! The tcp engine against itself, over a simulated network, with simulated applications; and against
//! a script that plays the peer.

mod accurate_marks;
mod app;
mod authenticated_streams;
mod authentication;
mod authentication_cost;
mod changed_bits;
mod closing;
mod control;
mod deferred;
mod dying;
mod endings;
mod fast_connect;
mod fast_open;
mod fast_open_rules;
mod fast_open_syn;
mod hostile;
mod loss;
mod marks;
mod options;
mod pacing;
mod recovery;
mod repeats;
mod rules;
mod script;
mod signatures;
mod statistics;
mod streams;
mod syn_cookies;
mod syn_data;
mod turns;
mod unacceptable;
mod uncommitted;
mod urgent;
mod windows;
mod world;
