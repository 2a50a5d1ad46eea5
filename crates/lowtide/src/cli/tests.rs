// SPDX-License-Identifier: MIT OR Apache-2.0
use clap::{CommandFactory, error::ErrorKind};
use lowtide_lab::{Extent, Half, Place};

use super::{run::EXPERT, *};

fn run(words: &[&str]) -> Result<RunArguments, clap::Error> {
    match Cli::try_parse_from(["lowtide", "run"].iter().chain(words))?.command {
        Command::Run(arguments) => Ok(*arguments),
        _ => unreachable!("run was asked for"),
    }
}

#[test]
fn what_follows_the_program_is_its_own() {
    for (words, program) in [
        (&["prog"][..], &["prog"][..]),
        (&["prog", "arg"], &["prog", "arg"]),
        (&["-q", "prog", "-x"], &["prog", "-x"]),
        (&["-q", "prog", "-q", "--user", "x", "--help"], &["prog", "-q", "--user", "x", "--help"]),
        (&["-q", "prog", "--", "-x"], &["prog", "--", "-x"]),
        (&["-q", "--", "prog", "-x"], &["prog", "-x"]),
        (&["-q", "--", "prog", "--", "-x"], &["prog", "--", "-x"]),
        (&["-q", "--", "-prog"], &["-prog"]),
        (&["-q", "--size", "1MB", "prog", "--size", "2MB"], &["prog", "--size", "2MB"]),
        (&["-q", "--size-of", "a", "b", "--", "prog", "a"], &["prog", "a"]),
    ] {
        let arguments = run(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        assert_eq!(arguments.program, program, "{words:?}");
        assert_eq!(arguments.tell.quiet, words[0] == "-q", "{words:?}");
    }
    assert_eq!(run(&["--size", "1MB", "prog", "--size", "2MB"]).unwrap().size, Some(SizeArgument::Bytes(1_000_000)));
}

#[test]
fn options_before_the_program_are_ours() {
    assert_eq!(run(&["--help"]).unwrap_err().kind(), ErrorKind::DisplayHelp);
    assert_eq!(run(&["-q", "--help", "prog"]).unwrap_err().kind(), ErrorKind::DisplayHelp);
    let mistyped = run(&["--dedline", "06:00", "prog"]).unwrap_err();
    assert_eq!(mistyped.kind(), ErrorKind::UnknownArgument);
    assert!(mistyped.to_string().contains("--deadline"), "{mistyped}");
    assert_eq!(run(&["-q"]).unwrap_err().kind(), ErrorKind::MissingRequiredArgument);
    assert_eq!(run(&["--progress", "line", "prog"]).unwrap().tell.progress, ProgressArgument::Line);
    assert!(run(&["-v", "prog"]).unwrap().tell.verbose);
}

#[test]
fn values_that_cannot_be_read_are_one_sentence() {
    for (words, sentence) in [
        (&["run", "--size", "-5", "prog"][..], "--size -5: cannot read the size '-5'; write 120GiB, "),
        (&["run", "--download-size", "0", "prog"], "--download-size 0: that leaves nothing to send; "),
        (&["run", "--deadline", "-5m", "prog"], "--deadline -5m: cannot read the deadline '-5m'; write 06:00, "),
        (&["set", "a", "--deadline", "+0s"], "--deadline +0s: that leaves no time; "),
        (&["set", "a", "--remaining", "0"], "--remaining 0: that leaves nothing to send; "),
        (&["attach", "--pid", "0"], "--pid 0: 0 is not in 1.."),
    ] {
        let error = Cli::try_parse_from(["lowtide"].iter().chain(words)).unwrap_err();
        let said = wrong_value(&error).unwrap_or_else(|| panic!("{words:?}: {error}"));
        assert!(said.starts_with(sentence) && !said.contains('\n'), "{said}");
    }
    assert_eq!(wrong_value(&run(&["--no-such-option"]).unwrap_err()), None);
}

#[test]
fn options_for_experts_have_a_heading_of_their_own() {
    let mut command = Cli::command();
    let run = command.find_subcommand_mut("run").unwrap();
    let experts: Vec<_> = run
        .get_arguments()
        .filter(|argument| argument.get_help_heading() == Some(EXPERT))
        .map(|argument| argument.get_long().unwrap())
        .collect();
    for option in ["cc", "control", "actuator", "w-min", "w-max", "dscp", "allow-own-cc", "history"] {
        assert!(experts.contains(&option), "--{option}");
    }
    assert_eq!(experts.len(), 8, "{experts:?}");
    let help = run.render_long_help().to_string();
    let (usual, rest) = help.split_once("Expert options:").expect("the heading");
    assert!(usual.contains("--deadline") && !rest.contains("--deadline <"), "{help}");
}

#[test]
fn every_way_to_say_when_is_in_the_help_and_is_taken() {
    let mut command = Cli::command();
    let help = command.find_subcommand_mut("run").unwrap().render_long_help().to_string();
    let (_, list) = help.split_once("WHEN is one of these:\n").expect("the list");
    let (list, _) = list.split_once("HOURS are").expect("its end");
    let now = "2026-11-21T12:00:00Z[UTC]".parse().unwrap();
    // what a line says, and two spaces or more before what that means
    let said = |line: &str| line.trim().split("  ").next().unwrap_or_default().to_owned();
    let all: Vec<String> =
        list.lines().flat_map(|line| said(line).split(", ").map(str::to_owned).collect::<Vec<_>>()).collect();
    for way in ["6:00", "6am", "tomorrow 06:00", "2h"] {
        assert!(all.iter().any(|listed| listed == way), "{way} in {all:?}");
    }
    for way in all.iter().filter(|way| !way.is_empty()) {
        assert!(crate::when::parse(way, &now).is_ok(), "{way:?}");
    }
}

#[test]
fn the_command_for_an_experiment_is_read_as_what_it_was_made_of() {
    let [whole, some] = [Extent::default(), Extent { quick: true, half: Some(Half::HeldOut), runs: Some(5), seed: 7 }];
    for (extent, on, expected) in [
        (whole, Place::Sim, "lowtide lab run rivals"),
        (some, Place::Kernel, "lowtide lab run rivals --on kernel --quick --held-out --runs 5 --seed 7"),
        (Extent { half: Some(Half::InView), ..whole }, Place::Guest, "lowtide lab run rivals --on guest --in-view"),
    ] {
        let command = command_for("rivals", extent, on);
        assert_eq!(command, expected);
        let Command::Lab(lab) = Cli::try_parse_from(command.split(' ')).unwrap().command else { unreachable!() };
        let LabCommand::Run(run) = lab.command else { unreachable!() };
        assert_eq!((run.cells.extent(run.quick), run.on), (extent, on));
    }
}
