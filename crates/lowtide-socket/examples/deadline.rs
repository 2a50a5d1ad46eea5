// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends BYTES to HOST:PORT in the background, done within SECONDS, and says once a second how it is doing.
//!
//! ```text
//! lowtide run -- target/debug/examples/deadline HOST PORT BYTES SECONDS
//! ```
//!
//! Outside `lowtide run` it sends all the same, as an ordinary program. `examples/deadline.c` and
//! `examples/deadline.py` do the same.

use std::{
    env,
    error::Error,
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [host, port, bytes, seconds] = arguments.as_slice() else {
        return Err("usage: deadline HOST PORT BYTES SECONDS".into());
    };
    let (size, within): (u64, Duration) = (bytes.parse()?, Duration::from_secs_f64(seconds.parse()?));
    let mut stream = TcpStream::connect((host.as_str(), port.parse()?))?;
    let start = Instant::now();
    match lowtide_socket::set_goal(&stream, size, within) {
        Ok(()) => println!("goal {size} bytes within {seconds} s"),
        Err(lowtide_socket::Error::Absent) => println!("no Lowtide here: an ordinary transfer"),
        Err(error) => return Err(error.into()),
    }

    let block = [0; 1 << 16];
    let (mut left, mut told) = (size, start);
    stream.set_write_timeout(Some(Duration::from_millis(200)))?;
    while left > 0 {
        let most = left.min(block.len() as u64) as usize;
        match stream.write(&block[..most]) {
            Ok(written) => left -= written as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {} // a status may be due
            Err(error) => return Err(error.into()),
        }
        if told.elapsed() >= Duration::from_secs(1) {
            told = Instant::now();
            tell(&stream)?;
        }
    }
    stream.shutdown(Shutdown::Write)?;
    stream.read_to_end(&mut Vec::new())?; // until the other side has it all and closes
    println!("done after {:.2} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn tell(stream: &TcpStream) -> Result<(), lowtide_socket::Error> {
    let status = match lowtide_socket::status(stream) {
        Err(lowtide_socket::Error::Absent) => return Ok(()),
        status => status?,
    };
    let Some(goal) = status.goal else { return Ok(()) };
    println!(
        "w {:.4} needs {} has {} bytes/s acknowledged {} left {:.1} s expected in {:.1} s",
        status.weight,
        goal.target_rate.unwrap_or(0),
        goal.achieved_rate,
        goal.acknowledged,
        goal.left.as_secs_f64(),
        goal.expected.map_or(-1.0, |expected| expected.as_secs_f64()),
    );
    Ok(())
}
