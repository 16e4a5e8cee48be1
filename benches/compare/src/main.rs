//! Which client, runtime and engine, for which traffic: one program that measures it and draws it. README.md beside
//! `Cargo.toml` says how to read what it gives.

mod alloc;
mod clients;
mod counts;
mod load;
mod meter;
mod noise;
mod plan;
mod progress;
mod report;
mod rounds;
mod server;
mod workload;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clients::Side;
use counts::Tools;
use load::{Job, Stop};
use meter::Place;
use plan::{Scenario, Wishes};
use progress::Progress;
use report::environment::Environment;
use report::{Outcome, Report, ScenarioReport};
use rounds::{Run, Settings};
use server::Server;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};
use workload::{Distribution, Work, Workload};

#[global_allocator]
static ALLOCATOR: alloc::Switchable = alloc::Switchable::new();

/// Compares respiral, under every runtime and engine, with a floor and with other clients.
#[derive(Parser)]
#[command(name = "respiral-compare", args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    compare: Compare,
}

#[derive(Subcommand)]
enum Verb {
    /// One run of one side, for tools that watch a process (perf, callgrind); prints its figures as JSON
    One(One),
    /// The test kit's server on a port of its own, until standard input ends
    Serve {
        #[arg(long, default_value_t = 1)]
        core: usize,
    },
    /// Draws report.html beside a report.json again
    Draw { json: PathBuf },
}

#[derive(Args)]
struct Compare {
    /// Default: all but the least used; --full: all
    #[arg(long, value_enum, value_delimiter = ',')]
    sides: Vec<Side>,
    /// With --w, --connections and --rate: all combinations of these instead of the default plan
    #[arg(long, value_enum, value_delimiter = ',')]
    workloads: Vec<Workload>,
    /// Callers
    #[arg(long, value_delimiter = ',')]
    w: Vec<usize>,
    #[arg(long, value_delimiter = ',')]
    connections: Vec<u32>,
    /// Open loop: operations per second
    #[arg(long, value_delimiter = ',')]
    rate: Vec<f64>,
    /// Key space [default: 1000]
    #[arg(long)]
    keys: Option<usize>,
    #[arg(long, value_enum)]
    distribution: Option<Distribution>,
    /// Every workload, side and number of callers (about half an hour)
    #[arg(long)]
    full: bool,
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Length of a measured run in milliseconds
    #[arg(long, default_value_t = 150)]
    ms: u64,
    /// `test-kit`, redis://HOST:PORT (keys named bench:* are written there), or the path of a server's binary
    #[arg(long, default_value = "test-kit")]
    server: String,
    /// The side that ratios refer to
    #[arg(long, value_enum, default_value = "floor")]
    reference: Side,
    /// User instructions per operation by callgrind as well (slow)
    #[arg(long)]
    instructions: bool,
    /// Leave out allocations and system calls
    #[arg(long)]
    no_counts: bool,
    /// Directory of report.html and report.json
    #[arg(long, default_value = "target/compare")]
    out: PathBuf,
    #[arg(long, default_value_t = 0)]
    client_core: usize,
    #[arg(long, default_value_t = 1)]
    server_core: usize,
}

#[derive(Args)]
struct One {
    side: Side,
    /// Default: the test kit's server, started for this run
    #[arg(long)]
    url: Option<String>,
    #[arg(long, value_enum, default_value = "get")]
    workload: Workload,
    #[arg(long, default_value_t = 128)]
    w: usize,
    #[arg(long, default_value_t = 1)]
    connections: u32,
    #[arg(long, default_value_t = 1000)]
    keys: usize,
    #[arg(long, value_enum, default_value = "uniform")]
    distribution: Distribution,
    #[arg(long)]
    rate: Option<f64>,
    /// So many operations instead of a time
    #[arg(long)]
    ops: Option<u64>,
    #[arg(long, default_value_t = 200)]
    ms: u64,
    #[arg(long, default_value_t = 30)]
    warm_up_ms: u64,
    #[arg(long)]
    count_allocations: bool,
    /// The server has the keys already
    #[arg(long)]
    is_loaded: bool,
    #[arg(long, default_value_t = 0)]
    client_core: usize,
    #[arg(long, default_value_t = 1)]
    server_core: usize,
    /// Whose CPU time tells how busy the server is
    #[arg(long)]
    server_pid: Option<u32>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.verb {
        Some(Verb::Serve { core }) => {
            server::serve(core);
            Ok(())
        }
        Some(Verb::One(one)) => run_one(&one),
        Some(Verb::Draw { json }) => draw(&json),
        None => compare(&cli.compare),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("compare: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn run_one(one: &One) -> Result<(), String> {
    // A caller that panics must end the run, not leave the others waiting for it.
    std::panic::set_hook(Box::new(|info| {
        eprintln!("{info}");
        std::process::exit(101);
    }));
    let own = one.url.is_none().then(|| Server::start("test-kit", one.server_core)).transpose()?;
    let url = own.as_ref().map(|server| &server.url).or(one.url.as_ref()).cloned().unwrap_or_default();
    server::pin(one.client_core);
    server::raise_descriptor_limit();
    let work = Work::new(one.workload, one.keys, one.distribution);
    if !one.is_loaded {
        server::load(&url, &work)?;
    }
    if one.count_allocations || one.workload == Workload::Idle {
        alloc::count();
    }
    let job = Job {
        url,
        work: Rc::new(work),
        callers: one.w.max(1),
        connections: one.connections.max(1),
        rate: one.rate,
        stop: one.ops.map_or(Stop::After(Duration::from_millis(one.ms)), Stop::Operations),
        warm_up: Duration::from_millis(one.warm_up_ms),
        place: Place {
            client_core: one.client_core,
            server_core: one.server_core,
            server_pid: own.as_ref().and_then(Server::pid).or(one.server_pid),
        },
    };
    let sample = one.side.run(&job);
    println!("{}", serde_json::to_string(&sample).map_err(|error| error.to_string())?);
    Ok(())
}

impl Compare {
    fn sides(&self) -> Vec<Side> {
        if !self.sides.is_empty() {
            return self.sides.clone();
        }
        let all = Side::value_variants().iter().copied();
        all.filter(|side| self.full || side.is_default()).collect()
    }

    fn scenarios(&self) -> Vec<Scenario> {
        plan::scenarios(&Wishes {
            workloads: self.workloads.clone(),
            callers: self.w.clone(),
            connections: self.connections.clone(),
            rates: self.rate.clone(),
            keys: self.keys,
            distribution: self.distribution,
            is_full: self.full,
        })
    }

    fn settings(&self, server: &Server) -> Settings {
        Settings {
            url: server.url.clone(),
            rounds: self.rounds.max(1),
            time: Duration::from_millis(self.ms),
            place: Place {
                client_core: self.client_core,
                server_core: self.server_core,
                server_pid: server.pid(),
            },
        }
    }

    fn environment(&self, server: &Server, tools: Tools) -> Environment {
        Environment {
            server: server.name.clone(),
            client_core: self.client_core,
            server_core: self.server_core,
            rounds: self.rounds.max(1),
            run_ms: self.ms,
            tools: Some(tools),
            ..Environment::here()
        }
    }

    /// What the report will not have, told before the wait.
    fn warn(&self, tools: Tools) {
        if !tools.perf && !self.no_counts {
            eprintln!(
                "compare: no system calls: `perf stat -e raw_syscalls:sys_enter` does not work here (root?)"
            );
        }
        if !tools.valgrind && self.instructions {
            eprintln!("compare: no instructions: valgrind is missing");
        }
    }
}

fn compare(options: &Compare) -> Result<(), String> {
    let started = Instant::now();
    let (sides, scenarios, tools) = (options.sides(), options.scenarios(), Tools::find());
    let server = Server::start(&options.server, options.server_core)?;
    let settings = options.settings(&server);
    let mut report = Report { environment: options.environment(&server, tools), scenarios: Vec::new() };
    options.warn(tools);
    eprintln!(
        "compare: {} scenarios, {} sides, {} rounds each",
        scenarios.len(),
        sides.len(),
        settings.rounds
    );
    // Idle connections are not counted.
    let counted =
        scenarios.iter().filter(|scenario| !options.no_counts && scenario.workload != Workload::Idle);
    let mut progress = Progress::new(sides.len() * (scenarios.len() * settings.rounds + counted.count()));
    for (number, scenario) in scenarios.iter().enumerate() {
        server::load(&settings.url, &Work::new(scenario.workload, scenario.keys, scenario.distribution))?;
        progress.heading(format!("[{}/{}] {}", number + 1, scenarios.len(), scenario.name()));
        let tools = (!options.no_counts).then_some(tools);
        let outcomes = measure(scenario, &sides, &settings, tools, options.instructions, &mut progress);
        progress.clear();
        let result = ScenarioReport::new(scenario, options.reference, outcomes);
        println!("{}", report::table::table(&result));
        report.scenarios.push(result);
    }
    report.environment.took_s = started.elapsed().as_secs();
    write(&report, &options.out)
}

/// All rounds of all sides under one scenario, then what is counted once.
fn measure(
    scenario: &Scenario,
    sides: &[Side],
    settings: &Settings,
    tools: Option<Tools>,
    is_instructions: bool,
    progress: &mut Progress,
) -> Vec<Outcome> {
    let new = |&side| Outcome { side, rounds: Vec::new(), counts: Default::default(), failure: None };
    let mut outcomes: Vec<Outcome> = sides.iter().map(new).collect();
    for round in 0..settings.rounds {
        for side in rounds::order(sides, round) {
            progress.step(&format!("round {}, {}", round + 1, side.name()));
            let outcome =
                outcomes.iter_mut().find(|outcome| outcome.side == side).expect("every side has one");
            match (Run { settings, scenario, side }).measure() {
                Ok(sample) => outcome.rounds.push(Some(sample)),
                Err(error) => {
                    outcome.rounds.push(None);
                    outcome.failure = Some(error.to_string());
                }
            }
        }
    }
    let Some(tools) = tools.filter(|_| scenario.workload != Workload::Idle) else { return outcomes };
    for outcome in &mut outcomes {
        progress.step(&format!("counting, {}", outcome.side.name()));
        let run = Run { settings, scenario, side: outcome.side };
        if let Err(error) = counts::count(&run, tools, is_instructions, &mut outcome.counts) {
            outcome.failure = Some(error.to_string());
        }
    }
    outcomes
}

fn draw(json: &Path) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", json.display());
    let text = std::fs::read_to_string(json).map_err(|error| failed(&error))?;
    let report: Report = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    let page = json.with_file_name("report.html");
    std::fs::write(&page, report::html::page(&report)).map_err(|error| failed(&error))?;
    println!("{}", page.display());
    Ok(())
}

fn write(report: &Report, directory: &Path) -> Result<(), String> {
    let (page, data) = (directory.join("report.html"), directory.join("report.json"));
    let json = serde_json::to_string_pretty(report).map_err(|error| error.to_string())?;
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&page, report::html::page(report)))
        .and_then(|()| std::fs::write(&data, json))
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    println!("{}\n{}", page.display(), data.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
        let cli =
            Cli::parse_from(["x", "--sides", "floor,monoio", "--w", "1,32", "--workloads", "get-16k,mget"]);
        assert_eq!(cli.compare.sides, [Side::Floor, Side::Monoio]);
        assert_eq!(cli.compare.w, [1, 32]);
        assert_eq!(cli.compare.workloads, [Workload::Get16k, Workload::Mget]);
        assert!(Cli::try_parse_from(["x", "--sides", "nobody"]).is_err());
        let cli = Cli::parse_from(["x", "one", "tokio", "--ops", "7"]);
        assert!(matches!(cli.verb, Some(Verb::One(one)) if one.side == Side::Tokio && one.ops == Some(7)));
    }

    #[test]
    fn a_scenario_can_be_repeated_by_hand() {
        for scenario in plan::scenarios(&Wishes { is_full: true, ..Wishes::default() }) {
            let mut words = vec!["x".to_owned(), "one".to_owned(), "floor".to_owned()];
            words.extend(scenario.arguments());
            let Some(Verb::One(one)) = Cli::parse_from(words).verb else { panic!("one") };
            assert_eq!((one.workload, one.w, one.rate), (scenario.workload, scenario.callers, scenario.rate));
        }
    }
}
