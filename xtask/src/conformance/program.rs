//! A recorded program: run step by step, then compared with everything that was observed.

use std::collections::{BTreeMap, HashMap};

use osteon::{DType, Tensor};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::call::Stop;
use super::exceptions::Difference;
use super::observe::{Observed, requested_bytes};
use super::report::Verdict;
use super::steps;
use super::value::{Tolerance, parse_numbers};

/// One line of a file of programs.
#[derive(Clone, Debug, Deserialize)]
pub struct Program {
    /// Its number in the file.
    pub id: u64,
    steps: Vec<Step>,
    expect: BTreeMap<String, Expected>,
    live_storages: Option<usize>,
    live_bytes: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Step {
    op: String,
    #[serde(rename = "in")]
    inputs: Vec<String>,
    #[serde(default)]
    args: Map<String, Value>,
    #[serde(default)]
    out: Vec<String>,
    error: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Expected {
    shape: Vec<usize>,
    stride: Vec<usize>,
    offset: usize,
    dtype: String,
    storage: usize,
    storage_nbytes: usize,
    contiguous: bool,
    version: u64,
    requires_grad: Option<bool>,
    is_leaf: Option<bool>,
    grad: Option<Vec<Value>>,
    values: Vec<Value>,
}

type Variables = BTreeMap<String, Tensor>;

enum End {
    Differs(Difference),
    Missing(String),
}

impl End {
    fn differs(op: &str, dtype: Option<DType>, detail: String) -> End {
        End::Differs(Difference {
            op: op.to_owned(),
            dtype,
            detail,
        })
    }
}

impl Program {
    /// The operations it uses.
    pub fn ops(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|s| s.op.as_str())
    }

    /// Runs it from nothing and compares all that can be seen. `watch` is told of every step.
    pub fn run(&self, watch: &mut dyn FnMut(&str)) -> Verdict {
        let before = requested_bytes();
        let mut variables = Variables::new();
        let mut makers = HashMap::new();
        let ended = self
            .steps
            .iter()
            .try_for_each(|step| step.run(&mut variables, &mut makers, watch))
            .and_then(|()| self.compare(&variables, &makers, requested_bytes() - before));
        match ended {
            Ok(()) => Verdict::Passed,
            Err(End::Differs(difference)) => difference.verdict(),
            Err(End::Missing(op)) => Verdict::Missing(op),
        }
    }

    fn compare(
        &self,
        variables: &Variables,
        makers: &HashMap<&str, &str>,
        live: i64,
    ) -> Result<(), End> {
        let mut storages = Classes::default();
        for (name, expected) in &self.expect {
            let blame = |detail: String| {
                let op = makers.get(name.as_str()).copied().unwrap_or("drop");
                let dtype = variables.get(name).map(Tensor::dtype);
                End::differs(op, dtype, format!("{name}: {detail}"))
            };
            let tensor = variables
                .get(name)
                .ok_or_else(|| blame("is not bound".to_owned()))?;
            let observed =
                Observed::of(tensor).map_err(|e| blame(format!("cannot be read: {e}")))?;
            expected.compare(&observed).map_err(blame)?;
            storages
                .same(expected.storage, observed.storage)
                .map_err(blame)?;
        }
        if let Some(name) = variables.keys().find(|n| !self.expect.contains_key(*n)) {
            return Err(End::differs(
                makers[name.as_str()],
                None,
                format!("{name}: is still bound"),
            ));
        }
        let accounting = |detail| End::differs("(accounting)", None, detail);
        if let Some(want) = self.live_storages.filter(|n| *n != storages.count()) {
            return Err(accounting(format!(
                "{} live storages, want {want}",
                storages.count()
            )));
        }
        if let Some(want) = self.live_bytes.filter(|n| i64::try_from(*n) != Ok(live)) {
            return Err(accounting(format!("{live} live bytes, want {want}")));
        }
        Ok(())
    }
}

impl Step {
    fn run<'a>(
        &'a self,
        variables: &mut Variables,
        makers: &mut HashMap<&'a str, &'a str>,
        watch: &mut dyn FnMut(&str),
    ) -> Result<(), End> {
        let dtype = self
            .inputs
            .first()
            .and_then(|name| variables.get(name))
            .map(Tensor::dtype);
        let blame = |detail: String| End::differs(&self.op, dtype, detail);
        if self.op == "drop" {
            for name in &self.inputs {
                variables
                    .remove(name)
                    .ok_or_else(|| blame(format!("{name} is not bound")))?;
            }
            watch(&format!("drop {}", self.inputs.join(" ")));
            return Ok(());
        }
        let before = if self.error.is_some() {
            Some(snapshot(variables).map_err(blame)?)
        } else {
            None
        };
        let result = self.call(variables);
        watch(&self.said(&result, variables));
        match (result, before) {
            (Err(Stop::Missing), _) => Err(End::Missing(self.op.clone())),
            (Err(Stop::Unreadable(why)), _) => {
                Err(blame(format!("the case cannot be read: {why}")))
            }
            (Ok(made), None) if made.len() == self.out.len() => {
                for (name, tensor) in self.out.iter().zip(made) {
                    makers.insert(name, &self.op);
                    variables.insert(name.clone(), tensor);
                }
                Ok(())
            }
            (Ok(made), None) => Err(blame(format!(
                "{} results, want {}",
                made.len(),
                self.out.len()
            ))),
            (Ok(_), Some(_)) => Err(blame("succeeds where it must fail".to_owned())),
            (Err(Stop::Panicked(what)), _) => Err(blame(format!("panics: {what}"))),
            (Err(Stop::Failed(e)), None) => Err(blame(format!("fails: {e}"))),
            (Err(Stop::Unwritable(e)), None) => Err(blame(format!("cannot be called: {e}"))),
            (Err(Stop::Failed(_) | Stop::Unwritable(_)), Some(before)) => {
                let after = snapshot(variables).map_err(blame)?;
                match before
                    .iter()
                    .zip(&after)
                    .find(|(before, after)| before != after)
                {
                    None => Ok(()),
                    Some((before, after)) => Err(blame(format!(
                        "fails, and changes {} from {:?} to {:?}",
                        before.0, before.1, after.1
                    ))),
                }
            }
        }
    }

    fn call(&self, variables: &mut Variables) -> Result<Vec<Tensor>, Stop> {
        let handles = self.inputs.iter().map(|name| variables.get(name).cloned());
        let mut inputs: Vec<Tensor> = handles
            .collect::<Option<_>>()
            .ok_or_else(|| Stop::Unreadable("an input is not bound".to_owned()))?;
        let result = Stop::catch(|| steps::apply(&self.op, &mut inputs, &self.args));
        // Operations on metadata in place change the handle that they are given: it goes back,
        // also after an error, so that a handle changed by a failed operation is seen.
        for (name, tensor) in self.inputs.iter().zip(inputs).take(1) {
            variables.insert(name.clone(), tensor);
        }
        result
    }

    fn said(&self, result: &Result<Vec<Tensor>, Stop>, variables: &Variables) -> String {
        let args: Vec<String> = self
            .args
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let call = format!(
            "{}({})",
            self.op,
            [self.inputs.clone(), args].concat().join(", ")
        );
        let shown = |tensor: &Tensor| match Observed::of(tensor) {
            Ok(observed) => observed.to_string(),
            Err(e) => format!("cannot be read: {e}"),
        };
        match result {
            Ok(made) if made.is_empty() => {
                let written = self
                    .inputs
                    .first()
                    .and_then(|n| variables.get(n))
                    .map(shown);
                format!("{call}\n    {}", written.unwrap_or_default())
            }
            Ok(made) => {
                let lines: Vec<String> =
                    made.iter().map(|t| format!("\n    {}", shown(t))).collect();
                format!("{} = {call}{}", self.out.join(", "), lines.concat())
            }
            Err(stop) => format!("{call}\n    {stop}"),
        }
    }
}

impl Expected {
    fn compare(&self, observed: &Observed) -> Result<(), String> {
        fn same<T: PartialEq + std::fmt::Debug>(what: &str, want: T, got: T) -> Result<(), String> {
            if want == got {
                Ok(())
            } else {
                Err(format!("{what} is {got:?}, want {want:?}"))
            }
        }
        same("dtype", self.dtype.as_str(), observed.dtype.name())?;
        same("shape", &self.shape, &observed.shape)?;
        same("stride", &self.stride, &observed.stride)?;
        same("offset", self.offset, observed.offset)?;
        same("contiguous", self.contiguous, observed.contiguous)?;
        same(
            "storage_nbytes",
            self.storage_nbytes,
            observed.storage_nbytes,
        )?;
        same("version", self.version, observed.version)?;
        let want = parse_numbers(&self.values).ok_or("the recorded values cannot be read")?;
        Tolerance::PROGRAMS
            .difference(observed.dtype, &want, &observed.values)
            .map_or(Ok(()), Err)?;
        // Programs of mode `data` say nothing about gradients.
        let (Some(requires_grad), Some(is_leaf)) = (self.requires_grad, self.is_leaf) else {
            return Ok(());
        };
        same("requires_grad", requires_grad, observed.requires_grad)?;
        same("is_leaf", is_leaf, observed.is_leaf)?;
        match (&self.grad, &observed.grad) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err("has a grad, and should not".to_owned()),
            (Some(_), None) => Err("has no grad".to_owned()),
            (Some(want), Some(got)) => {
                let want = parse_numbers(want).ok_or("the recorded grad cannot be read")?;
                Tolerance::PROGRAMS
                    .difference(observed.dtype, &want, got)
                    .map_or(Ok(()), |difference| Err(format!("grad: {difference}")))
            }
        }
    }
}

/// The recorded classes of storages and the engine's ids: one for one.
#[derive(Default)]
struct Classes {
    ids: BTreeMap<usize, u64>,
}

impl Classes {
    fn same(&mut self, class: usize, id: u64) -> Result<(), String> {
        match self.ids.get(&class) {
            Some(known) if *known == id => Ok(()),
            Some(_) => Err("has a storage of its own, and should share".to_owned()),
            None if self.ids.values().any(|known| *known == id) => {
                Err("shares a storage, and should not".to_owned())
            }
            None => {
                self.ids.insert(class, id);
                Ok(())
            }
        }
    }

    fn count(&self) -> usize {
        self.ids.len()
    }
}

fn snapshot(variables: &Variables) -> Result<Vec<(String, Observed)>, String> {
    variables
        .iter()
        .map(|(name, tensor)| Ok((name.clone(), Observed::of(tensor)?)))
        .collect::<Result<_, osteon::Error>>()
        .map_err(|e| format!("a variable cannot be read: {e}"))
}
