//! What the adapters written in Rust share: the adapter ABI (lab/include/blockyard/adapter.h) and populated memory.

mod abi;
mod region;

pub use abi::{check_abi, fail, Adapter, Setup, ABI, EMULATES_ZEROED, NEEDS_LOCK, NEEDS_POOL, SIZED_FREE};
pub use region::{map, Region};
