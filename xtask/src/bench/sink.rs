//! Where groups put their cases: each is measured, or run once and checked.

use osteon::{DType, Device, Result, Tensor, memory};

use super::measure::{beside_another, measure, reset_peak_rss, status};
use super::{Options, Record, check};

/// Runs the cases of one group.
pub struct Sink {
    group: char,
    threads: usize,
    filter: Option<String>,
    pub check: bool,
    neighbour: bool,
    records: Vec<Record>,
}

/// What a case is called, and what it must do.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    pub name: &'a str,
    pub params: &'a str,
    pub bytes: f64,
    pub flops: f64,
}

/// A case.
pub fn case<'a>(name: &'a str, params: &'a str, bytes: f64, flops: f64) -> Case<'a> {
    Case {
        name,
        params,
        bytes,
        flops,
    }
}

impl Sink {
    pub fn new(group: char, threads: usize, options: &Options) -> Sink {
        Sink {
            group,
            threads,
            filter: options.filter.clone(),
            check: options.check,
            neighbour: options.neighbour,
            records: Vec::new(),
        }
    }

    pub fn into_records(self) -> Vec<Record> {
        self.records
    }

    /// A size, much smaller where results are only checked.
    pub fn size(&self, n: usize) -> usize {
        if self.check { n.min(n / 32 + 16) } else { n }
    }

    /// An operation with a fresh result.
    pub fn op(
        &mut self,
        case: Case<'_>,
        inputs: &[&Tensor],
        op: impl Fn(&[&Tensor]) -> Result<Tensor>,
    ) {
        if self.check {
            self.checked(case, || {
                check::same(&op(inputs)?, &op(&refs(&check::twins(inputs)?))?)
            });
        } else {
            self.run(case, || op(inputs).map(drop));
        }
    }

    /// The same, written into a tensor that is there.
    pub fn into(
        &mut self,
        case: Case<'_>,
        inputs: &[&Tensor],
        out: &Tensor,
        op: impl Fn(&[&Tensor], &Tensor) -> Result<()>,
    ) {
        if self.check {
            self.checked(case, || {
                // In place, `out` is an input as well.
                let (twins, wide) = (check::twins(inputs)?, check::twin(out)?);
                op(inputs, out)?;
                op(&refs(&twins), &wide)?;
                check::same(out, &wide)
            });
        } else {
            self.run(case, || op(inputs, out));
        }
    }

    /// Anything that is only measured; checked, it must run.
    pub fn run(&mut self, case: Case<'_>, mut run: impl FnMut() -> Result<()>) {
        if self.check {
            return self.checked(case, || run().map(|()| None));
        }
        if !self.wanted(case) {
            return;
        }
        let cpu = Device::cpu();
        memory::empty_cache(&cpu);
        memory::reset_peak(&cpu);
        reset_peak_rss();
        let (live, rss) = (memory::allocated(&cpu), status("VmRSS:"));
        let times = measure(&mut run);
        let stats = memory::stats(&cpu);
        let above = |n: u64| Some(n.saturating_sub(live));
        let record = Record {
            peak_live: above(stats.allocated_bytes.all.peak),
            peak_reserved: above(stats.reserved_bytes.all.peak),
            peak_rss: status("VmHWM:")
                .zip(rss)
                .map(|(peak, before)| peak.saturating_sub(before)),
            ..self.record(case)
        };
        let record = match times {
            Ok(t) => Record {
                neighbour: (self.neighbour)
                    .then(|| beside_another(|| measure(&mut run))?.ok())
                    .flatten()
                    .map(|beside| beside.median / t.median),
                median_ns: t.median,
                p10: t.p10,
                p90: t.p90,
                ..record
            },
            Err(e) => Record {
                error: Some(e.to_string()),
                ..record
            },
        };
        self.push(record);
    }

    fn checked(&mut self, case: Case<'_>, run: impl FnOnce() -> Result<Option<String>>) {
        if self.wanted(case) {
            let error = run().unwrap_or_else(|e| Some(e.to_string()));
            self.push(Record {
                error,
                ..self.record(case)
            });
        }
    }

    fn wanted(&self, case: Case<'_>) -> bool {
        self.filter
            .as_ref()
            .is_none_or(|f| case.name.contains(f) || case.params.contains(f))
    }

    fn record(&self, case: Case<'_>) -> Record {
        Record {
            peer: "osteon".into(),
            group: self.group.into(),
            case: case.name.into(),
            params: case.params.into(),
            threads: self.threads,
            bytes: case.bytes,
            flops: case.flops,
            ..Record::default()
        }
    }

    fn push(&mut self, record: Record) {
        let figure = match (&record.error, self.check) {
            (Some(e), _) => format!("failed: {e}"),
            (None, true) => "right".into(),
            (None, false) if record.bytes > 0.0 => {
                format!(
                    "{:>12.0} ns  {:>7.1} GB/s",
                    record.median_ns,
                    record.bytes / record.median_ns
                )
            }
            (None, false) if record.flops > 0.0 => {
                format!(
                    "{:>12.0} ns  {:>7.1} GFLOP/s",
                    record.median_ns,
                    record.flops / record.median_ns
                )
            }
            (None, false) => format!("{:>12.1} ns", record.median_ns),
        };
        println!(
            "{} {:<28} {:<26} x{}  {figure}",
            record.group, record.case, record.params, record.threads
        );
        self.records.push(record);
    }
}

fn refs(tensors: &[Tensor]) -> Vec<&Tensor> {
    tensors.iter().collect()
}

/// Numbers between −½ and ½, the same in every run.
pub fn uniform(shape: &[usize], dtype: DType) -> Result<Tensor> {
    let numbers = Tensor::rand(shape, DType::F32, &Device::cpu())?;
    numbers.sub(0.5)?.to(dtype)
}
