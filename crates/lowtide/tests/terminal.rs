// SPDX-License-Identifier: MIT OR Apache-2.0
//! PROGRAM on a terminal of its own: another user's cannot type into ours, and the caller does not notice that it is
//! another one.

#[path = "support/lifecycle.rs"]
mod lifecycle;
#[path = "support/terminal.rs"]
mod terminal;

use std::{fs, thread, time::Duration};

use lifecycle::{children, finish, is_alive, needs_kernel, state, until};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use terminal::{STOPS, Terminal};

const LOWTIDE: &str = env!("CARGO_BIN_EXE_lowtide");

/// `lowtide run --quiet --user nobody -- sh -c PROGRAM`, in a directory that nobody may enter.
fn as_nobody(program: &str) -> String {
    format!("cd /; {LOWTIDE} run --quiet --user nobody -- sh -c '{program}'")
}

/// A script of the outer shell, and all that its terminal shows.
fn shown(script: &str) -> String {
    Terminal::start(script).end().1
}

/// Whether `stty -a` shows a terminal as a shell expects it.
fn is_in_order(shown: &str) -> bool {
    ["icanon", "isig", "echo", "opost", "icrnl"].iter().all(|mode| shown.split_whitespace().any(|word| word == *mode))
}

/// Types a command on every terminal that it can reach, as the user who runs it.
const ATTACK: &str = "for my $path (@ARGV) { my $t; next unless $path eq q(-) ? open($t, q(+<&=), 0) : open($t, q(+<), $path); \
                      for my $c (split //, qq(typed by nobody\\n)) { ioctl($t, 0x5412, $c) } } print qq(tried\\n);";

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn another_users_program_cannot_type_into_our_terminal() {
    needs_kernel();
    // what the shell finds in its terminal's input after the attack
    let script = |attack: &str| {
        format!(
            "cd /; tty; echo \"session $(ps -o sid= -p $$)\"; {attack} perl -e '{ATTACK}' - /dev/tty $(tty); \
             IFS= read -r -t 1 line; echo; echo \"input:$line.\""
        )
    };
    let ours = shown(&script(&format!("{LOWTIDE} run --quiet --user nobody --")));
    assert!(ours.contains("tried\r\n") && ours.contains("\ninput:.\r\n"), "{ours}");
    // the attack is one, where the kernel allows it
    let allowed = fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti").map_or(true, |value| value.trim() == "1");
    let direct = shown(&script("setpriv --reuid 65534 --regid 65534 --clear-groups"));
    assert_eq!(direct.contains("\ninput:typed by nobody.\r\n"), allowed, "{direct}");

    // under sudo it is the caller's program
    let caller = shown(&format!("tty; cd /; SUDO_UID=65534 {LOWTIDE} run -q -- sh -c 'id -u; tty'"));
    let lines: Vec<_> = caller.lines().collect();
    assert!(lines.len() == 3 && lines[1] == "65534" && lines[0] != lines[2], "{lines:?}");

    // what holds on every kernel
    let sessions = shown(&format!(
        "tty; echo \"session $(ps -o sid= -p $$) $(ps -o tty= -p $$)\"; {}",
        as_nobody("tty; tty </dev/tty; echo \"session $(ps -o sid= -p $$) $(ps -o tty= -p $$)\"")
    ));
    let lines: Vec<_> = sessions.lines().collect();
    let [outer, outer_session, inner, _, inner_session] = lines[..] else { panic!("{lines:?}") };
    assert!(outer.starts_with("/dev/pts/") && inner.starts_with("/dev/pts/") && outer != inner, "{lines:?}");
    let differ =
        outer_session.split_whitespace().zip(inner_session.split_whitespace()).filter(|(ours, its)| ours != its);
    assert_eq!(differ.count(), 2, "session and terminal: {lines:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn without_a_terminal_the_session_is_new_all_the_same() {
    needs_kernel();
    let program = "ps -o sid= -p $$; echo $$; tty </dev/tty";
    let mut command = std::process::Command::new("setsid");
    command.args(["-w", LOWTIDE, "run", "--quiet", "--user", "nobody", "--", "sh", "-c", program]).current_dir("/");
    let ended = finish(&mut command);
    let lines: Vec<_> = ended.out.lines().map(str::trim).collect();
    assert!(lines.len() == 2 && lines[0] == lines[1], "{ended:?}");
    assert!(ended.err.contains("/dev/tty"), "there is none: {ended:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn the_same_user_keeps_the_terminal_unless_a_line_shares_it() {
    needs_kernel();
    for (options, shared) in [("--quiet", true), ("--progress never", true), ("--progress line", true), ("", false)] {
        let shown = shown(&format!("tty; {LOWTIDE} run {options} -- sh -c 'sleep 0.5; tty'"));
        let (outer, _) = shown.split_once("\r\n").unwrap();
        assert_eq!(shown.matches(&format!("{outer}\r\n")).count() == 2, shared, "{options}: {shown:?}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn the_status_is_the_programs() {
    needs_kernel();
    for (program, status) in [("exit 7", 7), ("kill -TERM $$", 143), ("ulimit -c 0; kill -KILL $$", 137)] {
        let shown = shown(&format!("{}; echo \"status $?\"", as_nobody(program)));
        assert!(shown.contains(&format!("status {status}\r\n")), "{program}: {shown}");
    }
    let refused = shown(&format!("{LOWTIDE} run --user nobody -- /no/such/program; echo \"status $?\""));
    assert!(refused.contains("no such program") && refused.ends_with("status 127\r\n"), "{refused}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn the_window_has_the_same_size() {
    needs_kernel();
    let program = "trap \"stty size\" WINCH; stty size; for i in $(seq 100); do sleep 0.05; done; exit 3";
    let mut terminal = Terminal::sized(&format!("{}; echo \"status $?\"", as_nobody(program)), 33, 101);
    terminal.shows("33 101\r\n");
    terminal.resize(50, 132);
    terminal.shows("50 132\r\n");
    terminal.end();
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn keys_reach_the_program() {
    needs_kernel();
    let program = "trap \"echo interrupted\" INT; trap \"echo quit; exit 4\" QUIT; read line; echo \"<$line>\"; cat; \
                   echo waiting; while :; do sleep 0.02; done";
    let mut terminal = Terminal::start(&format!("{}; echo \"status $?\"; stty -a", as_nobody(program)));
    terminal.types(b"a lines\x7f\r");
    terminal.shows("<a line>\r\n");
    terminal.types(b"one more\r");
    terminal.shows("one more\r\none more\r\n");
    terminal.key(4);
    terminal.shows("waiting");
    terminal.key(3);
    terminal.shows("interrupted");
    terminal.key(0x1c);
    let (_, shown) = terminal.end();
    assert!(shown.contains("quit\r\nstatus 4\r\n"), "{shown}");
    assert!(is_in_order(&shown), "{shown}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn ctrl_z_stops_both_and_fg_continues_both() {
    needs_kernel();
    let script = format!("{}; echo \"stopped $?\"; stty -a; read -t 20; fg; echo \"status $?\"", as_nobody(STOPS));
    let mut terminal = Terminal::start(&script);
    terminal.shows("ready");
    let run = *children(terminal.shell()).first().expect("lowtide");
    let leader = *children(run).first().expect("the session's leader");
    let program = *children(leader).first().expect("PROGRAM");
    terminal.key(26);
    terminal.shows("stopped 148"); // 128 + SIGTSTP
    terminal.shows(" icanon");
    until("both stopped", || (state(run) == Some('T') && state(program) == Some('T')).then_some(()));
    terminal.key(b'\n');
    terminal.shows("status 6");
    terminal.end();
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn in_the_background_it_runs_until_it_reads() {
    needs_kernel();
    let program = "echo working; read line; echo \"<$line>\"; exit 5";
    let wait = "while ! jobs | grep -q Stopped; do sleep 0.05; done; jobs";
    let script = format!("{} & {wait}; read -t 20; fg; echo \"status $?\"", as_nobody(program));
    let mut terminal = Terminal::start(&script);
    terminal.shows("working");
    terminal.shows("Stopped");
    terminal.types(b"\rtyped\r");
    terminal.shows("<typed>");
    terminal.shows("status 5");
    terminal.end();
    let shown = shown(&format!("{} & wait $!; echo \"status $?\"", as_nobody("sleep 0.3; echo done; exit 8")));
    assert!(shown.contains("done") && shown.contains("status 8"), "{shown}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn no_byte_is_lost() {
    needs_kernel();
    let shown = shown(&format!("{}; echo end", as_nobody("seq 150000; printf last")));
    let expected: String = (1..=150_000).map(|number| format!("{number}\r\n")).collect();
    assert!(shown.len() > 1_000_000);
    assert!(shown == expected + "lastend\r\n", "{} bytes, at the end {:?}", shown.len(), &shown[shown.len() - 100..]);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_is_no_terminal_stays_what_it_is() {
    needs_kernel();
    let kinds = "for fd in 0 1 2; do test -t $fd && echo terminal >&2; test -p /dev/fd/$fd && echo pipe >&2; done; \
                 cat; echo status $? >&2";
    let shown = shown(&format!("cd /; echo through | {LOWTIDE} run -q --user nobody -- sh -c '{kinds}' | cat -v"));
    let count = |text: &str| shown.lines().filter(|line| line.trim_end() == text).count();
    assert_eq!((count("pipe"), count("terminal"), count("through"), count("status 0")), (2, 1, 1, 1), "{shown:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn in_a_pipe_the_keyboard_is_given_on_demand() {
    needs_kernel();
    // the one behind the pipe has it first
    let program = "sleep 1; read line </dev/tty; echo \"<$line>\"";
    let reader = "{ IFS= read -r line </dev/tty; echo \"behind: $line\"; cat; }";
    let mut terminal = Terminal::start(&format!("{} | {reader}; stty -a", as_nobody(program)));
    terminal.types(b"one\r");
    terminal.shows("behind: one");
    thread::sleep(Duration::from_millis(1500));
    terminal.types(b"two\r");
    terminal.shows("<two>");
    let (_, shown) = terminal.end();
    assert!(is_in_order(&shown), "{shown}");
}

/// However Lowtide ends, also by a fault of its own: the session's leader puts the terminal in order.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_killed_lowtide_leaves_the_program_and_a_terminal_in_order() {
    needs_kernel();
    let program = "echo ready; sleep 1.5; echo late; sleep 0.2; echo later";
    let script = format!("ulimit -c 0; {}; echo \"status $?\"; sleep 0.3; stty -a; sleep 3", as_nobody(program));
    for (signal, status) in [(Signal::SIGKILL, 137), (Signal::SIGABRT, 134)] {
        let mut terminal = Terminal::start(&script);
        terminal.shows("ready");
        let run = *children(terminal.shell()).first().expect("lowtide");
        let leader = *children(run).first().expect("the session's leader");
        assert!(terminal.is_raw());
        kill(Pid::from_raw(run), signal).unwrap();
        terminal.shows(&format!("status {status}"));
        terminal.shows("later");
        until("the leader's end", || (!is_alive(leader)).then_some(()));
        let (_, shown) = terminal.end();
        assert!(is_in_order(&shown), "{signal}: {shown}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_signal_that_ends_both_leaves_a_terminal_in_order() {
    needs_kernel();
    for (signal, status) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129), (Signal::SIGQUIT, 131)] {
        let script = format!("ulimit -c 0; {}; echo \"status $?\"; stty -a", as_nobody("echo ready; exec sleep 60"));
        let mut terminal = Terminal::start(&script);
        terminal.shows("ready");
        assert!(terminal.is_raw());
        let run = *children(terminal.shell()).first().expect("lowtide");
        kill(Pid::from_raw(run), signal).unwrap();
        terminal.shows(&format!("status {status}"));
        let (_, shown) = terminal.end();
        assert!(is_in_order(&shown), "{signal}: {shown}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_terminal_that_hangs_up_hangs_up_on_the_program() {
    needs_kernel();
    let mut terminal = Terminal::start(&format!("{}; echo end", as_nobody("echo ready; exec sleep 60")));
    terminal.shows("ready");
    let run = *children(terminal.shell()).first().expect("lowtide");
    let leader = *children(run).first().expect("the session's leader");
    let program = *children(leader).first().expect("PROGRAM");
    drop(terminal);
    until("PROGRAM's end", || (!is_alive(program)).then_some(()));
    until("Lowtide's end", || (!is_alive(run)).then_some(()));
}
