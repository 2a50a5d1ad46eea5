// SPDX-License-Identifier: MIT OR Apache-2.0
//! The expressions of an experiment: Rhai, with functions over a run, over the cells of an experiment, and of the laws.
//!
//! All numbers are floating point where it matters: `1/2` is 0.5, and every function takes whole numbers, too.
//!
//! What several experiments need is a Rust function here. What one experiment needs is a function in its file: 29 of 44
//! have 134 of them, of 3 lines each on average, and only 3 have the same text in two files. They hold a paper's
//! constants and the shape of one claim. As Rust functions they would be further from the claim, longer (each would be
//! registered, typed and documented), and a change of one would need a build.

mod cells;
mod numbers;
mod packets;
mod run;
mod series;
mod template;
mod units;
mod value;

pub use cells::{Cell, Cells, Where};
pub use series::Series;
pub use template::{Hole, fill};
pub use value::Value;

use crate::{
    error::{LabError, Result},
    recording::Recording,
};
use lowtide_cc::Random;
use rhai::{
    Dynamic, Engine, EvalAltResult, NativeCallContext, OptimizationLevel, RhaiNativeFunc, Scope,
    packages::{
        BasicArrayPackage, BasicIteratorPackage, BasicMapPackage, BasicStringPackage, CorePackage, LogicPackage,
        MoreStringPackage, Package,
    },
};
use std::{cell::RefCell, rc::Rc};

/// What a function that is called in an expression gives.
type Answer<T> = std::result::Result<T, Box<EvalAltResult>>;

/// What functions work on.
#[derive(Clone)]
pub enum Context {
    /// Nothing: only functions of numbers.
    Nothing,
    /// The chance of one run.
    Chance(Rc<RefCell<Random>>),
    /// What was seen of one run.
    Run(Rc<Recording>),
    /// What was measured in all runs, or in this one alone of each cell.
    Cells(Rc<Cells>, Option<usize>),
}

/// A function, for its documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// What it belongs to.
    pub group: &'static str,
    /// How it is called.
    pub form: &'static str,
    /// What it gives.
    pub about: &'static str,
}

/// Evaluates expressions.
pub struct Language {
    engine: Engine,
    functions: Vec<Function>,
    group: &'static str,
}

/// Steps of an expression before it is taken for endless.
const MOST_STEPS: u64 = 20_000_000;

impl Language {
    /// The language with all its functions, which work on `context`.
    pub fn new(context: Context) -> Self {
        let mut engine = Engine::new_raw();
        CorePackage::new().register_into_engine(&mut engine);
        LogicPackage::new().register_into_engine(&mut engine);
        BasicArrayPackage::new().register_into_engine(&mut engine);
        BasicMapPackage::new().register_into_engine(&mut engine);
        BasicIteratorPackage::new().register_into_engine(&mut engine);
        BasicStringPackage::new().register_into_engine(&mut engine);
        MoreStringPackage::new().register_into_engine(&mut engine);
        engine.set_strict_variables(true);
        engine.set_max_operations(MOST_STEPS);
        engine.set_max_expr_depths(128, 64);
        // else the constants of the scope take the place of parameters of the same name
        engine.set_optimization_level(OptimizationLevel::None);
        // whole numbers are divided like all others
        engine.set_fast_operators(false);
        engine.register_fn("/", |a: i64, b: i64| a as f64 / b as f64);
        let mut language = Self { engine, functions: Vec::new(), group: "" };
        language.set_context(context);
        language.section("Numbers and lists", numbers::register);
        language.section("Scenarios", template::register);
        language.section("A run", run::register);
        language.section("Packets of a run", packets::register);
        language.section("Time series", series::register);
        language.section("Cells", cells::register);
        language.section("Laws and formulas", units::register);
        language
    }

    /// From now on functions work on this.
    pub fn set_context(&mut self, context: Context) {
        self.engine.set_default_tag(Dynamic::from(context));
    }

    /// All functions, in the order of their groups.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    fn section(&mut self, group: &'static str, register: fn(&mut Self)) {
        self.group = group;
        register(self);
    }

    /// A function, under the name that `form` has.
    fn add<A: 'static, const N: usize, const X: bool, R: Clone + 'static, const F: bool>(
        &mut self,
        form: &'static str,
        about: &'static str,
        function: impl RhaiNativeFunc<A, N, X, R, F> + 'static,
    ) {
        self.functions.push(Function { group: self.group, form, about });
        self.engine.register_fn(name(form), function);
    }

    /// The same function with other arguments.
    fn also<A: 'static, const N: usize, const X: bool, R: Clone + 'static, const F: bool>(
        &mut self,
        form: &'static str,
        function: impl RhaiNativeFunc<A, N, X, R, F> + 'static,
    ) {
        self.engine.register_fn(name(form), function);
    }

    /// Whether these are the words of an expression: it is read, not evaluated.
    ///
    /// # Errors
    /// What does not belong there, or a variable that is not in `scope`.
    pub fn check(&self, functions: &str, expression: &str, scope: &Scope<'_>) -> Result<()> {
        let text = together(functions, expression);
        self.engine.compile_with_scope(scope, text).map(drop).map_err(|error| failed(expression, &error.into()))
    }

    /// The value of an expression, which may use the variables of `scope` and the script's own `functions`.
    ///
    /// # Errors
    /// What Rhai says of the expression, or a function of its arguments.
    pub fn evaluate(&self, functions: &str, expression: &str, scope: &Scope<'_>) -> Result<Dynamic> {
        let text = together(functions, expression);
        self.engine.eval_with_scope::<Dynamic>(&mut scope.clone(), &text).map_err(|error| failed(expression, &error))
    }

    /// The same, as a value that can be kept.
    ///
    /// # Errors
    /// As [`Language::evaluate`], or it is no number and no list of numbers.
    pub fn value(&self, functions: &str, expression: &str, scope: &Scope<'_>) -> Result<Value> {
        let result = self.evaluate(functions, expression, scope)?;
        Value::from_dynamic(result).map_err(|what| LabError::new(format!("`{}`: {what}", shortened(expression))))
    }

    /// The same, as a time series.
    ///
    /// # Errors
    /// As [`Language::evaluate`], or it is no time series.
    pub fn series(&self, functions: &str, expression: &str, scope: &Scope<'_>) -> Result<Series> {
        let result = self.evaluate(functions, expression, scope)?;
        let kind = result.type_name();
        result.try_cast::<Series>().ok_or_else(|| {
            LabError::new(format!(
                "`{}` has to be a time series, like rate(\"bg\"), and is a {kind}",
                shortened(expression)
            ))
        })
    }
}

fn together(functions: &str, expression: &str) -> String {
    if functions.is_empty() { expression.to_owned() } else { format!("{functions}\n{expression}") }
}

fn failed(expression: &str, error: &EvalAltResult) -> LabError {
    let what = format!("`{}`: {error}", shortened(expression));
    match error.unwrap_inner() {
        EvalAltResult::ErrorSystem(_, error) if error.downcast_ref().is_some_and(LabError::is_no_such_cell) => {
            LabError::no_such_cell(what)
        }
        _ => LabError::new(what),
    }
}

/// Enough of an expression to find it.
fn shortened(expression: &str) -> String {
    let line = expression.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(100) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// The name of a function that is called like `f(x)` or `series.f(x)`.
fn name(form: &'static str) -> &'static str {
    let called = form.split('(').next().unwrap_or(form);
    called.rsplit('.').next().unwrap_or(called)
}

/// An error of a function.
fn wrong<T>(what: impl Into<String>) -> Answer<T> {
    Err(EvalAltResult::from(what.into()).into())
}

/// An error of the lab's, which stays what it is.
fn passed_on<T>(error: LabError) -> Answer<T> {
    Err(EvalAltResult::ErrorSystem(String::new(), error.into()).into())
}

/// A number, however it was written.
fn number(value: &Dynamic) -> Answer<f64> {
    let found = value.as_float().or_else(|_| value.as_int().map(|whole| whole as f64));
    found.or_else(|_| value.as_bool().map(f64::from)).or_else(|kind| match kind {
        "()" => {
            wrong("there is no value here where a number is needed (nothing was measured); use `??` for a stand-in")
        }
        kind => wrong(format!("a number is needed here, not a {kind}")),
    })
}

/// What the functions work on.
fn context(call: &NativeCallContext<'_>) -> Context {
    call.tag().and_then(|tag| tag.clone().try_cast::<Context>()).unwrap_or(Context::Nothing)
}

/// The run.
fn recording(call: &NativeCallContext<'_>) -> Answer<Rc<Recording>> {
    match context(call) {
        Context::Run(recording) => Ok(recording),
        _ => wrong(format!("{} is of one run; it belongs into a measure or a series", call.fn_name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(expression: &str) -> Value {
        let mut scope = Scope::new();
        scope.push_constant("g", 2.0);
        Language::new(Context::Nothing).value("fn twice(x) { 2 * x }", expression, &scope).unwrap()
    }

    #[test]
    fn whole_numbers_are_numbers() {
        assert_eq!(value("1 / 2"), Value::from(0.5));
        assert_eq!(value("g / 4 + 1"), Value::from(1.5));
        assert_eq!(value("twice(g) == 4"), Value::from(1.0));
        assert_eq!(value("[1, 2.5, g].map(|x| x / 2)"), Value::List(vec![0.5, 1.25, 1.0]));
        assert_eq!(value("()"), Value::Number(None));
    }

    #[test]
    fn parameters_hide_constants_of_the_same_name() {
        let mut scope = Scope::new();
        scope.push_constant("g", 7.0);
        let language = Language::new(Context::Nothing);
        let functions = "fn itself(g) { g } fn large(g) { if g > 3 { 1 } else { 0 } }";
        for (expression, expected) in
            [("itself(1)", 1.0), ("large(1)", 0.0), ("[1].map(|g| g)[0]", 1.0), ("for g in [1] { return g; }", 1.0)]
        {
            assert_eq!(language.value(functions, expression, &scope).unwrap(), Value::from(expected), "{expression}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let language = Language::new(Context::Nothing);
        let scope = Scope::new();
        let message = |text: &str| language.check("", text, &scope).unwrap_err().to_string();
        assert!(message("h + 1").contains("`h + 1`") && message("h + 1").contains('h'), "{}", message("h + 1"));
        let message = |text: &str| language.value("", text, &scope).unwrap_err().to_string();
        assert!(message("rate(\"a\")").contains("belongs into a measure"), "{}", message("rate(\"a\")"));
        assert!(message("\"text\"").contains("a number or a list of numbers"), "{}", message("\"text\""));
        assert!(message("nothing(1)").contains("nothing"), "{}", message("nothing(1)"));
        assert!(message("while true {}").contains("operations"), "{}", message("while true {}"));
    }
}
