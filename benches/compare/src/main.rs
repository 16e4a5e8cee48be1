//! What a command costs its client, beside the floor: the same bytes by blocking calls, already encoded.
//!
//! ```text
//! compare [--url redis://…] [--rounds 15] [--ops 200000] [--w 1,32,128,512] [--sides floor,monoio,…]
//!     alternates the sides, round by round, and prints medians of CPU time and of the per-round ratios to the floor
//! compare one SIDE --url redis://… --w W --ops N [--command get|set|incr] [--connections C]
//!     one run, for tools that count instructions or system calls
//! compare serve
//!     the in-process server on a port of its own, until standard input ends
//! ```
//! Client and server are pinned to a core each. CPU time is that of the client's thread (user and system). Machines are
//! noisy: read ratios, not nanoseconds.

mod report;
mod sides;
mod steps;

use sides::{Load, Side};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

#[global_allocator]
static ALLOCATOR: respiral_testkit::CountingAllocator = respiral_testkit::CountingAllocator::new();

/// The options of a run.
struct Options {
    url: Option<String>,
    rounds: usize,
    operations: u64,
    callers: Vec<usize>,
    sides: Vec<Side>,
    command: steps::Kind,
    connections: u32,
}

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let verb = args.first().filter(|word| !word.starts_with("--")).cloned();
    if verb.is_some() {
        args.remove(0);
    }
    let side = (verb.as_deref() == Some("one") && !args.is_empty()).then(|| args.remove(0));
    let options = parse(&args).unwrap_or_else(|fault| {
        eprintln!("compare: {fault}");
        std::process::exit(2);
    });
    match verb.as_deref() {
        Some("serve") => serve(),
        Some("one") => one(&side.unwrap_or_default(), &options),
        None => compare(&options),
        Some(other) => {
            eprintln!("compare: {other} is not known: one, serve, or options only");
            std::process::exit(2);
        }
    }
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        url: None,
        rounds: 15,
        operations: 200_000,
        callers: vec![1, 32, 128, 512],
        sides: Side::ALL.to_vec(),
        command: steps::Kind::Get,
        connections: 1,
    };
    for pair in args.chunks(2) {
        let [name, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
        let bad = || format!("{name} does not take {value}");
        match name.as_str() {
            "--url" => options.url = Some(value.clone()),
            "--rounds" => options.rounds = value.parse().map_err(|_| bad())?,
            "--ops" => options.operations = value.parse().map_err(|_| bad())?,
            "--w" => options.callers = value.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| bad())?,
            "--sides" => options.sides = value.split(',').map(Side::parse).collect::<Option<_>>().ok_or_else(bad)?,
            "--command" => options.command = steps::Kind::parse(value).ok_or_else(bad)?,
            "--connections" => options.connections = value.parse().map_err(|_| bad())?,
            _ => return Err(format!("{name} is not known")),
        }
    }
    Ok(options)
}

/// Runs on one core until standard input ends.
fn serve() {
    pin(1);
    let server = respiral_testkit::Server::start().expect("a free port");
    println!("{}", server.url());
    let _ = std::io::stdin().read(&mut [0]);
}

/// A server process on the other core.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        let program = std::env::current_exe().expect("own path");
        let mut command = Command::new(program);
        let mut child =
            command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut url = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut url).expect("the server says where it is");
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn pin(core: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        eprintln!("compare: not pinned to core {core}: {error}");
    }
}

fn one(side: &str, options: &Options) {
    let Some(side) = Side::parse(side) else {
        eprintln!("compare: no side is called {side}: {}", Side::names());
        std::process::exit(2);
    };
    pin(0);
    let server = options.url.is_none().then(Server::start);
    let url = server.as_ref().map_or_else(|| options.url.clone().unwrap_or_default(), |server| server.url.clone());
    let load = Load {
        url: &url,
        callers: options.callers[0],
        operations: options.operations,
        command: options.command,
        connections: options.connections,
    };
    println!("{:?}", side.run(&load));
}

fn compare(options: &Options) {
    pin(0);
    let server = options.url.is_none().then(Server::start);
    let url = server.as_ref().map_or_else(|| options.url.clone().unwrap_or_default(), |server| server.url.clone());
    for &callers in &options.callers {
        // A lone caller makes a round trip per operation: fewer will do.
        let operations = options.operations.min(20_000 * callers as u64);
        let load = Load { url: &url, callers, operations, command: options.command, connections: options.connections };
        let mut table = report::Table::new(&options.sides);
        for round in 0..=options.rounds {
            for &side in &options.sides {
                let cost = side.run(&load);
                // The first round warms up.
                if round > 0 {
                    table.add(side, cost);
                }
            }
        }
        table.print(callers);
    }
}
