//! Stacks with names: what every form is made from.

use crate::stacks::{Place, StackKey, Stacks};
use rustc_hash::FxHashMap;
use stackpulse_spool::{ImageKind, OwnedImage};
use std::sync::Arc;

/// Index of a function in [`Profile::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// Where code ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// In a program or library.
    User,
    /// In the kernel.
    Kernel,
    /// In code made at run time.
    Generated,
    /// Nowhere: it stands for frames that are missing.
    Marker,
}

/// A function, or what stands in a function's place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name; `None` where there is none.
    pub name: Option<Arc<str>>,
    /// The module's short name, such as `libc.so.6`; empty for a marker.
    pub module: Arc<str>,
    /// For a function without a name: an address in its module that tells it apart.
    pub address: Option<u64>,
    /// Where it runs.
    pub mode: Mode,
}

impl Function {
    /// Returns the function's name, or what to show in its place: `[unknown] module+0x123`.
    #[must_use]
    pub fn label(&self) -> String {
        match (&self.name, self.address) {
            (Some(name), _) => name.to_string(),
            (None, Some(address)) => format!("[unknown] {}+{address:#x}", self.module),
            (None, None) => "[unknown]".to_owned(),
        }
    }
}

/// One call at a place: that of the machine code itself, or one inlined into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The function.
    pub function: FunctionId,
    /// Source file, where known.
    pub file: Option<Arc<str>>,
    /// Line in it, from one, where known.
    pub line: Option<u32>,
}

/// A name found for an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedCall {
    /// The function's name; `None` where there is none.
    pub name: Option<Arc<str>>,
    /// Source file, where known.
    pub file: Option<Arc<str>>,
    /// Line in it, from one, where known.
    pub line: Option<u32>,
}

/// What is known of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// The calls there, innermost first; never empty.
    Named(Vec<NamedCall>),
    /// No name. The start of the function, where its bounds are known.
    Unnamed {
        /// First address of the function.
        start: Option<u64>,
    },
}

/// Distinct stacks and the functions in them.
#[derive(Debug)]
pub struct Profile {
    /// The stacks, by place.
    pub stacks: Stacks,
    /// Distinct functions.
    pub functions: Vec<Function>,
    /// For each place the calls there, innermost first; never empty.
    pub calls: Vec<Vec<Call>>,
}

impl Profile {
    /// Names every place of `stacks`. `name_all` is asked once for each image, with its index and its distinct
    /// addresses in ascending order, and answers for each of them.
    pub fn new(
        stacks: Stacks,
        mut name_all: impl FnMut(&Stacks, u32, &[u64]) -> Vec<Naming>,
    ) -> Self {
        let mut builder = Builder { functions: Vec::new(), index: FxHashMap::default() };
        let modules: Vec<Arc<str>> =
            stacks.images.iter().map(|image| module_name(image).into()).collect();
        let mut calls = vec![Vec::new(); stacks.places.len()];
        for (image, places) in (0u32..).zip(stacks.places_by_image()) {
            let addresses: Vec<u64> = places.iter().map(|&(address, _)| address).collect();
            if addresses.is_empty() {
                continue;
            }
            let namings = name_all(&stacks, image, &addresses);
            let kind = stacks.images[image as usize].kind;
            for (at, &(address, place)) in places.iter().enumerate() {
                let naming = namings.get(at).unwrap_or(&Naming::Unnamed { start: None });
                calls[place as usize] =
                    builder.calls(naming, address, &modules[image as usize], mode_of(kind));
            }
        }
        for (calls, place) in calls.iter_mut().zip(&stacks.places) {
            match *place {
                Place::Code { .. } => {}
                Place::Truncated(reason) => {
                    let reason = stackpulse_spool::text::truncation(reason);
                    *calls = builder.marker(&format!("[truncated:{reason}]"));
                }
                Place::Joined => *calls = builder.marker("[joined]"),
            }
        }
        Self { stacks, functions: builder.functions, calls }
    }

    /// Shows inlined calls as part of the function whose machine code they are in.
    pub fn hide_inlined(&mut self) {
        for calls in &mut self.calls {
            calls.drain(..calls.len() - 1);
        }
    }

    /// Returns a stack's calls, innermost first.
    pub fn calls_of(&self, stack: StackKey) -> impl Iterator<Item = &Call> + '_ {
        self.stacks.places_of(stack).flat_map(|place| &self.calls[place as usize])
    }

    /// Returns the function with this id.
    #[must_use]
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }
}

/// Gives equal functions one id.
struct Builder {
    functions: Vec<Function>,
    index: FxHashMap<Function, FunctionId>,
}

impl Builder {
    fn calls(&mut self, naming: &Naming, address: u64, module: &Arc<str>, mode: Mode) -> Vec<Call> {
        let mut call = |name: Option<Arc<str>>, at: Option<u64>, file, line| Call {
            function: self.function(Function {
                name,
                module: Arc::clone(module),
                address: at,
                mode,
            }),
            file,
            line,
        };
        match naming {
            Naming::Named(chain) if !chain.is_empty() => chain
                .iter()
                .map(|named| {
                    let at = if named.name.is_none() { Some(address) } else { None };
                    call(named.name.clone(), at, named.file.clone(), named.line)
                })
                .collect(),
            Naming::Unnamed { start: Some(start) } => vec![call(None, Some(*start), None, None)],
            _ => vec![call(None, Some(address), None, None)],
        }
    }

    fn marker(&mut self, text: &str) -> Vec<Call> {
        let function = Function {
            name: Some(text.into()),
            module: "".into(),
            address: None,
            mode: Mode::Marker,
        };
        vec![Call { function: self.function(function), file: None, line: None }]
    }

    fn function(&mut self, function: Function) -> FunctionId {
        if let Some(&id) = self.index.get(&function) {
            return id;
        }
        let id = FunctionId(u32::try_from(self.functions.len()).expect("functions fit 32 bits"));
        self.functions.push(function.clone());
        self.index.insert(function, id);
        id
    }
}

fn mode_of(kind: ImageKind) -> Mode {
    match kind {
        ImageKind::Kernel => Mode::Kernel,
        ImageKind::Generated => Mode::Generated,
        _ => Mode::User,
    }
}

/// What people call an image: its file name, or a word in brackets for what has none.
#[must_use]
pub fn module_name(image: &OwnedImage) -> String {
    let file_name = image.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    match image.kind {
        ImageKind::Vdso => "[vdso]".to_owned(),
        ImageKind::Kernel if file_name.is_empty() => "[kernel]".to_owned(),
        ImageKind::Generated if file_name.is_empty() => "[generated]".to_owned(),
        _ if file_name.is_empty() => "[unknown]".to_owned(),
        _ => String::from_utf8_lossy(file_name).into_owned(),
    }
}
