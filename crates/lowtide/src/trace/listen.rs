// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trace itself.

use std::{
    collections::BTreeSet,
    io::{self, BufWriter, Write},
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use lowtide_kernel::{
    monotonic_now,
    trace::{Record, Traceable, Tracer},
};

use super::{
    filter::Filter,
    write::{Source, Writer},
};
use crate::{
    cli::{TraceArguments, TraceFormat},
    draft::Draft,
    interruption::Interruption,
};

/// How long we wait for records before we look at everything else.
const LOOK: Duration = Duration::from_millis(100);
/// How often we look for what was dropped, and whether anything is left to trace.
const COUNT: Duration = Duration::from_secs(1);

/// Traces what is running.
///
/// # Errors
/// In a sentence: there is nothing to trace, no right to, or nowhere to write.
pub fn trace(arguments: &TraceArguments) -> Result<ExitCode> {
    let mut filter = Filter::new(arguments.pid, arguments.cgroup.as_deref())?;
    if !nix::unistd::geteuid().is_root() {
        bail!("lowtide trace needs root: try `sudo lowtide trace …`");
    }
    let sources = chosen(Traceable::all()?, arguments.law.as_deref())?;
    let cannot_write =
        || format!("cannot write the trace {}", arguments.output.as_deref().unwrap_or(Path::new("-")).display());
    let draft = arguments.output.as_deref().map(Draft::create).transpose().with_context(cannot_write)?;
    let out: Box<dyn Write> = match &draft {
        Some(draft) => Box::new(BufWriter::new(draft.file()?)),
        None => Box::new(BufWriter::new(io::stdout())),
    };
    let interruption = Interruption::block()?;
    let mut tracer = Tracer::start(sources, arguments.port, arguments.buffer)?;
    let (start, started, began) = (monotonic_now(), Timestamp::now(), Instant::now());
    let mut trace = Writing {
        writer: Writer::start(out, format_of(arguments), laws(tracer.sources()), start, started)?,
        filter: &mut filter,
        dropped: 0,
    };
    trace.writer.flush()?;
    // from here on there is a trace: now it takes the place of an earlier one
    draft.map(Draft::ready).transpose().with_context(cannot_write)?;
    eprintln!("tracing {}; Ctrl-C ends it", described(tracer.sources()));
    let over = || match arguments.output {
        Some(_) => Ok(interruption.came()),
        None => interruption.came_or_unread(Duration::ZERO),
    };
    let mut counted = began;
    while arguments.duration.is_none_or(|duration| began.elapsed() < duration) && !over()? {
        let left = arguments.duration.map_or(LOOK, |duration| duration.saturating_sub(began.elapsed()));
        trace.take(&tracer.listen(left.min(LOOK))?)?;
        if counted.elapsed() >= COUNT {
            counted = Instant::now();
            trace.count(&tracer)?;
            if !tracer.has_sources() {
                break;
            }
        }
    }
    let rest = tracer.stop()?;
    trace.take(&rest)?;
    trace.count(&tracer)?;
    let ((records, connections), dropped) = (trace.writer.count(), trace.dropped);
    let seconds = began.elapsed().as_secs_f64();
    let connections = if connections == 1 { "1 connection".to_owned() } else { format!("{connections} connections") };
    eprintln!("{records} records of {connections} in {seconds:.1} s, {dropped} dropped");
    if dropped > 0 {
        eprintln!("a larger --buffer drops fewer");
    }
    Ok(ExitCode::SUCCESS)
}

/// The trace as it is written.
struct Writing<'a> {
    writer: Writer<Box<dyn Write>>,
    filter: &'a mut Filter,
    dropped: u64,
}

impl Writing<'_> {
    fn take(&mut self, records: &[Record]) -> io::Result<()> {
        for record in records {
            if self.filter.wants(record) {
                self.writer.record(record)?;
            }
        }
        self.writer.flush()
    }

    fn count(&mut self, tracer: &Tracer) -> Result<()> {
        let dropped = tracer.dropped()?.iter().sum();
        if dropped > self.dropped {
            self.writer.dropped(monotonic_now(), dropped - self.dropped)?;
            self.writer.flush()?;
            self.dropped = dropped;
        }
        Ok(())
    }
}

/// Those that are meant.
fn chosen(all: Vec<Traceable>, law: Option<&str>) -> Result<Vec<Traceable>> {
    if all.is_empty() {
        bail!("nothing to trace: no `lowtide run` is active, and `lowtide cc` has loaded no law");
    }
    let Some(law) = law else { return Ok(all) };
    let wanted = law.strip_prefix("kernel:").unwrap_or(law);
    let there: BTreeSet<String> = all.iter().map(name).collect();
    let chosen: Vec<_> = all
        .into_iter()
        .filter(|source| if wanted == law { source.law == law } else { source.law == wanted && !source.ours })
        .collect();
    if chosen.is_empty() {
        let there: Vec<_> = there.into_iter().collect();
        bail!("--law {law}: no active transfer and no loaded law has this name; there is {}", there.join(", "));
    }
    Ok(chosen)
}

fn name(source: &Traceable) -> String {
    if source.ours { source.law.clone() } else { format!("kernel:{}", source.law) }
}

fn described(sources: &[Traceable]) -> String {
    let one = |source: &Traceable| {
        let what = if source.whole_machine { "the whole machine's" } else { "a transfer" };
        format!("{} ({what})", name(source))
    };
    sources.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn laws(sources: &[Traceable]) -> Vec<Source> {
    let law = |source: &Traceable| Source { law: name(source), text: source.text.clone(), values: source.values() };
    sources.iter().map(law).collect()
}

fn format_of(arguments: &TraceArguments) -> TraceFormat {
    let by_name = || {
        let extension = arguments.output.as_deref().and_then(Path::extension);
        if extension.is_some_and(|it| it.eq_ignore_ascii_case("csv")) { TraceFormat::Csv } else { TraceFormat::Jsonl }
    };
    arguments.format.unwrap_or_else(by_name)
}
