//! A recording as a program leaves one, made by a small simulation: a network trains, one list leaks.

use osteon_memory::timeline::{
    CopySpan, DeviceFigures, Figures, Moment, SegmentSpan, Stay, Text, Timeline, ViewSpan, Write,
};
use std::collections::{BTreeMap, HashMap};

const SEGMENT: u64 = 64 << 20;

/// What writes a timeline, event after event.
pub struct Recording {
    timeline: Timeline,
    texts: HashMap<String, u32>,
    now: u64,
    open: BTreeMap<u64, (Stay, Vec<usize>)>,
    /// Blocks by address: the bytes of each.
    blocks: BTreeMap<u64, u64>,
    figures: Figures,
    scopes: Vec<Text>,
    before: bool,
}

impl Recording {
    pub fn new(title: &str) -> Recording {
        Recording {
            timeline: Timeline {
                schema: 1,
                kind: "timeline".into(),
                title: title.into(),
                duration: 0,
                events: 0,
                lost: 0,
                strings: vec![String::new()],
                devices: vec![DeviceFigures {
                    device: "cpu".into(),
                    ..DeviceFigures::default()
                }],
                storages: vec![],
                views: vec![],
                segments: vec![],
                copies: vec![],
                writes: vec![],
                marks: vec![],
            },
            texts: HashMap::from([(String::new(), 0)]),
            now: 0,
            open: BTreeMap::new(),
            blocks: BTreeMap::new(),
            figures: Figures::default(),
            scopes: vec![],
            before: false,
        }
    }

    pub fn text(&mut self, text: &str) -> Text {
        let strings = &mut self.timeline.strings;
        Text(*self.texts.entry(text.into()).or_insert_with(|| {
            strings.push(text.into());
            strings.len() as u32 - 1
        }))
    }

    /// Lets time pass.
    pub fn wait(&mut self, ns: u64) {
        self.now += ns;
    }

    /// What is made until `begin` was there before the recording.
    pub fn before(&mut self) {
        self.before = true;
    }

    pub fn begin(&mut self) {
        self.before = false;
        self.now = 0;
        self.timeline.devices[0].start = self.figures;
    }

    fn scope_now(&self) -> Text {
        self.scopes.last().copied().unwrap_or_default()
    }

    pub fn enter(&mut self, name: &str) {
        let path = match self.scope_now() {
            Text(0) => name.to_owned(),
            Text(outer) => format!("{}.{name}", self.timeline.strings[outer as usize]),
        };
        let path = self.text(&path);
        self.scopes.push(path);
        self.mark("scope", path, None);
    }

    pub fn leave(&mut self) {
        let path = self.scopes.pop().unwrap();
        self.mark("scope_end", path, None);
    }

    pub fn mark(&mut self, kind: &str, text: Text, value: Option<u64>) {
        let kind = self.text(kind);
        self.timeline.events += 1;
        self.timeline.marks.push(Moment {
            time: self.now,
            kind,
            text,
            value,
            thread: 1,
        });
    }

    /// The lowest hole that fits, in a new segment where there is none.
    fn place(&mut self, size: u64) -> u64 {
        for s in self.timeline.segments.iter() {
            let mut at = s.address;
            for (&block, &bytes) in self.blocks.range(s.address..s.address + s.size) {
                if block - at >= size {
                    return at;
                }
                at = block + bytes;
            }
            if s.address + s.size - at >= size {
                return at;
            }
        }
        let kind = self.text("large");
        let address = self
            .timeline
            .segments
            .last()
            .map_or(0x7f00_0000_0000, |s| s.address + s.size + (8 << 20));
        let bytes = size.next_multiple_of(SEGMENT);
        self.figures.reserved += bytes;
        let from = if self.before { 0 } else { self.now };
        self.timeline.segments.push(SegmentSpan {
            device: 0,
            address,
            size: bytes,
            kind,
            from,
            to: None,
        });
        address
    }

    /// A new storage with a tensor of these sizes of `f32` on it; its id.
    pub fn alloc(&mut self, label: &str, op: &str, line: u32, shape: &[u64]) -> u64 {
        self.wait(60);
        let bytes = shape.iter().product::<u64>() * 4;
        let id = self.timeline.events + 1;
        let size = bytes.next_multiple_of(512);
        let address = self.place(size);
        self.blocks.insert(address, size);
        self.figures.allocated += size;
        self.figures.requested += bytes;
        let from = if self.before { 0 } else { self.now };
        let at = |f: Figures| Figures {
            time: Some(from),
            ..f
        };
        let device = &mut self.timeline.devices[0];
        if self.figures.allocated > device.peak.allocated {
            device.peak = at(self.figures);
        }
        if self.figures.reserved > device.peak_reserved.reserved {
            device.peak_reserved = at(self.figures);
        }
        let stay = Stay {
            id,
            bytes,
            size,
            address,
            from,
            before: self.before,
            op: self.text(op),
            site: self.text(&format!("examples/train.rs:{line}:17")),
            scope: self.scope_now(),
            label: self.text(label),
            thread: 1,
            ..Stay::default()
        };
        self.open.insert(id, (stay, vec![]));
        self.view(id, label, op, line, shape, false);
        id
    }

    pub fn view(&mut self, id: u64, label: &str, op: &str, line: u32, shape: &[u64], view: bool) {
        let mut stride: Vec<u64> = shape
            .iter()
            .rev()
            .scan(1, |s, &n| {
                let own = *s;
                *s *= n;
                Some(own)
            })
            .collect();
        stride.reverse();
        let (mut shape, mut stride) = (shape.to_vec(), stride);
        if op == "t" {
            shape.reverse();
            stride.reverse();
        }
        let row = ViewSpan {
            storage: id,
            from: if self.before { 0 } else { self.now },
            before: self.before,
            op: self.text(op),
            site: self.text(&format!("examples/train.rs:{line}:17")),
            scope: self.scope_now(),
            label: self.text(label),
            view,
            dtype: self.text("float32"),
            shape: shape.into(),
            stride: stride.into(),
            ..ViewSpan::default()
        };
        self.open
            .get_mut(&id)
            .unwrap()
            .1
            .push(self.timeline.views.len());
        self.timeline.views.push(row);
        self.timeline.events += 2;
    }

    pub fn free(&mut self, id: u64) {
        self.wait(60);
        let (mut stay, views) = self.open.remove(&id).unwrap();
        self.blocks.remove(&stay.address);
        self.figures.allocated -= stay.size;
        self.figures.requested -= stay.bytes;
        stay.to = Some(self.now);
        for view in views {
            self.timeline.views[view].to = Some(self.now);
        }
        self.timeline.events += 2;
        self.timeline.storages.push(stay);
    }

    pub fn write(&mut self, id: u64, op: &str, line: u32) {
        self.open.get_mut(&id).unwrap().0.version += 1;
        let row = Write {
            time: self.now,
            storage: id,
            op: self.text(op),
            site: self.text(&format!("examples/train.rs:{line}:9")),
            scope: self.scope_now(),
            thread: 1,
        };
        self.timeline.events += 1;
        self.timeline.writes.push(row);
    }

    pub fn copy(&mut self, from: u64, to: u64, reason: &str, line: u32) {
        let row = CopySpan {
            time: self.now,
            duration: 1000,
            bytes: self.open[&to].0.bytes,
            reason: self.text(reason),
            op: self.text(reason),
            site: self.text(&format!("examples/train.rs:{line}:17")),
            scope: self.scope_now(),
            from,
            to,
            thread: 1,
        };
        self.timeline.events += 1;
        self.timeline.copies.push(row);
    }

    pub fn stop(mut self) -> Timeline {
        self.timeline.duration = self.now;
        self.timeline.devices[0].end = self.figures;
        self.timeline
            .storages
            .extend(self.open.into_values().map(|(stay, _)| stay));
        self.timeline
    }
}

/// A network of 8 layers trains for some steps; a list keeps the prediction of each step.
pub fn training(steps: u64) -> Timeline {
    let mut r = Recording::new("examples/train.rs");
    r.before();
    let mut weights = vec![];
    for layer in 0..8 {
        for (name, shape) in [
            ("qkv", [768, 2304]),
            ("proj", [768, 768]),
            ("fc", [768, 3072]),
            ("out", [3072, 768]),
        ] {
            weights.push((
                r.alloc(&format!("layers.{layer}.{name}.weight"), "load", 12, &shape),
                shape,
            ));
        }
    }
    r.begin();
    r.wait(1_500_000);
    let mut momenta = vec![];
    for step in 0..steps {
        let none = r.text("");
        r.mark("step", none, Some(step + 1));
        r.enter("step");
        let batch = r.alloc("batch", "from_vec", 31, &[16, 128, 768]);
        r.enter("forward");
        let mut kept = vec![];
        for layer in 0..8usize {
            r.enter(&format!("layers.{layer}"));
            for (i, &(weight, shape)) in weights[layer * 4..layer * 4 + 4].iter().enumerate() {
                r.wait(90_000 + 13_000 * (i as u64));
                r.view(weight, "", "t", 52, &shape, true);
                let out = r.alloc("", "matmul", 52 + i as u32, &[16, 128, shape[1]]);
                if i == 0 {
                    r.view(out, "q", "slice", 58, &[16, 128, 768], true);
                    let packed = r.alloc("", "contiguous", 60, &[16, 128, 768]);
                    r.copy(out, packed, "contiguous", 60);
                    r.wait(40_000);
                    r.free(packed);
                }
                kept.push(out);
            }
            r.leave();
        }
        let prediction = r.alloc("prediction", "softmax", 66, &[16, 128, 32]);
        r.leave();
        r.enter("backward");
        let mut grads = vec![];
        for (i, out) in kept.into_iter().rev().enumerate() {
            r.wait(150_000);
            let (_, shape) = weights[31 - i];
            grads.push(r.alloc(&format!("layers.{}.grad", 7 - i / 4), "matmul", 74, &shape));
            r.free(out);
        }
        r.leave();
        r.enter("optimizer");
        for (i, &(weight, shape)) in weights.iter().enumerate() {
            if step == 0 {
                momenta.push(r.alloc(&format!("momentum.{i}"), "zeros_like", 81, &shape));
            }
            r.wait(30_000);
            let scratch = r.alloc("", "mul", 83, &shape);
            r.write(momenta[i], "add_", 84);
            r.write(weight, "sub_", 85);
            r.free(scratch);
        }
        r.leave();
        grads.into_iter().for_each(|g| r.free(g));
        r.free(batch);
        r.view(prediction, "history", "detach", 90, &[16, 128, 32], true);
        r.leave();
        r.wait(400_000);
    }
    let at = r.text("zeros at examples/train.rs:95:20");
    r.mark("oom", at, Some(3 << 30));
    r.wait(800_000);
    r.stop()
}

/// A million events: a queue of blocks of many sizes from many lines, and some that stay; views, copies, nested scopes, steps.
pub fn million() -> Timeline {
    let mut r = Recording::new("a million events");
    let mut seed = 1u64;
    let mut random = move |n: u64| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) % n
    };
    let none = r.text("");
    let mut open = std::collections::VecDeque::new();
    let mut event = 0u64;
    while r.timeline.events < 1_000_000 {
        event += 1;
        if event.is_multiple_of(200) {
            r.mark("step", none, Some(event / 200));
            r.enter("step");
        }
        if event.is_multiple_of(20) {
            r.enter(["forward", "backward"][event as usize / 20 % 2]);
        }
        r.wait(200 + random(4000));
        let line = 10 + (random(40) * random(40) / 40) as u32;
        let label = if random(3) == 0 {
            format!("part.{}", line % 20)
        } else {
            String::new()
        };
        let rows = 1 + random(64) * random(16) * (1 + event / 40_000 % 4);
        let id = r.alloc(&label, "add", line, &[rows, 256]);
        if event.is_multiple_of(4) {
            r.view(id, "", "t", line + 1, &[rows, 256], true);
        }
        if let Some(&from) = open.back()
            && event.is_multiple_of(7)
        {
            r.copy(from, id, "contiguous", line);
        }
        open.push_back(id);
        if event.is_multiple_of(5000) {
            open.pop_back();
        }
        while open.len() as u64 > 40 + event / 3000 % 60 {
            let at = random(open.len() as u64) as usize;
            let id = open.remove(at).unwrap();
            r.free(id);
        }
        if event % 20 == 19 && event > 20 {
            r.leave();
        }
        if event % 200 == 199 && event > 200 {
            r.leave();
        }
    }
    r.stop()
}

/// Names that would break a page that took them for markup.
pub fn hostile() -> Timeline {
    let mut r = Recording::new("</script><img src=x onerror=alert(1)> \u{202e}gnp.exe\n");
    r.enter("<b>scope</b>\u{2028}</title>");
    let id = r.alloc(
        "</script><script>document.title='run'</script><!--",
        "\"><img src=x onerror=alert(1)>",
        1,
        &[1000, 1000],
    );
    r.view(id, "<svg onload=alert(1)>", "&lt;view", 2, &[10], true);
    let long = r.alloc(&"long name ".repeat(1000), "__proto__", 3, &[512, 512]);
    r.wait(5000);
    r.copy(id, long, "constructor", 4);
    r.write(id, "<i>", 5);
    r.wait(5000);
    r.free(id);
    r.wait(90_000);
    r.stop()
}
