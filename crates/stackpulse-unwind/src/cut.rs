//! Why a walk ended before the stack's root.

use thiserror::Error;

/// Why a walk ended before the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Cut {
    /// The next return address lies outside the captured bytes.
    #[error("the next return address lies outside the captured stack")]
    OutsideCapture,
    /// Nothing tells how to get from the frame to its caller.
    #[error("no unwind information covers the address")]
    NoUnwindInfo,
    /// The unwind information gave a frame address, or led to a caller, that cannot be.
    #[error("the unwind information leads nowhere")]
    BadCfa,
    /// The return address is null although the frame is not known for an outermost one.
    #[error("the return address is null")]
    NullReturnAddress,
    /// The stack is deeper than [`MAX_DEPTH`](crate::MAX_DEPTH).
    #[error("the stack is too deep")]
    DepthLimit,
    /// The walk came back to where it had been.
    #[error("the stack leads back into itself")]
    Loop,
}
