//! The registry against a naive model: who is alive, in which order, under which names.

use osteon_memory::{Role, Storage, TensorInfo, Viewer, map};
use osteon_spec::{DType, Device, Kind, Layout};
use proptest::prelude::*;
use std::panic::Location;

#[derive(Clone, Debug, PartialEq)]
struct Seat {
    serial: usize,
    label: Option<String>,
    op: &'static str,
    dtype: DType,
    sizes: Vec<usize>,
    offset: usize,
    is_view: bool,
}

impl From<&TensorInfo> for Seat {
    fn from(t: &TensorInfo) -> Seat {
        Seat {
            // The line tells tensors of equal looks apart no better than this does: order is compared.
            serial: 0,
            label: t.label.as_deref().map(str::to_owned),
            op: t.op,
            dtype: t.dtype,
            sizes: t.layout.sizes().to_vec(),
            offset: t.layout.offset(),
            is_view: t.role == Role::View,
        }
    }
}

#[derive(Debug)]
struct Bones {
    id: u64,
    nbytes: usize,
    version: u64,
    label: Option<String>,
    handles: Vec<Storage>,
    seats: Vec<Seat>,
}

#[derive(Debug, Default)]
struct Model {
    storages: Vec<Bones>,
    /// Handles to viewers: the storage's place in `storages`, and the seat's serial.
    viewers: Vec<(usize, usize, Viewer)>,
    serial: usize,
}

const DTYPES: [DType; 4] = [DType::U8, DType::F16, DType::F32, DType::C128];

impl Model {
    fn step(&mut self, (op, a, b): (u8, usize, usize)) {
        let site = Location::caller();
        let pick = |n: usize| (n > 0).then(|| a % n);
        match op {
            0 => {
                let device = if b % 4 == 0 {
                    Device::meta()
                } else {
                    Device::cpu()
                };
                let nbytes = [0, 1, 64, 1000, 40_000][a % 5];
                let storage = Storage::allocate(nbytes, &device, "test", site).unwrap();
                self.storages.push(Bones {
                    id: storage.id(),
                    nbytes,
                    version: 0,
                    label: None,
                    handles: vec![storage],
                    seats: Vec::new(),
                });
            }
            1 | 2 => {
                // A view through a storage's handle, or through another view.
                let through_view = op == 2;
                let (at, storage) = if through_view {
                    let Some(i) = pick(self.viewers.len()) else {
                        return;
                    };
                    (self.viewers[i].0, self.viewers[i].2.storage().clone())
                } else {
                    let Some(i) = pick(self.storages.len()) else {
                        return;
                    };
                    let Some(storage) = self.storages[i].handles.first() else {
                        return;
                    };
                    (i, storage.clone())
                };
                let dtype = DTYPES[b % 4];
                let room = storage.nbytes() / dtype.size();
                let (offset, n) = (b % (room + 2), b / 7 % (room + 2));
                let layout = Layout::contiguous(&[n])
                    .unwrap()
                    .with_offset(offset)
                    .unwrap();
                let role = if through_view {
                    Role::View
                } else {
                    Role::Tensor
                };
                let made = Viewer::register(storage, layout, dtype, "look", site, role);
                if n > 0 && offset + n > room {
                    assert_eq!(made.unwrap_err().kind(), Kind::Shape);
                    return;
                }
                self.serial += 1;
                self.storages[at].seats.push(Seat {
                    serial: self.serial,
                    label: None,
                    op: "look",
                    dtype,
                    sizes: vec![n],
                    offset,
                    is_view: through_view,
                });
                self.viewers.push((at, self.serial, made.unwrap()));
            }
            3 => {
                let Some(i) = pick(self.viewers.len()) else {
                    return;
                };
                let (at, serial, viewer) = &self.viewers[i];
                self.viewers.push((*at, *serial, viewer.clone()));
            }
            4 | 5 => {
                let Some(i) = pick(self.viewers.len()) else {
                    return;
                };
                let (at, serial, viewer) = self.viewers.swap_remove(i);
                drop(viewer);
                if self.viewers.iter().all(|v| v.1 != serial) {
                    self.storages[at].seats.retain(|s| s.serial != serial);
                }
            }
            6 => {
                let Some(i) = pick(self.storages.len()) else {
                    return;
                };
                if b % 3 == 0 {
                    let handle = self.storages[i].handles.first().cloned();
                    self.storages[i].handles.extend(handle);
                } else {
                    self.storages[i].handles.pop();
                }
            }
            7 => {
                let Some(i) = pick(self.viewers.len()) else {
                    return;
                };
                let (at, serial, viewer) = &self.viewers[i];
                let label = format!("tensor {b}");
                viewer.set_label(&label);
                let seat = self.storages[*at]
                    .seats
                    .iter_mut()
                    .find(|s| s.serial == *serial);
                seat.unwrap().label = Some(label);
            }
            8 => {
                let Some(i) = pick(self.viewers.len()) else {
                    return;
                };
                let bones = &mut self.storages[self.viewers[i].0];
                let storage = self.viewers[i].2.storage();
                bones.label = Some(format!("storage {b}"));
                storage.set_label(bones.label.as_deref().unwrap());
                storage.record_write("test", std::panic::Location::caller());
                bones.version += 1;
                storage.grow(b, "grow", site).unwrap();
                bones.nbytes = bones.nbytes.max(b);
            }
            _ => unreachable!(),
        }
    }

    fn check(&self) {
        let map = map();
        for bones in &self.storages {
            let alive = !bones.handles.is_empty() || !bones.seats.is_empty();
            let Some(found) = map.storage(bones.id) else {
                assert!(!alive, "storage {} is missing", bones.id);
                continue;
            };
            assert!(alive, "storage {} should be gone", bones.id);
            assert_eq!((found.nbytes, found.version), (bones.nbytes, bones.version));
            assert_eq!(found.label.as_deref(), bones.label.as_deref());
            assert!(
                found.allocated >= found.nbytes && (found.nbytes == 0) == (found.allocated == 0)
            );
            let seats: Vec<_> = found.tensors.iter().map(Seat::from).collect();
            let expected: Vec<_> = bones
                .seats
                .iter()
                .map(|s| Seat {
                    serial: 0,
                    ..s.clone()
                })
                .collect();
            assert_eq!(seats, expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn lists_exactly_the_live(steps in prop::collection::vec((0..9u8, 0..1000usize, 0..50_000usize), 1..60)) {
        let mut model = Model::default();
        for step in steps {
            model.step(step);
            model.check();
        }
        model.viewers.clear();
        model.storages.iter_mut().for_each(|s| { s.handles.clear(); s.seats.clear() });
        model.check();
    }
}

/// A seat keeps what a layer above attached until its last handle goes, then drops it once.
#[test]
fn attachments_go_with_the_last_handle() {
    use std::sync::Arc;
    let storage = Storage::allocate(4, &Device::cpu(), "test", Location::caller()).unwrap();
    let layout = Layout::contiguous(&[1]).unwrap();
    let viewer = Viewer::register(
        storage,
        layout,
        DType::F32,
        "look",
        Location::caller(),
        Role::Tensor,
    )
    .unwrap();
    let token = Arc::new(());
    let set = viewer.attachment().set(Arc::new(token.clone()));
    assert!(set.is_ok());
    let second = viewer.clone();
    assert!(viewer.is_same(&second) && !viewer.is_unique());
    let (layout, site) = (second.layout().clone(), Location::caller());
    let twin = Viewer::register(
        second.storage().clone(),
        layout,
        DType::F32,
        "look",
        site,
        Role::Tensor,
    );
    assert!(!twin.unwrap().is_same(&second));
    drop(viewer);
    assert_eq!(Arc::strong_count(&token), 2);
    drop(second);
    assert_eq!(Arc::strong_count(&token), 1);
}

/// An attachment that panics when it is dropped, as a user's hook might, leaves the registry whole.
#[test]
fn a_panic_in_a_drop_leaves_the_registry_whole() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("boom");
        }
    }
    let storage = Storage::allocate(4, &Device::cpu(), "test", Location::caller()).unwrap();
    let look = || {
        let layout = Layout::contiguous(&[1]).unwrap();
        Viewer::register(
            storage.clone(),
            layout,
            DType::F32,
            "look",
            Location::caller(),
            Role::Tensor,
        )
        .unwrap()
    };
    let (bomb, stays) = (look(), look());
    assert!(bomb.attachment().set(std::sync::Arc::new(Bomb)).is_ok());
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(bomb)));
    assert!(caught.is_err());
    assert_eq!(storage.tensors().len(), 1);
    drop(stays);
    assert!(storage.is_unique(), "the seat let go of its storage");
}
