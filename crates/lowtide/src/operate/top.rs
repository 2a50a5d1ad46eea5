// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide top`: all transfers of this machine, on a terminal, again each second.

mod terminal;
mod view;

use std::{
    collections::BTreeMap,
    io::{IsTerminal, stdin, stdout},
    process::ExitCode,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use jiff::{Timestamp, Zoned};

use super::{
    client::{ask, everybody},
    directory::Directory,
    protocol::{Command, Request, Status},
};
use crate::interruption::Interruption;
use terminal::{Key, Terminal};

/// Between two questions to the transfers.
const ASK: Duration = Duration::from_secs(1);
/// Between two looks at the keyboard.
const LOOK: Duration = Duration::from_millis(100);
/// Rates that are remembered of each transfer: what a picture has room for on a wide terminal.
const RATES: usize = 300;
/// Forecasts that are remembered: of the last minute.
const FORECASTS: usize = 60;

/// What the transfers said.
type Answers = Result<(Vec<Status>, Vec<anyhow::Error>)>;

/// How one transfer was lately, the newest last.
#[derive(Debug, Default, Clone)]
struct Past {
    /// Bits per second.
    rates: Vec<f64>,
    /// When it was expected to be done.
    expected: Vec<Timestamp>,
}

/// In which order transfers are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Name,
    Rate,
    Deadline,
}

/// What is shown.
#[derive(Debug)]
struct State {
    transfers: Vec<Status>,
    past: BTreeMap<String, Past>,
    /// By name, so that it stays where others come and go.
    selected: Option<String>,
    order: Order,
    /// The last word: of a key, or of a transfer that does not answer.
    notice: Option<String>,
    /// Some answer has come.
    known: bool,
}

impl State {
    fn new() -> State {
        State {
            transfers: Vec::new(),
            past: BTreeMap::new(),
            selected: None,
            order: Order::Name,
            notice: None,
            known: false,
        }
    }

    fn take(&mut self, answers: Answers) {
        self.known = true;
        let (transfers, silent) = match answers {
            Ok(answers) => answers,
            Err(error) => {
                self.notice = Some(format!("{error:#}"));
                return;
            }
        };
        if let Some(error) = silent.first() {
            self.notice = Some(format!("{error:#}"));
        }
        self.past.retain(|name, _| transfers.iter().any(|it| it.name == *name));
        for status in &transfers {
            let past = self.past.entry(status.name.clone()).or_default();
            keep(&mut past.rates, status.rate_bps, RATES);
            match status.expected {
                Some(expected) => keep(&mut past.expected, expected, FORECASTS),
                None => past.expected.clear(),
            }
        }
        self.transfers = transfers;
        self.sort();
    }

    fn sort(&mut self) {
        let order = self.order;
        self.transfers.sort_by(|a, b| {
            let first = match order {
                Order::Name => std::cmp::Ordering::Equal,
                Order::Rate => b.rate_bps.total_cmp(&a.rate_bps),
                // those without one last
                Order::Deadline => (a.deadline.is_none(), a.deadline).cmp(&(b.deadline.is_none(), b.deadline)),
            };
            first.then_with(|| a.name.cmp(&b.name))
        });
    }

    /// The place of the selected transfer; the first one where it is gone.
    fn place(&self) -> Option<usize> {
        let found = self.transfers.iter().position(|it| Some(&it.name) == self.selected.as_ref());
        found.or((!self.transfers.is_empty()).then_some(0))
    }

    fn select(&mut self, step: isize) {
        let Some(place) = self.place() else { return };
        let place = place.saturating_add_signed(step).min(self.transfers.len() - 1);
        self.selected = Some(self.transfers[place].name.clone());
    }

    /// What a key does; false: it ends.
    fn key(&mut self, key: Key, order: impl FnOnce(&str, Command) -> Result<Status>) -> bool {
        self.notice = None;
        match key {
            Key::Char('q') | Key::Escape => return false,
            Key::Down | Key::Char('j') => self.select(1),
            Key::Up | Key::Char('k') => self.select(-1),
            Key::Char('s') => {
                self.order = match self.order {
                    Order::Name => Order::Rate,
                    Order::Rate => Order::Deadline,
                    Order::Deadline => Order::Name,
                };
                self.sort();
            }
            Key::Char('p') => {
                let Some(status) = self.place().map(|place| &mut self.transfers[place]) else { return true };
                let command = if status.paused { Command::Resume } else { Command::Pause };
                match order(&status.name, command) {
                    Ok(now) => *status = now,
                    Err(error) => self.notice = Some(format!("{error:#}")),
                }
            }
            _ => {}
        }
        true
    }
}

fn keep<T>(row: &mut Vec<T>, value: T, most: usize) {
    if row.len() == most {
        row.remove(0);
    }
    row.push(value);
}

/// `lowtide top`.
///
/// # Errors
/// One sentence: no terminal, or the control sockets cannot be read.
pub fn top() -> Result<ExitCode> {
    if !(stdin().is_terminal() && stdout().is_terminal()) {
        bail!("lowtide top needs a terminal; lowtide status --watch prints the same anywhere");
    }
    let directory = Directory::usual()?;
    everybody(&directory)?; // what goes wrong is said before the screen is taken
    let interruption = Interruption::block()?;
    let (send, answers) = sync_channel(1);
    thread::Builder::new().name("ask".into()).spawn(move || ask_on(&send)).context("a thread to ask transfers")?;
    follow(&mut Terminal::take()?, &interruption, &answers, &directory)?;
    Ok(ExitCode::SUCCESS)
}

/// Asks until the receiver of the answers is gone.
fn ask_on(answers: &SyncSender<Answers>) {
    while answers.send(Directory::usual().and_then(|directory| everybody(&directory))).is_ok() {
        thread::sleep(ASK);
    }
}

fn follow(
    terminal: &mut Terminal,
    interruption: &Interruption,
    answers: &Receiver<Answers>,
    directory: &Directory,
) -> Result<()> {
    let (mut state, mut drawn) = (State::new(), None::<Instant>);
    while !interruption.came() {
        let mut news = terminal.is_resized() || drawn.is_none_or(|drawn| drawn.elapsed() >= ASK);
        while let Ok(answer) = answers.try_recv() {
            state.take(answer);
            news = true;
        }
        if news {
            drawn = Some(Instant::now());
            terminal.draw(|frame, colour| view::draw(frame, &state, &Zoned::now(), colour))?;
        }
        for key in terminal.keys(LOOK)? {
            drawn = None;
            if key == Key::Redraw {
                terminal.clear()?;
            }
            if !state.key(key, |name, command| ask(directory, name, &Request::new(command))) {
                return Ok(());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::show::tests::example, *};

    fn names(state: &State) -> Vec<&str> {
        state.transfers.iter().map(|it| it.name.as_str()).collect()
    }

    #[test]
    fn keys_move_sort_and_pause() {
        let mut state = State::new();
        let fast = Status { name: "b".into(), rate_bps: 1e9, deadline: None, ..example() };
        let slow = Status { name: "a".into(), ..example() };
        let refuse = |_: &str, _: Command| -> Result<Status> { bail!("no") };
        assert!(state.key(Key::Char('p'), refuse) && state.place().is_none(), "nobody is there");
        state.take(Ok((vec![fast.clone(), slow.clone()], Vec::new())));
        assert_eq!((names(&state), state.place()), (vec!["a", "b"], Some(0)));
        assert!(state.key(Key::Down, refuse) && state.key(Key::Char('s'), refuse));
        assert_eq!((names(&state), state.place()), (vec!["b", "a"], Some(0)), "the selection goes with its transfer");
        assert!(state.key(Key::Char('s'), refuse));
        assert_eq!(names(&state), ["a", "b"], "those without a deadline last");
        assert!(state.key(Key::Char('p'), |name, command| {
            assert_eq!((name, command), ("b", Command::Pause));
            Ok(Status { paused: true, ..fast.clone() })
        }));
        assert!(state.transfers[1].paused);
        assert!(state.key(Key::Char('p'), refuse) && state.notice.as_deref() == Some("no"));
        state.take(Ok((vec![slow], Vec::new())));
        assert_eq!(state.place(), Some(0), "the first one where it is gone");
        assert!(!state.key(Key::Char('q'), refuse));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_goes_with_its_transfer() {
        let mut state = State::new();
        (0..400).for_each(|_| state.take(Ok((vec![example()], Vec::new()))));
        let past = &state.past["nightly"];
        assert_eq!((past.rates.len(), past.expected.len()), (RATES, FORECASTS));
        state.take(Ok((Vec::new(), vec![anyhow::anyhow!("nightly does not answer")])));
        assert!(state.past.is_empty() && state.notice.as_deref() == Some("nightly does not answer"));
    }
}
