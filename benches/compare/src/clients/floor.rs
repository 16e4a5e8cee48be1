//! What the machine charges for the same bytes: blocking calls, all commands encoded in advance, replies counted but not
//! read. A wave is the operations of all callers at once; it is over when all replies are there.

use crate::load::{Job, Memory, Schedule, Stop, stride};
use crate::meter::{Meter, Sample, histogram};
use crate::workload::{Work, Workload};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

pub fn run(job: &Job) -> Sample {
    let memory = Memory::begin();
    let mut streams: Vec<TcpStream> = (0..job.connections).map(|_| connect(&job.url)).collect();
    let idle = (job.work.workload == Workload::Idle).then(|| memory.per_connection(job.connections));
    let mut run = |stop| match job.rate {
        None => closed(&mut streams, job, stop),
        Some(rate) => open(&mut streams[0], job, stop, rate),
    };
    if !job.warm_up.is_zero() {
        run(Stop::After(job.warm_up));
    }
    let sample = run(job.stop);
    memory.finish(sample, idle)
}

fn connect(url: &str) -> TcpStream {
    let address = url.trim_start_matches("redis://").trim_end_matches('/');
    let stream = TcpStream::connect(address).expect("connects");
    stream.set_nodelay(true).expect("a TCP socket");
    stream
}

/// Commands that one connection sends at once.
struct Wave {
    /// Small commands are one write; large ones a write each, from one buffer that they share.
    writes: Vec<std::rc::Rc<[u8]>>,
    reply_len: usize,
    ops: u64,
}

/// Different keys, wave by wave; as many as fit into this many operations.
const OPERATIONS_ENCODED: u64 = 4096;
const LARGE: usize = 64 << 10;

impl Wave {
    fn new(work: &Work, first: u64, ops: u64) -> Self {
        let indexes = first..first + ops;
        let reply_len = indexes.clone().map(|index| work.reply_len(index)).sum();
        let writes = if work.frame(first).len() >= LARGE {
            vec![work.frame(first).into(); ops as usize]
        } else {
            vec![indexes.flat_map(|index| work.frame(index)).collect()]
        };
        Self { writes, reply_len, ops }
    }
}

fn closed(streams: &mut [TcpStream], job: &Job, stop: Stop) -> Sample {
    let ops = (job.callers as u64 * job.work.workload.batch()).div_ceil(streams.len() as u64);
    // With more connections than callers, each wave takes the next ones.
    let at_once = streams.len().min(job.callers);
    let count = (OPERATIONS_ENCODED / ops).clamp(1, if job.work.value.len() >= LARGE { 1 } else { 64 });
    let waves: Vec<Wave> = (0..count).map(|i| Wave::new(&job.work, i * ops, ops)).collect();
    let mut buffer = vec![0; 256 << 10];
    let (mut latencies, mut done) = (histogram(), 0);
    let timed_every = stride(job.callers).div_ceil(job.callers as u64);
    let meter = Meter::start(job.place);
    for (turn, wave) in (0_u64..).zip(waves.iter().cycle()) {
        let is_timed = turn % timed_every == 0;
        let since = is_timed.then(Instant::now);
        let first = turn as usize * at_once % streams.len();
        let length = streams.len();
        let used = |i: usize| (first + i) % length;
        for i in 0..at_once {
            let stream = &mut streams[used(i)];
            wave.writes.iter().for_each(|bytes| stream.write_all(bytes).expect("writes"));
        }
        for i in 0..at_once {
            let stream = &mut streams[used(i)];
            let (mut left, mut told) = (wave.reply_len, 0);
            while left > 0 {
                let count = stream.read(&mut buffer).expect("reads");
                assert_ne!(count, 0, "the server closed the connection");
                left -= count;
                if let Some(since) = since {
                    // Replies are of about one size: this many of them are here.
                    let here = (wave.reply_len - left) as u64 * wave.ops / wave.reply_len as u64;
                    latencies.saturating_record_n(since.elapsed().as_nanos() as u64, here - told);
                    told = here;
                }
            }
        }
        done += wave.ops * at_once as u64;
        let is_over = match stop {
            Stop::After(time) => is_timed && meter.elapsed() > time,
            Stop::Operations(count) => done >= count,
        };
        if is_over {
            break;
        }
    }
    meter.stop(done, &latencies)
}

/// At a fixed rate, on one connection: writes what is due, reads what is there, waits for either.
fn open(stream: &mut TcpStream, job: &Job, stop: Stop, rate: f64) -> Sample {
    let schedule = Schedule::new(rate, stop);
    let of = |index| (job.work.frame(index), job.work.reply_len(index));
    let commands: Vec<(Vec<u8>, usize)> = (0..OPERATIONS_ENCODED.min(schedule.count)).map(of).collect();
    let at = |index: u64| &commands[(index % OPERATIONS_ENCODED) as usize];
    let timer = schedule.timer();
    stream.set_nonblocking(true).expect("a socket");
    let (mut latencies, mut buffer, mut out) = (histogram(), vec![0; 64 << 10], Vec::new());
    let (mut sent, mut done, mut surplus) = (0, 0, 0);
    let meter = Meter::start(job.place);
    let started = Instant::now();
    while done < schedule.count {
        let mut wait = [&timer.as_fd(), &stream.as_fd()].map(|fd| PollFd::new(*fd, PollFlags::POLLIN));
        poll(&mut wait, PollTimeout::NONE).expect("polls");
        let _ = nix::unistd::read(&timer, &mut [0; 8]);
        let due = schedule.due(started.elapsed()).min(done + job.callers as u64);
        out.clear();
        while sent < due {
            out.extend_from_slice(&at(sent).0);
            sent += 1;
        }
        write_all(stream, &out);
        match stream.read(&mut buffer) {
            Ok(0) => panic!("the server closed the connection"),
            Ok(count) => surplus += count,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "reads"),
        }
        let elapsed = started.elapsed();
        while done < sent && surplus >= at(done).1 {
            surplus -= at(done).1;
            latencies.saturating_record(schedule.latency_ns(done, elapsed));
            done += 1;
        }
    }
    stream.set_nonblocking(false).expect("a socket");
    meter.stop(done, &latencies)
}

/// What a socket that does not block will not take is small: try again.
fn write_all(stream: &mut TcpStream, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_micros(10))
            }
            Err(error) => panic!("writes: {error}"),
        }
    }
}
