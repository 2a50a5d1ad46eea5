// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! `make kernels`: what Lowtide does on other kernels, each booted under QEMU. `LOWTIDE_GUEST` names the image. Prints
//! the row of the table in docs/results/promises.md.

use std::fmt::Write as _;

use lowtide_guest::{Guest, Image, Job, Program};

/// Laws of the kernel that `run` makes submissive by phantom signals.
const THEIRS: [&str; 2] = ["cubic", "reno"];
/// Ours, as `run` calls them; those that need ECN run Reno against this receiver.
const OURS: [&str; 10] =
    ["tide", "cdg", "cdg_cubic", "eclipse", "ledbat", "ledbatpp", "vegas", "lt_cubic", "dctcp", "prague"];
/// Ours, as scenarios call them, where they are ours: each is registered in the guest, without a link, too.
const LAWS: [&str; 9] = [
    "tide",
    "cdg:hystart=delay",
    "eclipse",
    "ledbat",
    "ledbatpp",
    "vegas",
    "cubic:port=kernel",
    "dctcp:port=kernel",
    "prague",
];
/// Laws by link, which `run` needs for its own.
const LINKS_SINCE: (u32, u32) = (6, 4);

const SIZE: u64 = 20_000_000;

/// What becomes of a transfer with this kind of deadline, ten minutes away, where the wall clock is set so many seconds
/// further while it runs. Only a guest has a wall clock that may be set.
const STEPS: [(&str, i64, &str); 4] =
    [("relative", 3600, "met"), ("relative", -3600, "met"), ("absolute", -3600, "met"), ("absolute", 3600, "missed")];

/// Two transfers of a group with a law that begin together, and how many maps both of them have.
const GROUP: &str = r"group() {
    for job in one two; do
        lowtide run --quiet --history none --group night --name $job --cc $1 -- sleep 600 2> $job.said &
        echo $! > $job.pid
    done
    for second in $(seq 30); do lowtide status one && lowtide status two && break; sleep 1; done > answers 2>&1
    for job in one two; do grep -h ^map_id: /proc/$(cat $job.pid)/fdinfo/* | sort -u > $job.maps; kill $(cat $job.pid); done
    wait $(cat one.pid) $(cat two.pid)
    grep -cxFf one.maps two.maps > said; cat one.said two.said | head -n 1 >> said; echo $(cat said) > said
    say group:$1 $second
}
";

/// What the network of the downloads needs.
const MODULES: [&str; 3] = ["veth", "sch_tbf", "sch_netem"];

/// Downloads from a server that is 40 ms away, behind a link of 10 Mbit/s that another download shares for eight
/// seconds. Of the first are said the least window that was offered, bytes, and its outcome. The controller of the
/// second is killed while it yields: what it says of that, and how many seconds later the rest was there.
const DOWNLOADS: &str = r#"mkdir www; head -c 8000000 /dev/urandom > www/file
ip=/usr/sbin/ip; tc=/usr/sbin/tc
$ip netns add far; $ip link add near type veth peer name far netns far
$ip address add 10.0.0.1/24 dev near; $ip link set near up; $tc qdisc add dev near root netem delay 40ms
$ip -n far address add 10.0.0.2/24 dev far; $ip -n far link set far up
$tc -n far qdisc add dev far root tbf rate 10mbit burst 4500 limit 50000
$ip netns exec far busybox httpd -p 8000 -h $PWD/www
lowtide traffic sink --listen 10.0.0.1:9000 > /dev/null 2>&1 &
download() {
    lowtide run --quiet --history none --name download --direction down --deadline +600s --size 8MB --report r.json -- \
        busybox wget -q -O got http://10.0.0.2:8000/file > told 2>&1 &
    run=$!; sleep 2
    $ip netns exec far lowtide traffic send --seconds 8 --to 10.0.0.1:9000 &
    sleep 4; lowtide status download > seen 2>&1
}
whole() { cmp got www/file > /dev/null 2>&1; }
download; wait $run; status=$?; cp told said
whole && echo $(grep -o 'window_bytes": [1-9][0-9]*' r.json | cut -d ' ' -f 2 | sort -n | head -n 1) \
    $(grep -o '"outcome": "[a-z-]*' r.json | cut -d '"' -f 4) > said
say download $status
rm got; sleep 5; download; kill -9 $run; seconds=0
until whole || [ $seconds = 100 ]; do sleep 1; seconds=$((seconds + 1)); done
echo $(grep -o "held back, as the link is in use" seen) > said; say killed $seconds
"#;

/// One line each: what was tried, its status, and what it said first.
fn script() -> String {
    let mut script = "ip link set lo up\nlowtide traffic sink --listen 127.0.0.1:9000 > /dev/null 2>&1 &\nsleep 1\n\
                      say() { echo \"$1 $2 $(head -n 1 said)\" >> result; }\n\
                      echo \"kernel 0 $(uname -r)\" >> result\n\
                      lowtide doctor > doctor 2>&1; status=$?; cp doctor said; say doctor $status\n\
                      grep ' downloads:' doctor > said; say downloads $?\n"
        .to_owned();
    for law in THEIRS.iter().chain(&OURS) {
        let send = format!("lowtide traffic send --size {SIZE} --to 127.0.0.1:9000");
        writeln!(
            script,
            "lowtide run --quiet --history none --deadline +60s --size {SIZE} --cc {law} --report r.json -- {send} > said 2>&1; \
             status=$?; grep -q '\"outcome\": \"met\"' r.json 2>/dev/null && echo met > said; say run:{law} $status; rm -f r.json"
        )
        .expect("into a string");
    }
    script += GROUP;
    for law in ["tide", "cubic"] {
        writeln!(script, "group {law}").expect("into a string");
    }
    let half = format!("lowtide traffic send --size {} --to 127.0.0.1:9000", SIZE / 2);
    for (kind, step, _) in STEPS {
        let deadline = match kind {
            "relative" => "+600s",
            _ => "$(date -u -d @$(($(date +%s) + 600)) +%Y-%m-%dT%H:%M:%SZ)",
        };
        writeln!(
            script,
            "lowtide run --quiet --history none --deadline \"{deadline}\" --size {SIZE} --cc cubic --report r.json -- \
             sh -c '{half}; date -s @$(($(date +%s) + {step})) >&2; sleep 2; {half}' > said 2>&1; \
             status=$?; grep -o '\"outcome\": \"[a-z-]*' r.json | cut -d '\"' -f 4 > said; say clock:{kind}:{step} $status; rm -f r.json"
        )
        .expect("into a string");
    }
    script += DOWNLOADS;
    for law in LAWS {
        writeln!(
            script,
            "lowtide lab testbed {law}.toml -o recording --bottleneck tc --plain-registration > said 2>&1; say law:{law} $?"
        )
        .expect("into a string");
    }
    script
}

#[derive(Debug)]
struct Line {
    what: String,
    status: i32,
    said: String,
}

#[test]
#[ignore = "needs the images of other kernels: make kernels"]
fn another_kernel_takes_laws_and_governs_what_it_can() {
    let image = Image::find(&lowtide_testbed::image_directory().unwrap()).unwrap();
    let lowtide = Program { name: "lowtide".to_owned(), path: env!("CARGO_BIN_EXE_lowtide").into() };
    let tool = |name| Program::of_the_system(name).unwrap();
    let guest = Guest::new(image, &[lowtide, tool("ip"), tool("tc")]).unwrap();
    let mut job = Job::new(script());
    job.modules = MODULES.map(str::to_owned).to_vec();
    for law in LAWS {
        let flow = format!("[[flow]]\nname = \"ours\"\ncc = \"{law}\"\ntcp = {{ pacing = true }}\n");
        let text = format!("duration = \"1s\"\nbottleneck = {{ rate = \"1mbit\", rtt = \"20ms\" }}\n{flow}");
        job.files.push((format!("{law}.toml"), text.into()));
    }
    let outcome = guest.run(&job).unwrap();
    let text = String::from_utf8(outcome.result).unwrap();
    let lines: Vec<Line> = text
        .lines()
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let mut word = || words.next().unwrap_or_default().to_owned();
            Line { what: word(), status: word().parse().unwrap(), said: word() }
        })
        .collect();
    let find = |what: &str| lines.iter().find(|line| line.what == what).unwrap_or_else(|| panic!("{what} in {text}"));
    let release = find("kernel").said.clone();
    let mut numbers = release.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
    let has_links = (numbers.next().unwrap(), numbers.next().unwrap()) >= LINKS_SINCE;

    let governed = |law: &str| find(&format!("run:{law}")).said == "met";
    let loaded = |law: &&str| find(&format!("law:{law}")).status == 0;
    let names = |laws: Vec<&str>| if laws.is_empty() { "none".to_owned() } else { laws.join(", ") };
    let run: Vec<&str> = THEIRS.iter().chain(&OURS).copied().filter(|law| governed(law)).collect();
    let loads: Vec<&str> = LAWS.iter().copied().filter(|law| loaded(law)).collect();
    let (download, killed) = (find("download"), find("killed"));
    let (window, verdict) =
        download.said.split_once(' ').unwrap_or_else(|| panic!("no download: {text}\n{}", outcome.console));
    println!("| {release} | {} | {} | {verdict}; {window} B; {} s |", names(run), names(loads.clone()), killed.status);
    assert_eq!(find("doctor").status, i32::from(!has_links), "{}\n{}", text, outcome.console);
    assert_eq!(loads, LAWS, "{}\n{}", text, outcome.console);
    for (kind, step, becomes) in STEPS {
        assert_eq!(find(&format!("clock:{kind}:{step}")).said, becomes, "{kind} {step}: {text}\n{}", outcome.console);
    }
    for law in THEIRS {
        assert!(governed(law), "{law}: {text}\n{}", outcome.console);
    }
    // it needs nothing that this kernel has not, and yields down to less than a segment
    assert!(find("downloads").said.starts_with("ok"), "{text}");
    assert_eq!((download.status, verdict), (0, "met"), "{text}\n{}", outcome.console);
    assert!(window.parse::<u64>().unwrap() < 1448, "{text}");
    // what is left of a killed run is let go after two intervals of ten seconds, and needs seven
    assert!(killed.said.starts_with("held back") && killed.status < 40, "{text}\n{}", outcome.console);
    // the default law's connections are one flow on each path; of other laws a group has the schedule in common
    let group = |law: &str| find(&format!("group:{law}")).said.clone();
    assert!(group("cubic").starts_with("0 lowtide: only what is sent with --cc tide shares a state"), "{text}");
    assert!(!has_links || group("tide") == "1", "{text}\n{}", outcome.console);
    for law in OURS {
        let line = find(&format!("run:{law}"));
        if has_links {
            assert!(governed(law), "{text}\n{}", outcome.console);
        } else {
            assert!(line.status == 125 && line.said.contains("6.4"), "{law}: {text}");
        }
    }
}
