//! The unwinder's door: modules in; registers and stack bytes in; frames out.

use crate::address_space::{AddressSpace, ImageIndex, Region, Shown};
use crate::cut::Cut;
use crate::fast_walk::{Ended, Trail};
use crate::image::ImageFile;
use crate::images::Images;
use crate::last_stack::{LastStack, Steps};
use crate::memory::CapturedStack;
use crate::registers::Registers;
use crate::walk::{MAX_DEPTH, WalkedFrame, Walker};

/// Unwinds stacks of any number of processes; what it learns of an image serves all of them.
#[derive(Debug, Default)]
pub struct Unwinder {
    images: Images,
    leaves_cut_stacks: bool,
    /// Memory used again for each walk.
    frames: Vec<WalkedFrame>,
    trail: Trail,
}

/// A thread as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// Its registers.
    pub registers: Registers,
    /// The bytes of its stack, from the stack pointer upwards; as many as there are.
    pub stack: &'a [u8],
}

/// An image is met whose file has not been provided: [provide](Unwinder::provide) it, and unwind again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Which image.
    pub image: ImageIndex,
    /// Where it is mapped.
    pub region: Region,
}

/// How a walk went: its new frames are [`Unwinder::frames`]; behind them come those of the thread's last stack that it met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Walk {
    /// So many frames of the last stack, the outermost, follow behind the new ones: [`LastStack::outermost`].
    pub met: usize,
    /// Why the walk ended before the root, if it did. The stack is whole all the same if it was joined.
    pub cut: Option<Cut>,
    /// Steps that no unwind information led to, of the whole stack.
    pub steps: Steps,
    /// Whether the next walk may build on this one.
    is_fast: bool,
}

impl Unwinder {
    /// Makes one that knows no image.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves stacks that are deeper than what was captured as they are: cut. Without this they are joined to the callers that an
    /// earlier stack of the thread showed, where it had the same frame at the end of the captured bytes.
    pub fn leave_cut_stacks(&mut self) {
        self.leaves_cut_stacks = true;
    }

    /// Makes an image known whose file is asked for, by [`Unread`], when a walk first meets it.
    pub fn add_image(&mut self) -> ImageIndex {
        self.images.add()
    }

    /// Provides an image's file; `None`: there is none, and frame pointers are all there is.
    pub fn provide(&mut self, image: ImageIndex, file: Option<ImageFile>) {
        self.images.provide(image, file);
    }

    /// Whether an image's file has not been provided.
    #[must_use]
    pub fn is_unread(&self, image: ImageIndex) -> bool {
        self.images.is_unread(image)
    }

    /// Returns the address that an image's file states for a byte of it; where the file is not there, the byte's offset itself.
    #[inline]
    #[must_use]
    pub fn svma(&self, image: ImageIndex, file_offset: u64) -> u64 {
        self.images.svma(image, file_offset)
    }

    /// Unwinds a thread's stack. Where it meets the thread's last stack the walk ends: the rest is the same.
    ///
    /// When what each new frame is has been found out, [remember](Self::remember) the walk.
    ///
    /// # Errors
    ///
    /// [`Unread`] when the walk met an image whose file is to be provided first.
    pub fn unwind<F: Copy>(
        &mut self,
        space: &AddressSpace,
        captured: &Captured<'_>,
        last: &mut LastStack<F>,
    ) -> Result<Walk, Unread> {
        let registers = &captured.registers;
        let stack = CapturedStack { start_avma: registers.sp(), bytes: captured.stack };
        last.begin(space.version(), &stack);
        let mut walker = Walker { space, images: &mut self.images, steps: Steps::default() };
        self.frames.clear();
        let fast = walker.walk_fast(registers, stack, last, (&mut self.frames, &mut self.trail));
        let ended = fast.unwrap_or_else(|| {
            self.frames.clear();
            walker.steps = Steps::default();
            Ended::Alone(walker.walk(*registers, stack, &mut self.frames))
        });
        let mut steps = walker.steps;
        if let Some(unread) = self.frames.iter().find_map(|frame| self.unread(frame)) {
            return Err(unread);
        }
        let (met, cut) = match ended {
            Ended::Joined(index) => (index + 1, last.end),
            Ended::Alone(cut) => {
                last.joined = None;
                if fast.is_some() && cut == Some(Cut::OutsideCapture) && !self.leaves_cut_stacks {
                    self.join(last);
                }
                (0, cut)
            }
        };
        if let Some(innermost) = met.checked_sub(1).and_then(|at| last.entries.get(at)) {
            steps.add(innermost.steps);
        }
        Ok(Walk { met, cut, steps, is_fast: fast.is_some() })
    }

    /// Joins a stack that was cut at the end of the captured bytes to what is known of its callers.
    fn join<F: Copy>(&self, last: &mut LastStack<F>) {
        if let Some(edge) = self.trail.outermost(&self.frames) {
            last.join_earlier(edge, MAX_DEPTH.saturating_sub(self.frames.len() + 1));
        }
    }

    fn unread(&self, frame: &WalkedFrame) -> Option<Unread> {
        let region = frame.region?;
        match region.shown {
            Shown::Image { image, .. } if self.images.is_unread(image) => {
                Some(Unread { image, region })
            }
            _ => None,
        }
    }

    /// Returns the new frames of the walk before, innermost first.
    #[must_use]
    pub fn frames(&self) -> &[WalkedFrame] {
        &self.frames
    }

    /// Makes the walk before the thread's last stack. `new` is what the user keeps of its new frames, innermost first.
    pub fn remember<F: Copy>(&self, walk: &Walk, new: &[F], last: &mut LastStack<F>) {
        if walk.is_fast {
            self.trail.remember(walk, (&self.frames, new), last);
        } else {
            // What the stack depends on is not known.
            last.clear();
        }
    }
}
