// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of an experiment runs on a testbed, and how it is cut for that.

use super::{AxisValue, Experiment};
use crate::{
    Place,
    error::{LabError, Result},
};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// What of an experiment runs on a kernel: `[on.kernel]`, `[on.guest]`, or another name with its `place`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Changes {
    /// Where; what its name says, if this is not given.
    place: Option<String>,
    /// What the report calls it; its name, if this is not given.
    #[serde(default)]
    label: String,
    /// The targets that are meant; all, if this is not given.
    targets: Option<Vec<String>>,
    /// Parts of the values of some axes.
    #[serde(default)]
    axis: BTreeMap<String, Vec<AxisValue>>,
    /// Expressions in the place of those of the experiment's `draw`.
    #[serde(default)]
    draw: toml::Table,
    /// A scenario in the place of the experiment's.
    scenario: Option<toml::Table>,
    /// Values of the scenario in the place of its own, as `lowtide sim --set` takes them; a flow may be a pattern of
    /// names.
    #[serde(default)]
    set: Vec<String>,
    /// Functions in the place of the experiment's.
    functions: Option<String>,
    /// Expressions in the place of those of the experiment's measures.
    #[serde(default)]
    measure: BTreeMap<String, String>,
    /// Runs of each cell; the experiment's own number, if this is not given.
    pub(super) runs: Option<u32>,
    /// The figures that are drawn of it, by name.
    #[serde(default)]
    figures: Vec<String>,
    /// Flows, or patterns of their names, that run a law of the kernel in place of the scenario's.
    #[serde(default)]
    kernel_law: BTreeMap<String, String>,
    /// Why targets come out otherwise than in the simulator, by their names.
    #[serde(default)]
    reason: BTreeMap<String, String>,
}

/// An experiment as it runs on a testbed.
#[derive(Clone, Debug)]
pub struct OnTestbed {
    /// Its name: what stands behind `on.`.
    pub name: String,
    /// Where.
    pub place: Place,
    /// What the report calls it.
    pub title: String,
    /// Why targets come out otherwise than in the simulator, by their names.
    pub reason: BTreeMap<String, String>,
    /// The experiment, cut for it: with the axes, targets, figures, measures and the scenario that are meant.
    pub experiment: Experiment,
}

/// How a scenario is changed for a place, besides what stands in the experiment.
#[derive(Clone, Debug, Default)]
pub struct Cut {
    /// Values of the scenario in the place of its own.
    pub set: Vec<String>,
    /// Flows, or patterns of their names, that run a law of the kernel.
    pub kernel_law: BTreeMap<String, String>,
}

impl Changes {
    /// The experiment with these changes.
    pub(super) fn apply(&self, name: &str, experiment: &Experiment) -> Result<OnTestbed> {
        let fail = |what: String| LabError::new(format!("on.{name}: {what}"));
        let place = self.place.as_deref().unwrap_or(name).parse().map_err(|error| fail(format!("place: {error}")))?;
        if place == Place::Sim {
            return Err(fail("the simulator runs the experiment itself".to_owned()));
        }
        let cut = self.cut(experiment).map_err(fail)?;
        let title = if self.label.is_empty() { name } else { &self.label };
        let reason = self.reason.clone();
        Ok(OnTestbed { name: name.to_owned(), place, title: title.to_owned(), reason, experiment: cut })
    }

    fn cut(&self, experiment: &Experiment) -> Result<Experiment, String> {
        let mut cut = experiment.clone();
        cut.changes.clear();
        cut.cut = Some(Cut { set: self.set.clone(), kernel_law: self.kernel_law.clone() });
        cut.runs = self.runs.unwrap_or(cut.runs);
        cut.quick_runs = cut.quick_runs.min(cut.runs);
        if cut.runs == 0 {
            return Err("runs has to be 1 or more".to_owned());
        }
        cut.scenario = self.scenario.clone().or(cut.scenario);
        if cut.scenario.is_none() {
            return Err("there is no [scenario] to run".to_owned());
        }
        cut.functions = self.functions.clone().unwrap_or(cut.functions);
        let known: BTreeSet<_> = experiment.targets.iter().map(|target| &target.id).collect();
        if let Some(id) = self.reason.keys().chain(self.targets.iter().flatten()).find(|id| !known.contains(id)) {
            return Err(format!("there is no target {id}"));
        }
        if let Some(targets) = &self.targets {
            let meant: BTreeSet<_> = targets.iter().collect();
            cut.targets.retain(|target| meant.contains(&target.id));
        }
        let known: BTreeSet<_> = experiment.figures.iter().map(|figure| &figure.name).collect();
        if let Some(name) = self.figures.iter().find(|name| !known.contains(name)) {
            return Err(format!("there is no figure {name}"));
        }
        let meant: BTreeSet<_> = self.figures.iter().collect();
        cut.figures.retain(|figure| meant.contains(&figure.name));
        let drawn: BTreeSet<&String> =
            cut.figures.iter().flat_map(|it| &it.panels).flat_map(|panel| &panel.series).collect();
        cut.series.retain(|series| drawn.contains(&series.name));
        for (name, expression) in &self.draw {
            let drawn =
                cut.draw.get_mut(name).ok_or_else(|| format!("draw: `{name}` is not drawn in the experiment"))?;
            *drawn = expression.clone();
        }
        for (name, expression) in &self.measure {
            let measure = cut.measures.iter_mut().find(|measure| measure.name == *name);
            measure.ok_or_else(|| format!("there is no measure `{name}`"))?.value.clone_from(expression);
        }
        for (name, values) in &self.axis {
            let axis = cut.axes.iter_mut().find(|axis| axis.name == *name);
            axis.ok_or_else(|| format!("there is no axis `{name}`"))?.keep(values)?;
        }
        Ok(cut)
    }
}
