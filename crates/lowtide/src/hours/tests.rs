// SPDX-License-Identifier: MIT OR Apache-2.0

use jiff::Zoned;
use lowtide_deadline::Time;
use proptest::prelude::*;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn oslo(clock: &str) -> Timestamp {
    format!("{clock}[Europe/Oslo]").parse::<Zoned>().unwrap().timestamp()
}

fn hours(text: &str) -> Hours {
    text.parse().unwrap()
}

/// Seconds since 1970.
fn time_of(at: Timestamp) -> Time {
    Time::from_nanos(u64::try_from(at.as_nanosecond()).unwrap())
}

fn calendar(windows: &[&str], caps: &[&str], from: Timestamp, zone: &TimeZone) -> Calendar {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    Rules::parse(&owned(windows), &owned(caps)).unwrap().calendar(from, from, None, zone, time_of)
}

#[test]
fn every_way_to_say_hours() {
    for (text, from, until, days) in [
        ("22:00-06:00", "22:00", "06:00", "1111111"),
        ("10pm-6am", "22:00", "06:00", "1111111"),
        ("mon-fri 08:00-18:00", "08:00", "18:00", "1111100"),
        ("Sat,Sun 00:00-24:00", "00:00", "00:00", "0000011"),
        ("fri-mon 1:30-2:30", "01:30", "02:30", "1000111"),
        ("wed 12:00:30-13:00", "12:00:30", "13:00", "0010000"),
    ] {
        let hours = hours(text);
        assert_eq!((hours.from, hours.until), (from.parse().unwrap(), until.parse().unwrap()), "{text}");
        assert_eq!(hours.days.map(|it| if it { '1' } else { '0' }).iter().collect::<String>(), days, "{text}");
        assert_eq!(hours.to_string().parse::<Hours>().unwrap(), hours);
    }
    let cap: Cap = "mon-fri 08:00-18:00=5mbit".parse().unwrap();
    assert_eq!((cap.bps, cap.to_string().as_str()), (5_000_000, "mon-fri 08:00-18:00=5mbit"));
}

#[test]
fn nonsense_is_refused_in_a_sentence() {
    for (window, part) in [
        ("22:00", "cannot read the hours '22:00'"),
        ("22:00-", "cannot read the time ''"),
        ("06:00-06:00", "begin and end at once"),
        ("25:00-06:00", "cannot read the time '25:00'"),
        ("someday 22:00-06:00", "cannot read the day 'someday'"),
        ("mon- 22:00-06:00", "cannot read the day ''"),
        ("", "cannot read the hours"),
    ] {
        let error = format!("{:#}", Rules::parse(&[window.to_owned()], &[]).unwrap_err());
        assert!(error.contains(part) && error.contains("--window") && !error.contains('\n'), "{window}: {error}");
    }
    for (cap, part) in
        [("08:00-18:00", "has no rate"), ("08:00-18:00=fast", "write 08:00-18:00=5mbit"), ("8-9=0mbit", "")]
    {
        let error = format!("{:#}", Rules::parse(&[], &[cap.to_owned()]).unwrap_err());
        assert!(error.contains(part) && error.contains("--cap"), "{cap}: {error}");
    }
    assert!(Rules::parse(&vec!["1:00-2:00".to_owned(); 17], &[]).is_err());
}

#[test]
fn a_night_is_as_long_as_the_clock_has_it() {
    let zone = zone("Europe/Oslo");
    for (evening, hours) in [
        ("2026-11-21T12:00:00+01:00", 8),
        ("2026-03-28T12:00:00+01:00", 7), // clocks are put forward
        ("2026-10-24T12:00:00+02:00", 9), // and back
    ] {
        let from = oslo(evening);
        let calendar = calendar(&["22:00-06:00"], &[], from, &zone);
        let day = time_of(from + SignedDuration::from_hours(24));
        assert_eq!(calendar.open_time(time_of(from), day).as_secs(), hours * 3600, "{evening}");
    }
}

#[test]
fn hours_that_a_clock_change_leaves_out_or_repeats() {
    let zone = zone("Europe/Oslo");
    let spans = |text: &str, day: &str| hours(text).on(day.parse().unwrap(), &zone).unwrap();
    assert_eq!(
        spans("02:15-02:45", "2026-03-29"),
        (oslo("2026-03-29T03:15:00+02:00"), oslo("2026-03-29T03:45:00+02:00")),
        "later by the hour that is missing"
    );
    assert_eq!(
        spans("02:15-02:45", "2026-10-25"),
        (oslo("2026-10-25T02:15:00+02:00"), oslo("2026-10-25T02:45:00+01:00")),
        "from the first reading to the last"
    );
    assert_eq!(spans("22:00-02:30", "2026-10-24").1, oslo("2026-10-25T02:30:00+01:00"));
}

#[test]
fn the_least_cap_in_force_holds_and_windows_join() {
    let zone = zone("Europe/Oslo");
    let from = oslo("2026-11-21T12:00:00+01:00"); // a Saturday
    let caps = ["08:00-18:00=5mbit", "sat 12:00-14:00=8kbit"];
    let calendar = calendar(&["08:00-13:00", "12:30-15:00"], &caps, from, &zone);
    for (clock, open, most) in [
        ("2026-11-21T12:00:00+01:00", true, Some(1e3)),
        ("2026-11-21T13:30:00+01:00", true, Some(1e3)),
        ("2026-11-21T14:30:00+01:00", true, Some(625e3)),
        ("2026-11-21T15:00:00+01:00", false, Some(625e3)),
        ("2026-11-21T18:00:00+01:00", false, None),
        ("2026-11-22T13:00:00+01:00", true, Some(625e3)),
    ] {
        assert_eq!(calendar.at(time_of(oslo(clock))), Allowance { open, most }, "{clock}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Away from clock changes a window is open exactly when the local clock reads so; and no night is longer or
    /// shorter than by such a change.
    #[test]
    fn a_window_is_open_when_the_clock_reads_so(
        name in prop::sample::select(vec![
            "Europe/Oslo", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Santiago", "Asia/Kathmandu", "UTC",
        ]),
        (from, until) in (0i8..24, 0i8..24).prop_filter("not at once", |(from, until)| from != until),
        (minute, days) in (0i8..60, prop::array::uniform7(any::<bool>())),
        start in 1_500_000_000i64..1_900_000_000,
        offsets in prop::collection::vec(0i64..20 * 86_400, 40),
    ) {
        let zone = zone(name);
        let hours = Hours {
            days,
            from: jiff::civil::time(from, minute, 0, 0),
            until: jiff::civil::time(until, minute, 0, 0),
            text: String::new(),
        };
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let (begin, end) = (at(start), at(start + 20 * 86_400));
        let spans = hours.between(begin, end, &zone);
        prop_assert!(spans.windows(2).all(|two| two[0].1 <= two[1].0), "{spans:?}");
        for (begin, end) in &spans {
            let length = (i64::from(until) - i64::from(from)).rem_euclid(24) * 3600;
            let off = end.duration_since(*begin).as_secs() - length;
            prop_assert!(off.abs() <= 3600, "{begin} to {end} is off by {off} s");
        }
        let calendar = Rules { windows: vec![hours.clone()], caps: Vec::new() }.calendar(begin, begin, Some(end), &zone, time_of);
        for offset in offsets {
            let instant = at(start + offset);
            let close = |change: Timestamp| change.duration_since(instant).abs() < SignedDuration::from_hours(3);
            let changes = zone.preceding(instant).take(1).chain(zone.following(instant).take(1));
            if changes.map(|change| change.timestamp()).any(close) {
                continue;
            }
            let local = instant.to_zoned(zone.clone());
            let today = days[local.weekday().to_monday_zero_offset() as usize];
            let yesterday = days[local.date().yesterday().unwrap().weekday().to_monday_zero_offset() as usize];
            let time = local.time();
            let reads_so = if hours.until > hours.from {
                today && time >= hours.from && time < hours.until
            } else {
                (today && time >= hours.from) || (yesterday && time < hours.until)
            };
            prop_assert_eq!(calendar.at(time_of(instant)).open, reads_so, "{}", local);
        }
    }
}
