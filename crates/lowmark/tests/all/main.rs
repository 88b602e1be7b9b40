//! Tests of the command line that need nothing but its files, in one program: each would have to be linked with all of
//! lowmark otherwise. What boots guests, records this machine, or needs its signals or terminal, has a program of its own.

#[path = "../common/mod.rs"]
mod common;

mod backends;
mod bisect;
mod constants;
mod documented;
mod errors;
mod list;
mod noise;
mod orders;
mod pages;
mod random_loads;
mod reproduce;
mod run;
mod sweep;
mod throttling;
mod traces;
mod twin;
mod whatif;
mod why;
