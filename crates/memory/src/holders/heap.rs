//! Everything that keeps storages, and what it keeps: a graph of tensors, what the layer above attached to them, and
//! storages, taken at one moment.

use crate::device;
use crate::map::StorageInfo;
use crate::registry::{Attachment, Look, TensorInfo, Viewer};
use crate::storage::Site;
use std::collections::{HashMap, TryReserveError};
use std::sync::{Arc, OnceLock};

/// How the layer above tells what its attachments keep: the graph of derivatives.
///
/// It is asked while reports are made, perhaps inside of an operation that found no memory: it waits for no lock, and
/// tells nothing of an object whose lock is taken.
pub trait Graph: Sync {
    /// Calls `link` with each thing that an object keeps.
    fn links(&self, object: &Attachment, link: &mut dyn FnMut(Link<'_>));

    /// The operation that an object stands for, and its line; `None` for one that stands for none.
    fn place(&self, object: &Attachment) -> Option<(&'static str, Site)>;
}

/// What an object of a [`Graph`] keeps.
#[expect(missing_debug_implementations, reason = "an attachment has no text")]
pub enum Link<'a> {
    /// Another object.
    Object(Attachment),
    /// A tensor.
    Tensor(&'a Viewer),
}

static GRAPH: OnceLock<&'static dyn Graph> = OnceLock::new();

/// Makes the layer above known to reports; the first one stays.
#[inline]
pub fn set_graph(graph: &'static dyn Graph) {
    GRAPH.get_or_init(|| graph);
}

/// A thing in the heap, as a number.
pub(crate) type Id = u32;

/// One thing.
pub(crate) enum Thing {
    /// A storage: its place in `Heap::storages`.
    Storage(usize),
    /// A tensor: on which storage, what the registry knows of it, and whether something besides the objects keeps it.
    Tensor {
        storage: usize,
        info: TensorInfo,
        seat: usize,
        root: bool,
    },
    /// What the layer above attached to a tensor, or what that keeps.
    Object(Option<(&'static str, Site)>),
}

/// All things and what each keeps.
pub(crate) struct Heap {
    /// Oldest first; their lists of tensors are empty, as the tensors are things.
    pub(crate) storages: Vec<StorageInfo>,
    pub(crate) things: Vec<Thing>,
    /// Where the edges of a thing begin in `edges`; one more than there are things.
    starts: Vec<usize>,
    edges: Vec<Id>,
}

impl Heap {
    /// The heap now. Other threads go on: what they make or drop meanwhile may be in it or not.
    pub(crate) fn survey() -> Result<Heap, TryReserveError> {
        // Outside of the locks, so that what turns out to be the last handle to an attachment is dropped there.
        let mut taken: Vec<(StorageInfo, Vec<Look>)> = Vec::new();
        let mut complete = Ok(());
        for memory in device::all() {
            let state = memory.lock();
            if let Err(e) = taken.try_reserve(state.storages.len()) {
                complete = Err(e);
                break;
            }
            for storage in state.storages.iter() {
                // SAFETY: the device's lock is held.
                match StorageInfo::with_looks(storage, unsafe { storage.owner() }) {
                    Ok(entry) => taken.push(entry),
                    Err(e) => complete = Err(e),
                }
            }
        }
        complete?;
        taken.sort_unstable_by_key(|(s, _)| s.id);
        Build::default().run(taken)
    }

    /// What a thing keeps.
    pub(crate) fn keeps(&self, id: Id) -> &[Id] {
        let id = id as usize;
        &self.edges[self.starts[id]..self.starts[id + 1]]
    }

    pub(crate) fn len(&self) -> usize {
        self.things.len()
    }

    /// Whether a program has the thing in its hands.
    pub(crate) fn is_root(&self, id: Id) -> bool {
        match &self.things[id as usize] {
            Thing::Tensor { root, .. } => *root,
            Thing::Storage(s) => {
                let s = &self.storages[*s];
                s.handles > 0 || !s.guards.is_empty()
            }
            Thing::Object(_) => false,
        }
    }

    /// The edges the other way round: where those of a thing begin, and who keeps it.
    pub(crate) fn keepers(&self) -> Result<(Vec<usize>, Vec<Id>), TryReserveError> {
        let mut pairs = Vec::new();
        pairs.try_reserve_exact(self.edges.len())?;
        for from in 0..self.len() as Id {
            pairs.extend(self.keeps(from).iter().map(|&to| (to, from)));
        }
        lists(&mut pairs, self.len())
    }

    /// The storage with an id, as a thing: storages come first.
    pub(crate) fn storage(&self, id: u64) -> Option<Id> {
        let at = self.storages.binary_search_by_key(&id, |s| s.id);
        at.ok().map(|at| at as Id)
    }

    /// The tensor of a viewer, as a thing.
    pub(crate) fn tensor(&self, viewer: &Viewer) -> Option<Id> {
        let wanted = viewer.seat_address();
        let is = |t: &Thing| matches!(t, Thing::Tensor { seat, .. } if *seat == wanted);
        self.things.iter().position(is).map(|at| at as Id)
    }
}

/// Pairs of a thing and another as lists, one for each thing.
fn lists(pairs: &mut [(Id, Id)], things: usize) -> Result<(Vec<usize>, Vec<Id>), TryReserveError> {
    pairs.sort_unstable();
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    starts.try_reserve_exact(things + 1)?;
    ends.try_reserve_exact(pairs.len())?;
    for &(from, to) in pairs.iter() {
        while starts.len() <= from as usize {
            starts.push(ends.len());
        }
        ends.push(to);
    }
    while starts.len() <= things {
        starts.push(ends.len());
    }
    Ok((starts, ends))
}

/// A heap that is being put together.
#[derive(Default)]
struct Build {
    storages: Vec<StorageInfo>,
    things: Vec<Thing>,
    edges: Vec<(Id, Id)>,
    /// Tensors by the address of their seats.
    tensors: HashMap<usize, Id>,
    /// Objects by address. They are kept, so that no address is used again.
    objects: HashMap<usize, Id>,
    /// Objects whose links are still to be followed.
    waiting: Vec<(Id, Attachment)>,
    done: Vec<Attachment>,
}

impl Build {
    fn run(mut self, taken: Vec<(StorageInfo, Vec<Look>)>) -> Result<Heap, TryReserveError> {
        let tensors: usize = taken.iter().map(|(_, looks)| looks.len()).sum();
        self.storages.try_reserve_exact(taken.len())?;
        self.things.try_reserve(taken.len() + tensors)?;
        self.tensors.try_reserve(tensors)?;
        let mut looks: Vec<(Id, Look)> = Vec::new();
        looks.try_reserve_exact(tensors)?;
        self.things.extend((0..taken.len()).map(Thing::Storage));
        // How often each tensor is held: by handles, and then less what the objects hold.
        let mut handles: HashMap<Id, usize> = HashMap::new();
        handles.try_reserve(tensors)?;
        for (at, (storage, of_it)) in taken.into_iter().enumerate() {
            self.storages.push(storage);
            for look in of_it {
                let id = self.things.len() as Id;
                self.tensors.insert(look.seat, id);
                handles.insert(id, look.handles);
                self.things.push(Thing::Tensor {
                    storage: at,
                    info: look.info.clone(),
                    seat: look.seat,
                    root: false,
                });
                self.edge(id, at as Id)?;
                looks.push((id, look));
            }
        }
        for (id, look) in looks {
            for attachment in [look.attachment, look.base].into_iter().flatten() {
                let object = self.object(attachment)?;
                self.edge(id, object)?;
            }
        }
        while let Some((id, object)) = self.waiting.pop() {
            self.follow(id, &object, &mut handles)?;
            self.done.try_reserve(1)?;
            self.done.push(object);
        }
        for (id, thing) in self.things.iter_mut().enumerate() {
            if let Thing::Tensor { root, .. } = thing {
                *root = handles.get(&(id as Id)).is_some_and(|&n| n > 0);
            }
        }
        let (starts, edges) = lists(&mut self.edges, self.things.len())?;
        Ok(Heap {
            storages: self.storages,
            things: self.things,
            starts,
            edges,
        })
    }

    fn edge(&mut self, from: Id, to: Id) -> Result<(), TryReserveError> {
        self.edges.try_reserve(1)?;
        self.edges.push((from, to));
        Ok(())
    }

    /// The thing of an object, whose links are followed later if it is new.
    fn object(&mut self, object: Attachment) -> Result<Id, TryReserveError> {
        let address = Arc::as_ptr(&object).addr();
        if let Some(&id) = self.objects.get(&address) {
            return Ok(id);
        }
        self.things.try_reserve(1)?;
        self.objects.try_reserve(1)?;
        self.waiting.try_reserve(1)?;
        let id = self.things.len() as Id;
        let place = GRAPH.get().and_then(|graph| graph.place(&object));
        self.things.push(Thing::Object(place));
        self.objects.insert(address, id);
        self.waiting.push((id, object));
        Ok(id)
    }

    fn follow(
        &mut self,
        id: Id,
        object: &Attachment,
        handles: &mut HashMap<Id, usize>,
    ) -> Result<(), TryReserveError> {
        let mut result = Ok(());
        let Some(graph) = GRAPH.get() else {
            return result;
        };
        graph.links(object, &mut |link| {
            if result.is_err() {
                return;
            }
            result = match link {
                Link::Object(object) => self.object(object).and_then(|to| self.edge(id, to)),
                Link::Tensor(viewer) => match self.tensors.get(&viewer.seat_address()) {
                    Some(&tensor) => {
                        if let Some(n) = handles.get_mut(&tensor) {
                            *n = n.saturating_sub(1);
                        }
                        self.edge(id, tensor)
                    }
                    // Made since the lists were read.
                    None => Ok(()),
                },
            };
        });
        result
    }
}
